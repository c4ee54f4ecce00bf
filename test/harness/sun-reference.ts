import { createCipheriv, createDecipheriv } from "node:crypto"

/**
 * An independent verifier, written as literally as possible from the data sheet NT4H2421Gx and RFC 4493. Only the
 * block cipher comes from elsewhere.
 */
export type ReferenceChip = { uid: Uint8Array; metaKey: Uint8Array; fileKey: Uint8Array }

/** §9.3.4.1, §9.3.9.1, §9.3.9.2: the counter, or null. `input` is the text between the two MAC offsets. */
export function referenceCounter(
  chip: ReferenceChip,
  message: { e: string; c: string | undefined },
  input: string,
): number | null {
  const plain = decryptBlock(chip.metaKey, fromHex(message.e))
  // Table 21: bit 7 UID mirrored, bit 6 counter mirrored, bits 5 and 4 zero, bits 3 to 0 the length of the UID.
  if (plain[0] !== 0b1100_0111) return null
  for (let index = 0; index < 7; index++) if (plain[1 + index] !== chip.uid[index]) return null
  const counter = at(plain, 8) + 256 * at(plain, 9) + 65_536 * at(plain, 10)
  if (message.c === undefined) return counter
  const vector = [0x3c, 0xc3, 0x00, 0x01, 0x00, 0x80, ...chip.uid, at(plain, 8), at(plain, 9), at(plain, 10)]
  const session = referenceCmac(chip.fileKey, vector)
  const full = referenceCmac(
    session,
    [...input].map((letter) => letter.charCodeAt(0)),
  )
  // MACt: S14 || S12 || … of a MAC counted from the right, which are the bytes 1, 3, 5 … from the left.
  const expected = full.filter((_byte, index) => index % 2 === 1)
  return toHex(expected) === message.c ? counter : null
}

/** RFC 4493 §2.4, on bits. */
export function referenceCmac(key: Uint8Array | number[], message: number[]): number[] {
  const zero = encryptBlock(key, new Array(16).fill(0))
  const k1 = shifted(zero)
  const k2 = shifted(k1)
  const isWhole = message.length > 0 && message.length % 16 === 0
  const padded = isWhole ? [...message] : [...message, 0x80]
  while (padded.length % 16 !== 0) padded.push(0)
  let state: number[] = new Array(16).fill(0)
  for (let start = 0; start < padded.length; start += 16) {
    const isLast = start + 16 === padded.length
    const mask = isLast ? (isWhole ? k1 : k2) : new Array(16).fill(0)
    state = encryptBlock(
      key,
      state.map((byte, index) => byte ^ at(padded, start + index) ^ at(mask, index)),
    )
  }
  return state
}

function shifted(block: number[]): number[] {
  const value = BigInt(`0x${toHex(block)}`) << 1n
  const isOver = value >> 128n === 1n
  const reduced = (isOver ? value ^ 0x87n : value) & ((1n << 128n) - 1n)
  return fromHex(reduced.toString(16).padStart(32, "0"))
}

function encryptBlock(key: Uint8Array | number[], block: number[]): number[] {
  const aes = createCipheriv("aes-128-cbc", Uint8Array.from(key), new Uint8Array(16)).setAutoPadding(false)
  return [...aes.update(Uint8Array.from(block))]
}

/** The inverse, by CBC decryption with a zero vector, as in §9.3.4.1. */
function decryptBlock(key: Uint8Array, block: number[]): number[] {
  const aes = createDecipheriv("aes-128-cbc", key, new Uint8Array(16)).setAutoPadding(false)
  return [...aes.update(Uint8Array.from(block))]
}

function at(values: number[], index: number): number {
  return values[index] as number
}

function fromHex(text: string): number[] {
  return (text.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16))
}

function toHex(bytes: number[]): string {
  return bytes
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .toUpperCase()
}
