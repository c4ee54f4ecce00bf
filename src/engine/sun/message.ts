import { createDecipheriv, timingSafeEqual } from "node:crypto"
import { cmac } from "./cmac.ts"

/**
 * The values that a chip writes into its URL, in upper-case hex digits: `e`, 32 digits; `c`, 16, if the tag is set up
 * to give one; `enc`, 32, encrypted file content, from tags that mirror some.
 */
export type SunMessage = {
  readonly e: string
  readonly c?: string | undefined
  readonly enc?: string | undefined
}

/** What verification needs to know about a chip: the UID of 7 bytes and AES keys of 16. */
export type SunChip = {
  readonly uid: Uint8Array
  /** SDMMetaReadKey: decrypts `e`. */
  readonly metaKey: Uint8Array
  /** SDMFileReadKey: makes `c`. */
  readonly fileKey: Uint8Array
}

/** PICCDataTag: UID and read counter present, UID of 7 bytes (NTAG 424 DNA data sheet, table 21). */
export const PICC_TAG = 0xc7
export const UID_BYTES = 7
/** The first byte of a UID: its manufacturer (ISO/IEC 7816-6). */
export const NXP = 0x04
export const MAX_COUNTER = 0xffffff
/**
 * A new UID without a MAC is accepted only with fewer reads than this and NXP's first byte,
 * which a wrong key rarely gives.
 */
export const MANY_READS = 65_536

/** The MAC covers no text: both MAC offsets of the tag are the same. */
const NO_MAC_INPUT = ""

const COUNTER_BYTES = 3
const SV2_PREFIX = Buffer.from("3CC300010080", "hex")
const NO_UID = Buffer.alloc(UID_BYTES)
const NOTHING = new Uint8Array(0)

/**
 * Returns the read counter of an authentic message of this chip, otherwise null. The caller must compare it with the
 * last one accepted.
 *
 * Without `c`, the UID under the meta key is the proof: `e` is one block, so a changed `e` decrypts to noise, and the
 * tag byte and UID that must come out are 64 bits. With `c`, the file key vouches too, for the text of the URL that the
 * tag's encoding covers: `macInput`, in which `{e}` and `{enc}` stand for the values. An `enc` that no `c` vouches for
 * is refused. The MAC is computed on every path, so the time taken does not reveal which check refused; only the
 * presence and the shape of the values, which the sender knows, change it. Throws `RangeError` on a UID or key of the
 * wrong length.
 */
export function verifySun(
  chip: SunChip,
  message: SunMessage,
  macInput: string = NO_MAC_INPUT,
): { counter: number } | null {
  requireUid(chip.uid)
  const { e, c, enc } = message
  if (c !== undefined && !/^[0-9A-F]{16}$/.test(c)) return null
  if (enc !== undefined && !isCovered(enc, c, macInput)) return null

  const picc = decryptPicc(chip.metaKey, e)
  const covered = macInput === NO_MAC_INPUT ? NOTHING : coveredText(macInput, message)
  const mac = macFor(sessionMacKey(chip.fileKey, chip.uid, picc?.counter ?? 0), covered)
  const sameUid = timingSafeEqual(chip.uid, picc?.uid ?? NO_UID)
  const sameMac = c === undefined || timingSafeEqual(mac, Buffer.from(c, "hex"))
  return picc !== null && sameUid && sameMac ? { counter: picc.counter } : null
}

/**
 * Returns the UID and read counter in `e` (data sheet §9.3.4.1: one AES-128-CBC block, zero IV, no padding), or null if
 * `e` has the wrong shape or decrypts to any tag byte other than C7. A tag without the counter must not pass: an old
 * value of it could be replayed for ever.
 */
export function decryptPicc(metaKey: Uint8Array, e: string): { uid: Buffer; counter: number } | null {
  if (!/^[0-9A-F]{32}$/.test(e)) return null
  const plain = openPicc(metaKey, e)
  if (plain[0] !== PICC_TAG) return null
  return {
    uid: plain.subarray(1, 1 + UID_BYTES),
    counter: plain.readUIntLE(1 + UID_BYTES, COUNTER_BYTES),
  }
}

/** Decrypts an `e` of 32 hex digits to 16 bytes, unchecked. */
export function openPicc(metaKey: Uint8Array, e: string): Buffer {
  // One CBC block under a zero IV is the plain block cipher.
  const aes = createDecipheriv("aes-128-ecb", metaKey, null).setAutoPadding(false)
  return aes.update(Buffer.from(e, "hex"))
}

/** Derives the MAC key of one read: AES-CMAC of SV2 under the file key (data sheet §9.3.9.1). */
export function sessionMacKey(fileKey: Uint8Array, uid: Uint8Array, counter: number): Buffer {
  return cmac(fileKey, sessionVector(SV2_PREFIX, uid, counter))
}

/** Returns a session vector: a prefix of 6 bytes, the UID and the counter, together one block. */
export function sessionVector(prefix: Uint8Array, uid: Uint8Array, counter: number): Buffer {
  const vector = Buffer.allocUnsafe(prefix.length + UID_BYTES + COUNTER_BYTES)
  vector.set(prefix)
  vector.set(uid, prefix.length)
  vector.writeUIntLE(counter, prefix.length + UID_BYTES, COUNTER_BYTES)
  return vector
}

/**
 * Computes the 8 bytes that a chip sends as `c`: the odd-indexed bytes of the AES-CMAC (AN12196 §4.4.4.2). `covered` is
 * the ASCII text of the URL between the tag's two MAC offsets, empty in the layout with only `e` and `c`.
 */
export function macFor(sessionKey: Uint8Array, covered: Uint8Array = NOTHING): Buffer {
  return oddBytes(cmac(sessionKey, covered))
}

/** Returns the text that `c` covers, with the values filled in. */
export function coveredText(macInput: string, { e, enc = "" }: SunMessage): Buffer {
  return Buffer.from(macInput.replaceAll("{enc}", enc).replaceAll("{e}", e), "latin1")
}

/** Encodes the read counter as in `e` and SV2: 3 bytes, least significant first. */
export function counterBytes(counter: number): Buffer {
  const bytes = Buffer.alloc(COUNTER_BYTES)
  bytes.writeUIntLE(counter, 0, COUNTER_BYTES)
  return bytes
}

/** Throws `RangeError` unless the UID has 7 bytes: a damaged record must not look like a forged message. */
export function requireUid(uid: Uint8Array): void {
  if (uid.length === UID_BYTES) return
  throw new RangeError(
    `The UID of a chip has ${UID_BYTES} bytes, this one has ${uid.length}: import the chip again.`,
  )
}

/** Returns whether `c` covers `enc`; otherwise anyone could put another status into the URL. */
function isCovered(enc: string, c: string | undefined, macInput: string): boolean {
  return c !== undefined && macInput.includes("{enc}") && /^[0-9A-F]{32}$/.test(enc)
}

function oddBytes(full: Buffer): Buffer {
  const half = Buffer.allocUnsafe(full.length / 2)
  for (let index = 0; index < half.length; index++) half[index] = full[2 * index + 1] as number
  return half
}
