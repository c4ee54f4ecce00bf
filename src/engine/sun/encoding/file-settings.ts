import type { KeySlot, SlotRoles } from "../key-schemes.ts"
import { ENC_DIGITS } from "./tag-address.ts"

/** Who has an access right to a file: the holder of a key, everyone, or no one. */
export type Access = KeySlot | "free" | "never"

/** What ChangeFileSettings sets for the NDEF file and GetFileSettings returns (data sheet §10.7.1, table 69). */
export type FileSettings = {
  /** Whether mirroring is enabled at all; if not, a read returns the placeholders. */
  sdm: boolean
  /** How content is protected for the holder of a key; for everyone else it is plain. */
  communication: "plain" | "mac" | "full"
  access: { read: Access; write: Access; read_write: Access; change: Access }
  /** What PICCData contains, and the key that encrypts it: `free` mirrors it in clear, `never` does not mirror it. */
  uid: boolean
  counter: boolean
  counter_limit: boolean
  /** Whether values are mirrored as hexadecimal digits, the only encoding that tags support. */
  ascii: boolean
  meta_read: Access
  /** The key that makes the MAC; `never` for none. */
  file_read: Access
  counter_read: Access
  /** In bytes from the start of the file; null if the tag does not mirror the value. */
  offsets: {
    uid: number | null
    counter: number | null
    picc_data: number | null
    tamper: number | null
    mac_input: number | null
    enc: number | null
    enc_length: number | null
    mac: number | null
  }
}

/** Where the placeholders are in the NDEF file. */
type FilePlaces = { e: number; enc: number | null; c: number | null }

/**
 * Returns the settings that this service expects of a tag, and that lock it: everyone reads; only the holder of the
 * application master key writes the file or changes the settings.
 */
export function lockedSettings(roles: SlotRoles, places: FilePlaces): FileSettings {
  const hasMac = places.c !== null
  return {
    sdm: true,
    communication: "plain",
    access: { read: "free", write: 0, read_write: 0, change: 0 },
    uid: true,
    counter: true,
    counter_limit: false,
    ascii: true,
    meta_read: roles.meta_read,
    file_read: hasMac ? roles.file_read : "never",
    counter_read: roles.file_read,
    offsets: {
      uid: null,
      counter: null,
      picc_data: places.e,
      tamper: places.enc,
      mac_input: places.enc ?? places.c,
      enc: places.enc,
      enc_length: places.enc === null ? null : ENC_DIGITS,
      mac: places.c,
    },
  }
}

/**
 * Encodes the payload of ChangeFileSettings, after the file number; offsets are three bytes, least significant first.
 */
export function encodeFileSettings(settings: FileSettings): Buffer {
  const { access, offsets } = settings
  const head = Buffer.from([
    (settings.sdm ? SDM_ON : 0) | communicationBits[settings.communication],
    (nibbleOf(access.read_write) << 4) | nibbleOf(access.change),
    (nibbleOf(access.read) << 4) | nibbleOf(access.write),
  ])
  if (!settings.sdm) return head
  const options =
    (settings.uid ? UID : 0) |
    (settings.counter ? COUNTER : 0) |
    (settings.counter_limit ? LIMIT : 0) |
    (offsets.enc === null ? 0 : ENC) |
    (offsets.tamper === null ? 0 : TAMPER) |
    (settings.ascii ? ASCII : 0)
  const rights = [
    0xf0 | nibbleOf(settings.counter_read),
    (nibbleOf(settings.meta_read) << 4) | nibbleOf(settings.file_read),
  ]
  const places = placeOrder.flatMap((name) => {
    const place = offsets[name]
    return place === null ? [] : [place & 0xff, (place >> 8) & 0xff, place >> 16]
  })
  return Buffer.concat([head, Buffer.from([options, ...rights, ...places])])
}

/** Decodes that payload; null if it is not one. */
export function decodeFileSettings(payload: Uint8Array): FileSettings | null {
  const bytes = Buffer.from(payload)
  if (bytes.length < RIGHTS_END) return null
  const [option = 0, low = 0, high = 0, options = 0, counterRead, reads] = bytes
  const access = {
    read: accessOf(high >> 4),
    write: accessOf(high & 0x0f),
    read_write: accessOf(low >> 4),
    change: accessOf(low & 0x0f),
  }
  const communication = communicationOf(option)
  if ((option & SDM_ON) === 0) return { ...withoutMirrors, communication, access }
  if (counterRead === undefined || reads === undefined) return null
  const meta_read = accessOf(reads >> 4)
  const file_read = accessOf(reads & 0x0f)
  const hasEnc = (options & ENC) !== 0 && file_read !== "never"
  const present: Record<keyof FileSettings["offsets"], boolean> = {
    uid: (options & UID) !== 0 && meta_read === "free",
    counter: (options & COUNTER) !== 0 && meta_read === "free",
    picc_data: typeof meta_read === "number",
    tamper: (options & TAMPER) !== 0,
    mac_input: file_read !== "never",
    enc: hasEnc,
    enc_length: hasEnc,
    mac: file_read !== "never",
  }
  const offsets = { ...withoutMirrors.offsets }
  let at = SDM_HEAD_BYTES
  for (const name of placeOrder) {
    if (!present[name]) continue
    if (at + 3 > bytes.length) return null
    offsets[name] = bytes.readUIntLE(at, 3)
    at += 3
  }
  return {
    sdm: true,
    communication,
    access,
    uid: (options & UID) !== 0,
    counter: (options & COUNTER) !== 0,
    counter_limit: (options & LIMIT) !== 0,
    ascii: (options & ASCII) !== 0,
    meta_read,
    file_read,
    counter_read: accessOf(counterRead & 0x0f),
    offsets,
  }
}

/**
 * Encodes the response to GetFileSettings for file 02h: the payload, with the file's type
 * before it and its size inside.
 */
export function encodeSettingsAnswer(settings: FileSettings): Buffer {
  const payload = encodeFileSettings(settings)
  return Buffer.concat([STANDARD_FILE, payload.subarray(0, 3), NDEF_FILE_SIZE, payload.subarray(3)])
}

/** Decodes that response; null if it is not one. */
export function decodeSettingsAnswer(answer: Uint8Array): FileSettings | null {
  if (answer.length < 7 || answer[0] !== 0x00) return null
  return decodeFileSettings(Buffer.concat([answer.subarray(1, 4), answer.subarray(7)]))
}

const STANDARD_FILE = Uint8Array.of(0x00)
/** 256 bytes (data sheet §8.2.3), least significant first. */
const NDEF_FILE_SIZE = Uint8Array.of(0x00, 0x01, 0x00)
const SDM_ON = 0x40
/** The two lowest bits of FileOption; 10 also means plain. */
const communicationBits = { plain: 0b00, mac: 0b01, full: 0b11 }
const UID = 0x80
const COUNTER = 0x40
const LIMIT = 0x20
const ENC = 0x10
const TAMPER = 0x08
const ASCII = 0x01
const RIGHTS_END = 3
const SDM_HEAD_BYTES = 6

/** The order of table 69. */
const placeOrder = ["uid", "counter", "picc_data", "tamper", "mac_input", "enc", "enc_length", "mac"] as const

const withoutMirrors: Omit<FileSettings, "access" | "communication"> = {
  sdm: false,
  uid: false,
  counter: false,
  counter_limit: false,
  ascii: false,
  meta_read: "never",
  file_read: "never",
  counter_read: "never",
  offsets: {
    uid: null,
    counter: null,
    picc_data: null,
    tamper: null,
    mac_input: null,
    enc: null,
    enc_length: null,
    mac: null,
  },
}

function nibbleOf(access: Access): number {
  if (access === "free") return 0x0e
  return access === "never" ? 0x0f : access
}

function communicationOf(option: number): FileSettings["communication"] {
  const bits = option & 0b11
  if (bits === communicationBits.full) return "full"
  return bits === communicationBits.mac ? "mac" : "plain"
}

function accessOf(nibble: number): Access {
  if (nibble === 0x0e) return "free"
  return nibble <= 4 ? (nibble as KeySlot) : "never"
}
