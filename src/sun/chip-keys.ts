import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"

/** The two AES keys of a chip that the service holds, 16 bytes each. */
export type ChipKeys = { readonly metaKey: Uint8Array; readonly fileKey: Uint8Array }

const VERSION = 1
const NONCE_BYTES = 12
const KEY_BYTES = 16
const TAG_BYTES = 16
const KEYS_START = 1 + NONCE_BYTES
const TAG_START = KEYS_START + 2 * KEY_BYTES
const WRAPPED_BYTES = TAG_START + TAG_BYTES

export class ChipKeysUnreadable extends Error {
  override readonly name = "ChipKeysUnreadable"
}

/**
 * The keys as they are stored: AES-256-GCM under a key derived from the service secret, as base64url of
 * version (1 byte), nonce (12), sealed meta key and file key (32), tag (16). The value opens only for the same
 * `chipId`, spelled the same.
 */
export function wrapChipKeys(secret: string, chipId: string, keys: ChipKeys): string {
  if (keys.metaKey.length !== KEY_BYTES || keys.fileKey.length !== KEY_BYTES) {
    throw new RangeError(
      `The keys of chip ${chipId} must have ${KEY_BYTES} bytes each: import 32 hex digits for each.`,
    )
  }
  const nonce = randomBytes(NONCE_BYTES)
  const gcm = createCipheriv("aes-256-gcm", wrappingKey(secret), nonce).setAAD(boundTo(chipId))
  const sealed = [gcm.update(keys.metaKey), gcm.update(keys.fileKey), gcm.final()]
  return Buffer.concat([Uint8Array.of(VERSION), nonce, ...sealed, gcm.getAuthTag()]).toString("base64url")
}

/** The keys of this chip. Throws ChipKeysUnreadable when the value is not one that wrapChipKeys made for it. */
export function unwrapChipKeys(secret: string, chipId: string, wrapped: string): ChipKeys {
  const bytes = Buffer.from(wrapped, "base64url")
  if (bytes.length !== WRAPPED_BYTES || bytes[0] !== VERSION) {
    throw new ChipKeysUnreadable(
      `The stored keys of chip ${chipId} are not in format ${VERSION}: they were damaged, or written by a newer ` +
        "release. Run the release that wrote them, or import the chip again.",
    )
  }
  const nonce = bytes.subarray(1, KEYS_START)
  const gcm = createDecipheriv("aes-256-gcm", wrappingKey(secret), nonce)
    .setAAD(boundTo(chipId))
    .setAuthTag(bytes.subarray(TAG_START))
  const opened = gcm.update(bytes.subarray(KEYS_START, TAG_START))
  try {
    gcm.final()
  } catch {
    throw new ChipKeysUnreadable(
      `The stored keys of chip ${chipId} do not open: they were changed, belong to another chip, or were wrapped ` +
        "under another SERVICE_SECRET. Start with the secret they were written with, or import the chip again.",
    )
  }
  return { metaKey: opened.subarray(0, KEY_BYTES), fileKey: opened.subarray(KEY_BYTES) }
}

function wrappingKey(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `chip keys, format ${VERSION}`, 32))
}

function boundTo(chipId: string): Buffer {
  return Buffer.concat([Uint8Array.of(VERSION), Buffer.from(chipId)])
}
