import {
  resealBytes,
  SEAL_BYTES,
  SEAL_VERSION,
  SealBroken,
  type Secret,
  sealBytes,
  unsealBytes,
} from "../../platform/sealing.ts"

/** The two AES keys of a chip that the service has, 16 bytes each. */
export type ChipKeys = { readonly metaKey: Uint8Array; readonly fileKey: Uint8Array }

const PURPOSE = "chip keys"
const KEY_BYTES = 16

export class ChipKeysUnreadable extends Error {
  override readonly name = "ChipKeysUnreadable"
}

/**
 * Returns the keys as they are stored: meta key and file key sealed by `sealBytes`, as base64url. The value opens only
 * for the same `chipId` in the same spelling.
 */
export function wrapChipKeys(secret: Secret, chipId: string, keys: ChipKeys): string {
  if (keys.metaKey.length !== KEY_BYTES || keys.fileKey.length !== KEY_BYTES) {
    throw new RangeError(
      `The keys of chip ${chipId} must have ${KEY_BYTES} bytes each: import 32 hex digits for each.`,
    )
  }
  const both = Buffer.concat([keys.metaKey, keys.fileKey])
  return sealBytes(secret, PURPOSE, boundTo(chipId), both).toString("base64url")
}

/** Returns the keys of a chip. Throws `ChipKeysUnreadable` if `wrapChipKeys` did not make the value for it. */
export function unwrapChipKeys(secret: Secret, chipId: string, wrapped: string): ChipKeys {
  const sealed = Buffer.from(wrapped, "base64url")
  if (sealed.length !== SEAL_BYTES + 2 * KEY_BYTES || sealed[0] !== SEAL_VERSION) {
    throw new ChipKeysUnreadable(
      `The stored keys of chip ${chipId} are not in format ${SEAL_VERSION}: they were damaged, or written by a newer ` +
        "release. Run the release that wrote them, or import the chip again.",
    )
  }
  try {
    const opened = unsealBytes(secret, PURPOSE, boundTo(chipId), sealed)
    return { metaKey: opened.subarray(0, KEY_BYTES), fileKey: opened.subarray(KEY_BYTES) }
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error
    throw new ChipKeysUnreadable(
      `The stored keys of chip ${chipId} cannot be decrypted: they were changed, belong to another chip, or were encrypted ` +
        "with another SERVICE_SECRET. Start with the secret they were encrypted with, or import the chip again.",
    )
  }
}

/** Returns the value resealed under the current secret; null if it already is. Throws `ChipKeysUnreadable`. */
export function rewrapChipKeys(secret: Secret, chipId: string, wrapped: string): string | null {
  unwrapChipKeys(secret, chipId, wrapped)
  const anew = resealBytes(secret, PURPOSE, boundTo(chipId), Buffer.from(wrapped, "base64url"))
  return anew?.toString("base64url") ?? null
}

function boundTo(chipId: string): Buffer {
  return Buffer.concat([Uint8Array.of(SEAL_VERSION), Buffer.from(chipId)])
}
