import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto"

/** The service's secrets: `current` seals and unseals; `previous`, the one before a rotation, only unseals. */
export type Secret = { readonly current: string; readonly previous: string | null }

/** Seals text that only this service can read, as base64url of what `sealBytes` returns. */
export function seal(secret: Secret, purpose: string, boundTo: string, text: string): string {
  return sealBytes(secret, purpose, Buffer.from(boundTo), Buffer.from(text)).toString("base64url")
}

/** Unseals text. Throws `SealBroken` if it was changed, moved, or sealed with another secret. */
export function unseal(secret: Secret, purpose: string, boundTo: string, sealed: string): string {
  return unsealBytes(secret, purpose, Buffer.from(boundTo), Buffer.from(sealed, "base64url")).toString("utf8")
}

/**
 * Seals bytes with AES-256-GCM (NIST SP 800-38D) and a key derived from the current secret for one `purpose`. Returns
 * the version (1 byte), nonce (12), ciphertext (same length as the input) and tag (16). They unseal only with the same
 * `boundTo`, so that a sealed value cannot be moved to another row.
 */
export function sealBytes(secret: Secret, purpose: string, boundTo: Uint8Array, bytes: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const gcm = createCipheriv("aes-256-gcm", derivedKey(secret.current, purpose), nonce).setAAD(boundTo)
  const sealed = [gcm.update(bytes), gcm.final()]
  return Buffer.concat([Uint8Array.of(SEAL_VERSION), nonce, ...sealed, gcm.getAuthTag()])
}

/** Unseals bytes. Throws `SealBroken` if they were changed, moved, or sealed with another secret. */
export function unsealBytes(
  secret: Secret,
  purpose: string,
  boundTo: Uint8Array,
  sealed: Uint8Array,
): Buffer {
  if (sealed.length < SEAL_BYTES || sealed[0] !== SEAL_VERSION)
    throw new SealBroken(`what was encrypted for ${purpose} is not in format ${SEAL_VERSION}`)
  const opened =
    openWith(secret.current, purpose, boundTo, sealed) ??
    (secret.previous === null ? null : openWith(secret.previous, purpose, boundTo, sealed))
  if (opened) return opened
  throw new SealBroken(
    `what was encrypted for ${purpose} was changed, or encrypted with another SERVICE_SECRET`,
  )
}

/** Returns null if the bytes were not sealed with this secret for this `boundTo`. */
function openWith(secret: string, purpose: string, boundTo: Uint8Array, sealed: Uint8Array): Buffer | null {
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
  const gcm = createDecipheriv("aes-256-gcm", derivedKey(secret, purpose), nonce)
    .setAAD(boundTo)
    .setAuthTag(sealed.subarray(-TAG_BYTES))
  const opened = gcm.update(sealed.subarray(1 + NONCE_BYTES, -TAG_BYTES))
  try {
    return Buffer.concat([opened, gcm.final()])
  } catch {
    return null
  }
}

/** Seals a sealed text again with the current secret. Returns null if it already is. Throws `SealBroken`. */
export function reseal(secret: Secret, purpose: string, boundTo: string, sealed: string): string | null {
  const bytes = resealBytes(secret, purpose, Buffer.from(boundTo), Buffer.from(sealed, "base64url"))
  return bytes?.toString("base64url") ?? null
}

/** Does the same for bytes. */
export function resealBytes(
  secret: Secret,
  purpose: string,
  boundTo: Uint8Array,
  sealed: Uint8Array,
): Buffer | null {
  const opened = unsealBytes(secret, purpose, boundTo, sealed)
  if (openWith(secret.current, purpose, boundTo, sealed)) return null
  return sealBytes(secret, purpose, boundTo, opened)
}

/** The first byte of every sealed value. */
export const SEAL_VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** How many bytes sealing adds. */
export const SEAL_BYTES = 1 + NONCE_BYTES + TAG_BYTES

export class SealBroken extends Error {
  override name = "SealBroken"
}

/** Returns a key of 32 bytes for one purpose (HKDF-SHA-256, RFC 5869). Keys of different purposes are independent. */
export function derivedKey(secret: string, purpose: string): Buffer {
  const name = `${purpose} ${createHash("sha256").update(secret).digest("base64url")}`
  const known = lastKeys.get(name)
  if (known) return known
  const key = Buffer.from(hkdfSync("sha256", secret, "", `${purpose}, format ${SEAL_VERSION}`, 32))
  const [oldest] = lastKeys.keys()
  if (oldest !== undefined && lastKeys.size >= MOST_KEYS) lastKeys.delete(oldest)
  lastKeys.set(name, key)
  return key
}

/**
 * A process has at most two secrets and a handful of purposes. The map's names contain a digest, so that it does not
 * hold the secrets themselves.
 */
const lastKeys = new Map<string, Buffer>()
const MOST_KEYS = 16
