import type { writeOrder } from "../../engine/sun/encoding/write-order.ts"

/** What a station does at each step of the write order. */
export const stepTexts: Record<(typeof writeOrder)[number]["step"], string> = {
  write_ndef: "write ndef_hex to file 02h, authenticated with the factory's key of slot 0.",
  read_back_ndef: "read it and compare.",
  change_key: "ChangeKey to the key and version of the manifest, authenticated with slot 0.",
  read_back_key: "GetKeyVersion, then authenticate with the new key.",
  change_file_settings:
    "ChangeFileSettings of file 02h to file_settings_hex: switches the values on and locks the file.",
  read_back_file_settings: "GetFileSettings, and compare.",
  read_address: "read the tag as a phone does and keep the address for the check below.",
}
