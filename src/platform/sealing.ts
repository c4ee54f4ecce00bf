import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto"

/**
 * The service's secrets: `current` seals and opens; what was sealed under `previous`, before a rotation, still opens.
 */
export type Secret = { readonly current: string; readonly previous: string | null }

/** Text that only this service can read again, as base64url of what `sealBytes` answers. */
export function seal(secret: Secret, purpose: string, boundTo: string, text: string): string {
  return sealBytes(secret, purpose, Buffer.from(boundTo), Buffer.from(text)).toString("base64url")
}

/** The text again. Throws `SealBroken` when it was changed, moved, or sealed under another secret. */
export function unseal(secret: Secret, purpose: string, boundTo: string, sealed: string): string {
  return unsealBytes(secret, purpose, Buffer.from(boundTo), Buffer.from(sealed, "base64url")).toString("utf8")
}

/**
 * Bytes that only this service can read again: AES-256-GCM (NIST SP 800-38D) under a key derived from the current
 * secret for one `purpose`, as version (1 byte), nonce (12), sealed bytes (as many as were given), tag (16). They open
 * only for the same `boundTo`, so that what is sealed cannot be moved to another row.
 */
export function sealBytes(secret: Secret, purpose: string, boundTo: Uint8Array, bytes: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const gcm = createCipheriv("aes-256-gcm", derivedKey(secret.current, purpose), nonce).setAAD(boundTo)
  const sealed = [gcm.update(bytes), gcm.final()]
  return Buffer.concat([Uint8Array.of(SEAL_VERSION), nonce, ...sealed, gcm.getAuthTag()])
}

/** The bytes again. Throws `SealBroken` when they were changed, moved, or sealed under another secret. */
export function unsealBytes(
  secret: Secret,
  purpose: string,
  boundTo: Uint8Array,
  sealed: Uint8Array,
): Buffer {
  if (sealed.length < SEAL_BYTES || sealed[0] !== SEAL_VERSION)
    throw new SealBroken(`what was sealed for ${purpose} is not in format ${SEAL_VERSION}`)
  const opened =
    openWith(secret.current, purpose, boundTo, sealed) ??
    (secret.previous === null ? null : openWith(secret.previous, purpose, boundTo, sealed))
  if (opened) return opened
  throw new SealBroken(`what was sealed for ${purpose} was changed or sealed under another SERVICE_SECRET`)
}

/** Null when the bytes were not sealed under this secret for this `boundTo`. */
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

/** A sealed text, anew under the current secret; null where it is already. Throws `SealBroken`. */
export function reseal(secret: Secret, purpose: string, boundTo: string, sealed: string): string | null {
  const bytes = resealBytes(secret, purpose, Buffer.from(boundTo), Buffer.from(sealed, "base64url"))
  return bytes?.toString("base64url") ?? null
}

/** The same for bytes. */
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

/** The first byte of everything that is sealed. */
export const SEAL_VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** How many bytes sealing adds. */
export const SEAL_BYTES = 1 + NONCE_BYTES + TAG_BYTES

export class SealBroken extends Error {
  override name = "SealBroken"
}

/**
 * A key of 32 bytes for one purpose (HKDF-SHA-256, RFC 5869); keys of different purposes say nothing about each other.
 */
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
 * A process has at most two secrets and a handful of purposes. Named by a digest, so that a secret itself is kept
 * nowhere.
 */
const lastKeys = new Map<string, Buffer>()
const MOST_KEYS = 16
