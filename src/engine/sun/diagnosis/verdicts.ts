/** Every verdict of a diagnosis, with what an encoding technician does about it. */
export const verdictAdvice = {
  accepted: "The tag is encoded correctly.",
  already_scanned:
    "The tag is encoded correctly, but this URL or a later one was already scanned. Read the tag again for a new URL.",
  not_an_address: "Send the whole URL that the phone opened, from https:// to the last digit.",
  no_values:
    "Write the NDEF file of the manifest (ndef_hex) and its file settings (file_settings_hex): the URL on the tag has no place for the chip's values.",
  wrong_parameter:
    "Write the NDEF file of the manifest (ndef_hex): the values must be named e, enc and c. If they are named otherwise, the page that the tag opens must rename them.",
  mirroring_off:
    "Write the file settings of the manifest (file_settings_hex): SDM is off, so the URL has its placeholders instead of values.",
  wrong_offset:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): the offsets on the tag belong to another URL template.",
  truncated_mirror:
    "Write the NDEF file of the manifest (ndef_hex): a placeholder has too few zeros; e and enc need 32, c needs 16. If the tag is right, the URL was cut off on its way here.",
  plain_mirror:
    "Write the file settings of the manifest (file_settings_hex): the tag mirrors its UID and read counter in plain text, because SDMMetaRead names no key.",
  counter_mirror_missing:
    "Write the file settings of the manifest (file_settings_hex): the tag mirrors its UID in plain text and no read counter, so its URL never changes.",
  lrp: "Use another tag: this one was switched to LRP, which cannot be undone, and the service verifies only AES. Do not switch LRP on at the station.",
  lower_case:
    "The tag is right; something on the way converted the URL to lower case. /t/{chip_id} corrects that; a client that calls the API itself must send e, c and enc in upper case.",
  unknown_chip:
    "Import the chip, or check the chip id in the tag's URL: this organization has no chip with that id.",
  uid_only:
    "Write the file settings of the manifest (file_settings_hex): the tag encrypts its UID without the read counter (SDMOptions bit 6), so its value contains no counter, and an old value could be used forever.",
  uid_missing:
    "Write the file settings of the manifest (file_settings_hex): the tag encrypts its read counter without the UID (SDMOptions bit 7).",
  factory_key:
    "Run the change_key steps of the manifest: the slot still has the factory key of a new tag (all zeros).",
  master_key_on_tag:
    "Write the keys of the manifest: the master key itself is on the tag, but each tag needs the keys that are derived from it.",
  key_of_another_derivation:
    "Write the keys of the manifest: the key on the tag was derived from the right master key, but in another way.",
  keys_swapped: "Write the keys to the slots of the manifest: the meta key and the file key are swapped.",
  wrong_key_slot:
    "Write the file settings of the manifest (file_settings_hex), or the keys to its slots: the tag uses the key of another slot.",
  wrong_key_version:
    "Read the tag again: a URL that was read before the tag was encoded again gets this verdict too. If a new URL gets it, encode the tag with the manifest of its last order: it has keys of another version of its key set.",
  wrong_key_set: "Use the manifest of this chip: the tag has keys of another key set.",
  wrong_meta_key:
    "Find the manifest that the tag was really encoded with: nothing else helps, because ChangeKey needs the keys that are on the tag. If there is none, use another tag.",
  wrong_file_key:
    "Authenticate at the station with the file key of the manifest. If that works, the URL was changed on its way here. If not, only the manifest that the tag was really encoded with helps, because ChangeKey needs the keys that are on the tag.",
  other_chip:
    "Check which tag was scanned: its UID and the chip id in its URL do not belong together. Two tags of the batch were swapped, or one was encoded twice.",
  mac_missing:
    "Write the file settings of the manifest (file_settings_hex): the tag sends no MAC (c), although it was ordered with one. Once the service knows its UID, it accepts a tap with e alone, which proves less.",
  mac_input:
    "Write the file settings of the manifest (file_settings_hex): SDMMACInputOffset on the tag is different, so the MAC covers a different text.",
  mac_half:
    "Fix the software that simulates the tag: it sends the wrong half of the MAC. c consists of its bytes 1, 3, 5 … 15, counted from 0.",
  enc_missing:
    "Write the NDEF file and the file settings of the manifest: the tag sends no encrypted file content (enc), so the service cannot know whether it was opened. Once the service knows its UID, it accepts a tap with e alone, which proves less.",
  enc_not_ordered:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): the tag sends encrypted file content (enc) that it was not ordered with, so c does not cover it and the service rejects the tap.",
  wire_off:
    "Enable the tamper wire, which is disabled at delivery, as the step enable_tag_tamper of the write order does: SetConfiguration, option 07h, authenticated with slot 0. Then read the tag again.",
  wire_unreadable:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): TTStatusOffset must be where enc begins.",
  file_writable:
    "Write the file settings of the manifest (file_settings_hex): anyone with a phone can overwrite the URL of this tag.",
  not_file_settings:
    "Send the tag's response to GetFileSettings for file 02h, in hexadecimal like file_settings_answer_hex of the manifest, or leave it out.",
  settings_differ:
    "Write the file settings of the manifest (file_settings_hex): those of the tag are not the ones that the chip was ordered with.",
} as const satisfies Record<string, string>

/** Replaces the advice for a chip that was encoded elsewhere and imported, which has no manifest. */
export const importedAdvice: Partial<Record<Verdict, string>> = {
  no_values:
    "Write another URL to the tag, with placeholders for its values, and file settings that put the values there: the URL on the tag has no place for them.",
  wrong_parameter:
    "Write a URL to the tag in which the values are named e, enc and c, or let the page that the tag opens rename them.",
  mirroring_off:
    "Write file settings to the tag that enable SDM: it is off, so the URL has its placeholders instead of values.",
  wrong_offset:
    "Write file settings to the tag whose offsets are where its URL has the placeholders: now they belong to another URL.",
  truncated_mirror:
    "Write the URL to the tag with longer placeholders: one has too few zeros; e and enc need 32, c needs 16. If the tag is right, the URL was cut off on its way here.",
  plain_mirror:
    "Write file settings to the tag in which SDMMetaRead names the slot of its meta key: it names none, so the tag mirrors its UID and read counter in plain text.",
  counter_mirror_missing:
    "Write file settings to the tag that mirror the read counter, too, and in which SDMMetaRead names the slot of its meta key: the tag mirrors its UID in plain text and no read counter, so its URL never changes.",
  uid_only:
    "Write file settings to the tag that mirror the read counter, too (SDMOptions bit 6): its value contains no counter, and an old value could be used forever.",
  uid_missing:
    "Write file settings to the tag that mirror the UID, too (SDMOptions bit 7): its value contains only the read counter.",
  factory_key:
    "Write the keys to the tag that the chip was imported with: the slot still has the factory key of a new tag (all zeros), which everybody knows.",
  master_key_on_tag:
    "Write the keys to the tag that the chip was imported with: a master key is on the tag, and who reads it out has the keys of all tags of its key set.",
  key_of_another_derivation:
    "Import the chip again with the keys that are on the tag, which were derived from a master key of this organization; that works until it is first paired or tapped.",
  keys_swapped:
    "Import the chip again with its meta_key and file_key swapped; that works until it is first paired or tapped. After that, the keys on the tag must be swapped.",
  wrong_key_slot:
    "Write file settings to the tag in which SDMMetaRead and SDMFileRead name the slots of its meta key and its file key: the tag uses the key of another slot.",
  wrong_key_set:
    "Check which tag was scanned: it has other keys than those that the chip was imported with. If it is this chip's tag, import the chip again with the keys that are on it; that works until it is first paired or tapped.",
  wrong_meta_key:
    "Import the chip again with the keys that the tag was really encoded with; that works until it is first paired or tapped. If nobody knows them, use another tag.",
  other_chip:
    "Check which tag was scanned: its UID is not the one that the chip was imported with. If it is this chip's tag, import the chip again with the UID that is on it, which begins with 04: some readers print its bytes in reverse order. That works until it is first paired or tapped.",
  wrong_file_key:
    "If the URL was not changed on its way here, import the chip again with the file key that the tag was really encoded with; that works until it is first paired or tapped.",
  mac_missing:
    "Import the chip again without mac, if its tag is not to send one; that works until it is first paired or tapped. Otherwise write file settings to the tag that add it (c). Once the service knows its UID, it accepts a tap with e alone, which proves less.",
  mac_input:
    "Import the chip again with the text that its MAC covers as its mac_input; that works until it is first paired or tapped. After that, the file settings of the tag must be changed: SDMMACInputOffset must be where the mac_input of the import begins.",
  enc_missing:
    "Import the chip again without tamper, if its tag is not to report its wire; that works until it is first paired or tapped. Otherwise write a URL and file settings to the tag that add the encrypted file content (enc). Once the service knows its UID, it accepts a tap with e alone, which proves less.",
  enc_not_ordered:
    "Import the chip again with what its tag sends: tamper, or a mac_input with {enc}; that works until it is first paired or tapped. Only a MAC that covers it proves an enc genuine, so the service rejects any other.",
  wire_off:
    "Enable the tamper wire, which is disabled at delivery: SetConfiguration, option 07h, authenticated with slot 0. Then read the tag again.",
  wire_unreadable: "Write file settings to the tag in which TTStatusOffset is where enc begins.",
  file_writable:
    "Write file settings to the tag that let nobody write or change them without a key: anyone with a phone can overwrite the URL of this tag.",
  not_file_settings:
    "Send the tag's response to GetFileSettings for file 02h, in hexadecimal, or leave it out.",
  settings_differ:
    "Write file settings to the tag that differ from the present ones as the last check says: with these, the service does not understand what the tag sends.",
}

/** Replaces the advice for a tag that the service accepts as it is, although it was to be re-encoded at a station. */
export const earlierKeysAdvice =
  "The service accepts the tag as it is, but it still has its earlier keys. At the station, encode it with the manifest of its last order."

/** Replaces the advice for a tag with one key from an earlier order and another from a later one. */
export const halfWayAdvice =
  "Continue at the station with the manifest of the tag's last order: its encoding was interrupted, so it has keys of two versions. GetKeyVersion shows which slot has which."

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
