/** Every verdict of a diagnosis, with what an encoding technician does about it. */
export const verdictAdvice = {
  accepted: "The tag is encoded correctly.",
  already_scanned:
    "The tag is encoded correctly; this URL, or a later one, was already scanned. Read the tag again to get a new one.",
  not_an_address: "Give the whole URL that the phone opened, from https:// to the last digit.",
  no_values:
    "Write the NDEF file of the manifest (ndef_hex) and its file settings (file_settings_hex): the URL on the tag has no place for the chip's values.",
  wrong_parameter:
    "Write the NDEF file of the manifest (ndef_hex): the values must be named e, enc and c, or the page that the tag opens must rename them.",
  mirroring_off:
    "Send the file settings of the manifest (file_settings_hex): SDM is off, so the tag shows its placeholders unchanged.",
  wrong_offset:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): the offsets on the tag are those of another URL template.",
  truncated_mirror:
    "Write the NDEF file of the manifest (ndef_hex): a placeholder has too few zeros; e and enc need 32, c needs 16. If the tag is right, the URL was cut off on its way here.",
  plain_mirror:
    "Send the file settings of the manifest (file_settings_hex): the tag mirrors its UID and read counter in plain text, because no SDMMetaRead key is set.",
  counter_mirror_missing:
    "Send the file settings of the manifest (file_settings_hex): the tag mirrors its UID in plain text and no read counter, so its URL never changes.",
  lrp: "Use another tag: this one was switched to LRP, which cannot be undone, and the service verifies only AES. Do not switch LRP on at the station.",
  lower_case:
    "The tag is right; something on the way changed the URL to lower case. /t/{chip_id} corrects that; what calls the API itself must send e, c and enc in upper case.",
  unknown_chip:
    "Import the chip, or check the chip id in the tag's URL: this organization has no chip with that id.",
  uid_only:
    "Send the file settings of the manifest (file_settings_hex): the tag encrypts its UID without the read counter (SDMOptions bit 6), so its value contains no counter, and an old value could be used forever.",
  uid_missing:
    "Send the file settings of the manifest (file_settings_hex): the tag encrypts its read counter without the UID (SDMOptions bit 7).",
  factory_key:
    "Run the change_key steps of the manifest: the slot still has the factory key, all zeros, that every new tag has.",
  master_key_on_tag:
    "Write the keys of the manifest: the master key itself is on the tag, and each tag needs the key that is derived from it.",
  key_of_another_derivation:
    "Write the keys of the manifest: the key on the tag was derived from the right master key in another way.",
  keys_swapped: "Write the keys to the slots of the manifest: the meta key and the file key are swapped.",
  wrong_key_slot:
    "Send the file settings of the manifest (file_settings_hex), or write the keys to its slots: the tag uses the key of another slot.",
  wrong_key_version:
    "Read the tag again: a URL from before it was encoded again gets this verdict too. If the verdict stays, encode the tag with the manifest of its last order: it has keys of another version of its key set.",
  wrong_key_set: "Use the manifest of this chip: the tag has keys of another key set.",
  wrong_meta_key:
    "Find the manifest that the tag was really encoded with: ChangeKey requires the present key, and that of slot 0, so nothing else helps. If there is none, use another tag.",
  wrong_file_key:
    "Authenticate at the station with the file key of the manifest. If that works, the URL was changed on its way here. If not, only the manifest that the tag was really encoded with helps: ChangeKey requires the present key.",
  other_chip:
    "Check the tag that was scanned: by its UID it is not the tag that this chip id belongs to. Two tags of the batch were swapped, or one was encoded twice.",
  mac_missing:
    "Send the file settings of the manifest (file_settings_hex): the tag gives no MAC (c), although it was ordered with one. Once the service knows its UID, it still accepts a tap with e alone, which proves less.",
  mac_input:
    "Send the file settings of the manifest (file_settings_hex): SDMMACInputOffset on the tag differs, so the MAC covers another text.",
  mac_half:
    "Fix the software that simulates the tag: it sends the wrong half of the MAC; c is its bytes 1, 3, 5 … 15.",
  enc_missing:
    "Write the NDEF file and the file settings of the manifest: the tag gives no encrypted file content (enc), so the service cannot know whether it was opened. Once the service knows its UID, it still accepts a tap with e alone, which proves less.",
  enc_not_ordered:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): the tag gives encrypted file content (enc) that it was not ordered with, so c does not cover it and the service refuses the tap.",
  wire_off:
    "Enable the wire as the step enable_tag_tamper of the write order does: SetConfiguration, option 07h, authenticated with slot 0. New tags have it disabled. Then read the tag again.",
  wire_unreadable:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): TTStatusOffset must be where enc begins.",
  file_writable:
    "Send the file settings of the manifest (file_settings_hex): anybody with a phone can rewrite this tag's URL.",
  not_file_settings:
    "Give the tag's response to GetFileSettings for file 02h, in hexadecimal (file_settings_answer_hex of the manifest shows its form), or leave it out.",
  settings_differ:
    "Send the file settings of the manifest (file_settings_hex): they are not those that the chip was ordered with.",
} as const satisfies Record<string, string>

/** Replaces the advice for a chip that was encoded elsewhere and imported, which has no manifest. */
export const importedAdvice: Partial<Record<Verdict, string>> = {
  keys_swapped:
    "Import the chip again with its meta_key and its file_key swapped; that works until it is first paired or tapped. After that, the keys on the tag have to be swapped.",
  wrong_meta_key:
    "Import the chip again with the keys that the tag was really encoded with; that works until it is first paired or tapped. If nobody knows them, use another tag.",
  wrong_file_key:
    "If the URL was not changed on its way here, import the chip again with the file key that the tag was really encoded with; that works until it is first paired or tapped.",
  mac_input:
    "Import the chip again with the text that its MAC covers as its mac_input; that works until it is first paired or tapped. After that, the file settings of the tag have to change: SDMMACInputOffset must be where the mac_input of the import begins.",
  enc_not_ordered:
    "Import the chip again with what its tag gives: tamper, or a mac_input with {enc}; that works until it is first paired or tapped. Only a MAC over it proves that an enc is genuine, so the service refuses any other.",
}

/** Replaces the advice for a tag that the service accepts as it is, although it was to be re-encoded at a station. */
export const earlierKeysAdvice =
  "The service accepts the tag as it is. At the station, encode it with the manifest of its last order: it still has its earlier keys."

/** Replaces the advice for a tag with one key from an earlier order and another from a later one. */
export const halfWayAdvice =
  "Continue at the station with the manifest of the tag's last order: encoding stopped half-way, the tag has keys of two versions, and GetKeyVersion shows which slot has which."

export type Verdict = keyof typeof verdictAdvice

/** What is wrong, and how it shows. */
export type Fault = { verdict: Verdict; detail: string }

/** The same of one thing that may also be right. */
export type Judgement = Fault | { verdict: null; detail: string }

/** What is looked at, in this order. The first that fails ends the diagnosis, but for those that leave a tap working. */
export const checkNames = [
  "address",
  "template",
  "case",
  "chip",
  "meta_key",
  "file_key",
  "file_content",
  "file_settings",
  "key_version",
  "counter",
] as const
export type CheckName = (typeof checkNames)[number]

/** One check, in the terms of the encoding station. Never includes a key. */
export type Check = { name: CheckName; passed: boolean; detail: string }

/**
 * Returns the failed checks that say that a tag is not encoded as ordered: not what happened to its URL
 * on the way, nor an earlier scan.
 */
export function faultsIn(checks: readonly Check[]): Check[] {
  return checks.filter(({ name, passed }) => !passed && name !== "case" && name !== "counter")
}
