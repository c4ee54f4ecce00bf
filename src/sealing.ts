import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"

/**
 * Text that only this service can read again: AES-256-GCM under a key derived from the service secret for one
 * `purpose` (HKDF-SHA-256, RFC 5869), as base64url of version (1 byte), nonce (12), sealed text, tag (16).
 * It opens only for the same `boundTo`, so that a sealed text cannot be moved to another row.
 */
export function seal(secret: string, purpose: string, boundTo: string, text: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const gcm = createCipheriv("aes-256-gcm", derivedKey(secret, purpose), nonce).setAAD(Buffer.from(boundTo))
  const sealed = [gcm.update(text, "utf8"), gcm.final()]
  return Buffer.concat([Uint8Array.of(VERSION), nonce, ...sealed, gcm.getAuthTag()]).toString("base64url")
}

/** The text again. Throws `SealBroken` when it was changed, moved, or sealed under another secret. */
export function unseal(secret: string, purpose: string, boundTo: string, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64url")
  if (bytes.length < TEXT_START + TAG_BYTES || bytes[0] !== VERSION)
    throw new SealBroken(`a sealed text for ${purpose} is not in format ${VERSION}`)
  const gcm = createDecipheriv("aes-256-gcm", derivedKey(secret, purpose), bytes.subarray(1, TEXT_START))
    .setAAD(Buffer.from(boundTo))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  const text = gcm.update(bytes.subarray(TEXT_START, -TAG_BYTES))
  try {
    return Buffer.concat([text, gcm.final()]).toString("utf8")
  } catch {
    throw new SealBroken(`a sealed text for ${purpose} was changed or sealed under another SERVICE_SECRET`)
  }
}

export class SealBroken extends Error {
  override name = "SealBroken"
}

/** A key of 32 bytes for one purpose; keys of different purposes say nothing about each other. */
export function derivedKey(secret: string, purpose: string): Buffer {
  const name = `${purpose}\n${secret}`
  const known = keys.get(name)
  if (known) return known
  const key = Buffer.from(hkdfSync("sha256", secret, "", `${purpose}, format ${VERSION}`, 32))
  keys.set(name, key)
  return key
}

const keys = new Map<string, Buffer>()

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const TEXT_START = 1 + NONCE_BYTES
