/** Every verdict of a diagnosis, with what an encoding technician does about it. */
export const verdictAdvice = {
  accepted: "The tag is encoded as it should be.",
  already_scanned:
    "The tag is encoded as it should be; this address, or a later one, was scanned before. Read the tag again for a new one.",
  not_an_address: "Give the whole address that the phone opened, from https:// to the last digit.",
  no_values:
    "Write the NDEF file of the manifest (ndef_hex) and its file settings (file_settings_hex): the address on the tag has no place for the chip's values.",
  wrong_parameter:
    "Write the NDEF file of the manifest (ndef_hex): the values must be named e, enc and c, or the page that the tag opens must rename them.",
  mirroring_off:
    "Send the file settings of the manifest (file_settings_hex): SDM is off, so the tag gives its placeholders as they were written.",
  wrong_offset:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): the offsets on the tag are those of another URL template.",
  truncated_mirror:
    "Write the NDEF file of the manifest (ndef_hex): a placeholder has too few zeros; e and enc need 32, c needs 16. If the tag is right, the address was cut on its way here.",
  plain_mirror:
    "Send the file settings of the manifest (file_settings_hex): the tag gives UID and counter in clear, for want of an SDMMetaRead key.",
  counter_mirror_missing:
    "Send the file settings of the manifest (file_settings_hex): the tag mirrors its UID in clear and no read counter, so its address never changes.",
  lrp: "Take another tag: this one was switched to LRP, which cannot be undone, and the service verifies AES. Do not switch LRP on at the station.",
  lower_case:
    "The tag is right; something on the way made the address lower-case. /t/{chip_id} puts that right; what calls the API itself sends e, c and enc in upper case.",
  unknown_chip:
    "Import the chip, or check the chip id in the tag's address: this organization has no chip with it.",
  uid_only:
    "Send the file settings of the manifest (file_settings_hex): the tag encrypts its UID without the read counter (SDMOptions bit 6), so its value carries no counter, and an old one could be used for ever.",
  uid_missing:
    "Send the file settings of the manifest (file_settings_hex): the tag encrypts its read counter without the UID (SDMOptions bit 7).",
  factory_key:
    "Run the change_key steps of the manifest: the slot still has the key of zeros that every new tag has.",
  master_key_on_tag:
    "Write the keys of the manifest: the master key itself is on the tag, and each tag needs the key that is derived from it.",
  key_of_another_derivation:
    "Write the keys of the manifest: the key on the tag was derived from the right master in another way.",
  keys_swapped: "Write the keys to the slots of the manifest: the meta and the file key have changed places.",
  wrong_key_slot:
    "Send the file settings of the manifest (file_settings_hex), or write the keys to its slots: the tag uses the key of another slot.",
  wrong_key_version:
    "Read the tag again: an address from before it was encoded anew is told so too. If it stays, encode the tag with the manifest of its last order: it has keys of another version of its key set.",
  wrong_key_set: "Take the manifest of this chip: the tag has keys of another key set.",
  wrong_meta_key:
    "Look for the manifest that the tag was really made with: ChangeKey takes the key that is there, and slot 0, so nothing else mends it. Where there is none, take another tag.",
  wrong_file_key:
    "Authenticate at the station with the file key of the manifest. If that works, the address was changed on its way here. If not, only the manifest that the tag was really made with helps: ChangeKey takes the key that is there.",
  other_chip:
    "Look at the tag that was scanned: it says it is another one than this chip id belongs to. Two tags of the batch changed places, or one was encoded twice.",
  mac_missing:
    "Send the file settings of the manifest (file_settings_hex): the tag gives no MAC (c), though it was ordered with one. Once the service knows its UID, a tap with e alone is taken all the same; it proves less.",
  mac_input:
    "Send the file settings of the manifest (file_settings_hex): SDMMACInputOffset on the tag differs, so the MAC covers other text.",
  mac_half:
    "Repair the software that plays the tag: it sends the wrong half of the MAC; c is its bytes 1, 3, 5 … 15.",
  enc_missing:
    "Write the NDEF file and the file settings of the manifest: the tag gives no encrypted file content (enc), so the service cannot know whether it was opened. Once the service knows its UID, a tap with e alone is taken all the same; it proves less.",
  enc_not_ordered:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): the tag gives encrypted file content (enc) that it was not ordered with, so c does not vouch for it and the service refuses the tap.",
  wire_off:
    "Switch the wire on as enable_tag_tamper of the write order does: SetConfiguration, option 07h, authenticated with slot 0. At delivery it is off. Then read the tag again.",
  wire_unreadable:
    "Write the NDEF file and the file settings of the manifest (ndef_hex, file_settings_hex): TTStatusOffset must be where enc begins.",
  file_writable:
    "Send the file settings of the manifest (file_settings_hex): anybody with a phone can rewrite this tag's address.",
  not_file_settings:
    "Give what GetFileSettings answers for file 02h, in hexadecimal (file_settings_answer_hex of the manifest has its form), or leave it out.",
  settings_differ:
    "Send the file settings of the manifest (file_settings_hex): they are not those that the chip was ordered with.",
} as const satisfies Record<string, string>

/** Replaces the advice for a chip that was encoded elsewhere and imported, which has no manifest. */
export const importedAdvice: Partial<Record<Verdict, string>> = {
  keys_swapped:
    "Import the chip again with its meta_key and its file_key in each other's place; that is taken while it was never paired or tapped. Else the keys of the tag have to change places.",
  wrong_meta_key:
    "Import the chip again with the keys that the tag was really encoded with; that is taken while it was never paired or tapped. Where nobody knows them, take another tag.",
  wrong_file_key:
    "If the address was not changed on its way here, import the chip again with the file key that the tag was really encoded with; that is taken while it was never paired or tapped.",
  mac_input:
    "Import the chip again with the text that its MAC covers as its mac_input; that is taken while it was never paired or tapped. Else the file settings of the tag have to change: SDMMACInputOffset must be where the mac_input of the import begins.",
  enc_not_ordered:
    "Import the chip again with what its tag gives: tamper, or a mac_input with {enc}; that is taken while it was never paired or tapped. Nothing but a MAC over it vouches for an enc, so the service refuses any other.",
}

/** Replaces the advice for a tag that the service accepts as it is, although it was to be re-encoded at a station. */
export const earlierKeysAdvice =
  "The service takes the tag as it is. At the station, encode it with the manifest of its last order: it still has its earlier keys."

/** Replaces the advice for a tag with one key from an earlier order and another from a later one. */
export const halfWayAdvice =
  "Go on at the station with the manifest of the tag's last order: it was left half-way, with keys of two versions, and GetKeyVersion tells which slot has which."

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
