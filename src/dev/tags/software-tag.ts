import { createCipheriv, randomBytes } from "node:crypto"
import {
  type Access,
  decodeFileSettings,
  type FileSettings,
} from "../../engine/sun/encoding/file-settings.ts"
import { addressIn } from "../../engine/sun/encoding/ndef.ts"
import { encryptFileContent } from "../../engine/sun/file-content.ts"
import { counterBytes, macFor, type SunChip, sessionMacKey, UID_BYTES } from "../../engine/sun/message.ts"
import { upperHex } from "../../platform/upper-hex.ts"

/**
 * An NTAG 424 DNA as far as a phone can tell: a file, its settings and five keys, in upper-case hex. What it shows
 * follows only from the bytes written to it, as with hardware.
 */
export type SoftwareTag = {
  uid: string
  ndef_hex: string
  file_settings_hex: string
  /** The keys of slots 0 to 4. */
  keys: string[]
  /** The reads so far. */
  counter: number
  tamper: TamperWire
}

/** The wire of a TagTamper: `CC` until it breaks, `OO` while it is broken, `OC` after somebody joined it again. */
export type TamperWire = "CC" | "OO" | "OC" | "II"

/** How a read differs from that of a normal tag. */
type ReadOptions = {
  /** Five random bytes that a chip draws for each read. */
  padding?: Uint8Array
  /** Leaves the counter out of PICCData, like a tag whose settings have that bit off. */
  uid_only?: boolean
}

/**
 * The address that a phone gets on this read, by the data sheet (§9.3): values mirrored into the file in upper-case
 * hex. Throws where a real tag would fail: settings that point outside the file, or name no key.
 */
export function readAddress(tag: SoftwareTag, counter: number, options: ReadOptions = {}): string {
  const settings = decodeFileSettings(hex(tag.file_settings_hex))
  if (!settings) throw new Error("the tag has no readable file settings")
  const file = hex(tag.ndef_hex)
  if (settings.sdm) mirror(tag, settings, file, counter, options)
  const address = addressIn(file)
  if (address === null) throw new Error("the tag's file contains no URL")
  return address
}

function mirror(
  tag: SoftwareTag,
  settings: FileSettings,
  file: Buffer,
  counter: number,
  { padding = randomBytes(5), uid_only = false }: ReadOptions,
): void {
  const { offsets } = settings
  const hasCounter = settings.counter && !uid_only
  if (offsets.uid !== null) put(file, offsets.uid, tag.uid)
  if (offsets.counter !== null)
    put(file, offsets.counter, counter.toString(16).padStart(6, "0").toUpperCase())
  if (offsets.picc_data !== null) {
    const picc = piccData(settings.uid ? hex(tag.uid) : null, hasCounter ? counter : null, padding)
    put(file, offsets.picc_data, upperHex(encrypted(keyOf(tag, settings.meta_read), picc)))
  }
  if (offsets.tamper !== null) put(file, offsets.tamper, tag.tamper)
  if (settings.file_read === "never") return
  const chip: SunChip = {
    uid: hex(tag.uid),
    metaKey: new Uint8Array(16),
    fileKey: keyOf(tag, settings.file_read),
  }
  const shownCounter = hasCounter ? counter : 0
  if (offsets.enc !== null && offsets.enc_length !== null) {
    // Two hex digits come out for each byte of the file that goes in.
    const content = file.subarray(offsets.enc, offsets.enc + offsets.enc_length / 2)
    put(file, offsets.enc, upperHex(encryptFileContent(chip, shownCounter, content)))
  }
  if (offsets.mac === null || offsets.mac_input === null) return
  const covered = file.subarray(offsets.mac_input, offsets.mac)
  put(file, offsets.mac, upperHex(macFor(sessionMacKey(chip.fileKey, chip.uid, shownCounter), covered)))
}

/** One block of tag byte, UID, counter and padding (table 21). */
function piccData(uid: Uint8Array | null, counter: number | null, padding: Uint8Array): Buffer {
  const tagByte = (uid ? 0x80 | UID_BYTES : 0) | (counter === null ? 0 : 0x40)
  const parts = [Uint8Array.of(tagByte), uid ?? [], counter === null ? [] : counterBytes(counter), padding]
  const block = Buffer.alloc(16)
  let at = 0
  for (const part of parts) {
    block.set(part.slice(0, block.length - at), at)
    at += part.length
  }
  return block
}

function put(file: Buffer, at: number, text: string): void {
  if (at + text.length > file.length)
    throw new Error(`a value at offset ${at} does not fit into the tag's file`)
  file.write(text, at, "latin1")
}

function keyOf(tag: SoftwareTag, access: Access): Buffer {
  const key = typeof access === "number" ? tag.keys[access] : undefined
  if (key === undefined) throw new Error("the tag's file settings name a key that it does not have")
  return hex(key)
}

function encrypted(key: Uint8Array, block: Uint8Array): Buffer {
  return createCipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(block)
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex")
}
