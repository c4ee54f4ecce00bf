import { upperHex } from "../../../platform/upper-hex.ts"
import { type KeySlot, type KeySource, keySlots, type TagIdentity } from "../key-schemes.ts"
import { encodeFileSettings, encodeSettingsAnswer, lockedSettings } from "./file-settings.ts"
import { ndefFile } from "./ndef.ts"
import { type Mirrors, tagAddress } from "./tag-address.ts"
import { type WriteStep, writeAnewOrder, writeOrder, writeTamperOrder } from "./write-order.ts"

/** Everything that a station needs to encode one tag; each line of a manifest holds one. */
export type ManifestLine = {
  chip_id: string
  /** 14 upper-case hexadecimal digits; null if any tag may become this chip. */
  uid: string | null
  /** The URL as stored in the tag's file, with zeros where the chip puts its values. */
  url_template: string
  ndef_hex: string
  /** In bytes from the start of the file; null if the tag does not mirror the value. */
  offsets: { picc_data: number; mac: number | null; mac_input: number | null; enc: number | null }
  /** The payload of ChangeFileSettings for file 02h. */
  file_settings_hex: string
  /** The response to GetFileSettings once that was done. */
  file_settings_answer_hex: string
  keys: { slot: KeySlot; role: KeyRole; version: number; key: string }[]
  /** For a tag that is re-encoded, the keys that it may have now; GetKeyVersion tells which. Null for a new tag. */
  previous_keys: { slot: KeySlot; version: number; key: string }[] | null
  write_order: readonly WriteStep[]
}

type KeyRole = "application_master" | "meta_read" | "file_read" | "spare"

/**
 * Returns the line of one chip. `before`: the versions whose keys its tag may have; empty for a new tag. Throws
 * `TemplateError` and `UidNeeded`.
 */
export function manifestLine(
  source: KeySource,
  template: string,
  mirrors: Mirrors,
  tag: TagIdentity,
  before: readonly KeySource[] = [],
): ManifestLine {
  const address = tagAddress(template, tag.chip_id, mirrors)
  const { bytes, offsets } = ndefFile(address)
  const settings = lockedSettings(source.roles, offsets)
  return {
    chip_id: tag.chip_id,
    uid: tag.uid && upperHex(tag.uid),
    url_template: address.text,
    ndef_hex: upperHex(bytes),
    offsets: {
      picc_data: offsets.e,
      mac: offsets.c,
      mac_input: settings.offsets.mac_input,
      enc: offsets.enc,
    },
    file_settings_hex: upperHex(encodeFileSettings(settings)),
    file_settings_answer_hex: upperHex(encodeSettingsAnswer(settings)),
    keys: keysOf(source, tag).map(({ slot, ...key }) => ({ slot, role: roleOf(source, slot), ...key })),
    previous_keys: before.length === 0 ? null : before.flatMap((earlier) => keysOf(earlier, tag)),
    write_order: before.length > 0 ? writeAnewOrder : mirrors.tamper ? writeTamperOrder : writeOrder,
  }
}

function keysOf(source: KeySource, tag: TagIdentity) {
  return keySlots.map((slot) => ({
    slot,
    version: source.version,
    key: upperHex(source.keyAt(slot, tag)),
  }))
}

function roleOf({ roles }: KeySource, slot: KeySlot): KeyRole {
  if (slot === 0) return "application_master"
  if (slot === roles.meta_read) return "meta_read"
  return slot === roles.file_read ? "file_read" : "spare"
}
