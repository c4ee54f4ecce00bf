import { createCipheriv } from "node:crypto"

const BLOCK_BYTES = 16
const ZERO_BLOCK = Buffer.alloc(BLOCK_BYTES)

/** AES-128-CMAC of a message of any length (RFC 4493 §2.4). The key has 16 bytes, and so has the answer. */
export function cmac(key: Uint8Array, message: Uint8Array): Buffer {
  const aes = createCipheriv("aes-128-ecb", key, null).setAutoPadding(false)
  const { k1, k2 } = subkeys(aes.update(ZERO_BLOCK))
  const lastStart = Math.max(0, Math.ceil(message.length / BLOCK_BYTES) - 1) * BLOCK_BYTES

  let chained = ZERO_BLOCK
  for (let start = 0; start < lastStart; start += BLOCK_BYTES) {
    chained = aes.update(xor(chained, message.subarray(start, start + BLOCK_BYTES)))
  }
  const last = message.subarray(lastStart)
  const masked = last.length === BLOCK_BYTES ? xor(k1, last) : xor(k2, padded(last))
  return aes.update(xor(chained, masked))
}

/**
 * The two masks of the last block, from the encrypted zero block: K1 for a full one, K2 for a padded one
 * (RFC 4493 §2.3).
 */
export function subkeys(encryptedZero: Buffer): { k1: Buffer; k2: Buffer } {
  const k1 = doubled(encryptedZero)
  return { k1, k2: doubled(k1) }
}

// Multiplication by x in GF(2^128), polynomial x^128 + x^7 + x^2 + x + 1.
function doubled(block: Buffer): Buffer {
  const result = Buffer.alloc(BLOCK_BYTES)
  let carry = 0
  for (let index = BLOCK_BYTES - 1; index >= 0; index--) {
    const byte = block.readUInt8(index)
    result[index] = (byte << 1) | carry
    carry = byte >> 7
  }
  result[BLOCK_BYTES - 1] = result.readUInt8(BLOCK_BYTES - 1) ^ (carry * 0x87)
  return result
}

function padded(partial: Uint8Array): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(partial)
  block[partial.length] = 0x80
  return block
}

function xor(left: Uint8Array, right: Uint8Array): Buffer {
  const result = Buffer.alloc(BLOCK_BYTES)
  for (let index = 0; index < BLOCK_BYTES; index++) {
    result[index] = (left[index] ?? 0) ^ (right[index] ?? 0)
  }
  return result
}
