import type { writeTamperOrder } from "../../engine/sun/encoding/write-order.ts"

/** What a station does at each step of the write order. */
export const stepTexts: Record<(typeof writeTamperOrder)[number]["step"], string> = {
  enable_tag_tamper:
    "SetConfiguration with the option that permanently enables the tamper wire, which is disabled at delivery. Only for tags ordered with `--tamper`.",
  write_ndef: "write ndef_hex to file 02h, authenticated with the factory key of slot 0.",
  read_back_ndef:
    "read it in the same session and compare: outside an authenticated session a tag mirrors its values.",
  change_key:
    "ChangeKey to the key and version in the manifest, authenticated with slot 0; for slots 1 to 4 it also needs the old key, `old_key`.",
  read_back_key: "GetKeyVersion, then authenticate with the new key.",
  change_file_settings:
    "ChangeFileSettings of file 02h to file_settings_hex, which switches the one-time values on and locks the file.",
  read_back_file_settings: "GetFileSettings, and compare the response with file_settings_answer_hex.",
  read_address: "read the tag as a phone does and keep the URL for the check below.",
}
