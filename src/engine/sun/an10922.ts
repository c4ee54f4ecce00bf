import { type Cipheriv, createCipheriv } from "node:crypto"
import { subkeys } from "./cmac.ts"

const BLOCK_BYTES = 16
const PADDED_BYTES = 32
const DIVERSIFICATION_CONSTANT = 0x01

/** For shorter inputs AN10922 differs from a plain CMAC, which much software mistakes for AN10922. */
const MIN_INPUT_BYTES = 16
const MAX_INPUT_BYTES = 31

/**
 * Derives a key as in NXP AN10922 §2.2 for AES-128: the last block of AES-128-CBC, under a zero IV, of `01`, the input
 * and padding, always to 32 bytes, with the last block masked as in a CMAC. The input has 16 to 31 bytes: with fewer,
 * AN10922 and plain CMAC differ, and no encoding station would notice. Throws `RangeError` on any other length.
 */
export function diversify(masterKey: Uint8Array, input: Uint8Array): Buffer {
  if (input.length < MIN_INPUT_BYTES || input.length > MAX_INPUT_BYTES)
    throw new RangeError(
      `a diversification input has ${MIN_INPUT_BYTES} to ${MAX_INPUT_BYTES} bytes, not ${input.length}`,
    )
  return diversifyAnyLength(masterKey, input)
}

/** Derives a key from 1 to 31 bytes of input, only to check keys that others made. */
export function diversifyAnyLength(masterKey: Uint8Array, input: Uint8Array): Buffer {
  const { aes, k1, k2 } = openedMaster(masterKey)
  const padded = Buffer.alloc(PADDED_BYTES)
  padded[0] = DIVERSIFICATION_CONSTANT
  padded.set(input, 1)
  const isFull = input.length === MAX_INPUT_BYTES
  if (!isFull) padded[input.length + 1] = 0x80
  const first = aes.update(padded.subarray(0, BLOCK_BYTES))
  const last = padded.subarray(BLOCK_BYTES)
  const mask = isFull ? k1 : k2
  for (let index = 0; index < BLOCK_BYTES; index++)
    last[index] = last.readUInt8(index) ^ first.readUInt8(index) ^ mask.readUInt8(index)
  return aes.update(last)
}

/** Returns what every derivation from a master needs; in ECB mode a cipher keeps no state between blocks. */
function openedMaster(masterKey: Uint8Array): OpenedMaster {
  const known = openedMasters.get(masterKey)
  if (known) return known
  const aes = createCipheriv("aes-128-ecb", masterKey, null).setAutoPadding(false)
  const opened = { aes, ...subkeys(aes.update(Buffer.alloc(BLOCK_BYTES))) }
  openedMasters.set(masterKey, opened)
  return opened
}

type OpenedMaster = { aes: Cipheriv } & ReturnType<typeof subkeys>

const openedMasters = new WeakMap<Uint8Array, OpenedMaster>()
