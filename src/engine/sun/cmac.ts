import { type Cipheriv, createCipheriv } from "node:crypto"

const BLOCK_BYTES = 16
const ZERO_BLOCK = Buffer.alloc(BLOCK_BYTES)

/** Computes the AES-128-CMAC of a message of any length (RFC 4493 §2.4). Key and result have 16 bytes. */
export function cmac(key: Uint8Array, message: Uint8Array): Buffer {
  return cmacUnder(key)(message)
}

/** Returns the CMAC function of a key, prepared once for many messages. */
export function cmacUnder(key: Uint8Array): (message: Uint8Array) => Buffer {
  const aes = createCipheriv("aes-128-ecb", key, null).setAutoPadding(false)
  const { k1, k2 } = subkeys(aes.update(ZERO_BLOCK))
  return (message) => chain(aes, k1, k2, message)
}

/**
 * Derives the two masks of the last block from the encrypted zero block: K1 for a full block, K2
 * for a padded one (RFC 4493 §2.3).
 */
export function subkeys(encryptedZero: Buffer): { k1: Buffer; k2: Buffer } {
  const k1 = doubled(encryptedZero)
  return { k1, k2: doubled(k1) }
}

function chain(aes: Cipheriv, k1: Buffer, k2: Buffer, message: Uint8Array): Buffer {
  const lastStart = Math.max(0, Math.ceil(message.length / BLOCK_BYTES) - 1) * BLOCK_BYTES
  const lastBytes = message.length - lastStart
  const block = new Uint8Array(BLOCK_BYTES)
  for (let start = 0; start < lastStart; start += BLOCK_BYTES) {
    mix(block, message, start, BLOCK_BYTES)
    block.set(aes.update(block))
  }
  mix(block, message, lastStart, lastBytes)
  if (lastBytes < BLOCK_BYTES) block[lastBytes] = byteOf(block, lastBytes) ^ 0x80
  mix(block, lastBytes === BLOCK_BYTES ? k1 : k2, 0, BLOCK_BYTES)
  return aes.update(block)
}

/** XORs `size` bytes of `from` into the start of the block. */
function mix(block: Uint8Array, from: Uint8Array, start: number, size: number): void {
  for (let index = 0; index < size; index++) block[index] = byteOf(block, index) ^ byteOf(from, start + index)
}

// Multiplies by x in GF(2^128) with the polynomial x^128 + x^7 + x^2 + x + 1.
function doubled(block: Buffer): Buffer {
  const result = Buffer.allocUnsafe(BLOCK_BYTES)
  let carry = 0
  for (let index = BLOCK_BYTES - 1; index >= 0; index--) {
    const byte = byteOf(block, index)
    result[index] = (byte << 1) | carry
    carry = byte >> 7
  }
  result[BLOCK_BYTES - 1] = byteOf(result, BLOCK_BYTES - 1) ^ (carry * 0x87)
  return result
}

function byteOf(bytes: Uint8Array, index: number): number {
  return bytes[index] as number
}
