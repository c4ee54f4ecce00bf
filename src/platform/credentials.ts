import { hash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"
import type { CredentialKind } from "./caller.ts"

/** A new credential: `token` is shown once, `hash` is stored, and `hint` distinguishes keys in lists. */
type NewCredential = { token: string; hash: string; hint: string }

/**
 * Creates a credential: the kind's prefix, 33 random base62 characters (196 bits) and a checksum of 6, so that a
 * mistyped one needs no look-up.
 */
export function newCredential(kind: CredentialKind): NewCredential {
  const body = prefixes[kind] + randomCharacters(RANDOM_LENGTH)
  const token = body + checksumOf(body)
  return { token, hash: hashOf(token), hint: `${prefixes[kind]}…${token.slice(-HINT_LENGTH)}` }
}

/** Returns the kind that a bearer token has by its prefix alone; null for anything else, such as a JWT. */
export function kindOf(token: string): CredentialKind | null {
  return kinds.find((kind) => token.startsWith(prefixes[kind])) ?? null
}

/** Returns whether the token has a known prefix, the length and alphabet of its kind, and a correct checksum. */
export function isWellFormed(token: string): boolean {
  const kind = kindOf(token)
  if (!kind) return false
  const characters = token.slice(prefixes[kind].length)
  if (characters.length !== RANDOM_LENGTH + CHECKSUM_LENGTH || !/^[0-9A-Za-z]+$/.test(characters))
    return false
  return token.slice(-CHECKSUM_LENGTH) === checksumOf(token.slice(0, -CHECKSUM_LENGTH))
}

/** Returns a token's SHA-256 in hexadecimal, which is stored. With 196 random bits, no salt is needed. */
export function hashOf(token: string): string {
  return hash("sha256", token, "hex")
}

const prefixes = {
  api_key: "end_sk_",
  session_token: "end_sess_",
  publishable_key: "end_pk_live_",
} as const satisfies Record<CredentialKind, string>

const kinds = Object.keys(prefixes) as CredentialKind[]

const RANDOM_LENGTH = 33
const CHECKSUM_LENGTH = 6
const HINT_LENGTH = 4
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const REJECTED_FROM = 256 - (256 % ALPHABET.length)

/** Redraws bytes for which the remainder would favour some characters. */
function randomCharacters(length: number): string {
  let text = ""
  while (text.length < length)
    for (const byte of randomBytes(length - text.length))
      if (byte < REJECTED_FROM) text += ALPHABET[byte % ALPHABET.length]
  return text
}

/** Returns the CRC-32 (ISO 3309) of the prefix and the random characters, as six base62 digits. */
function checksumOf(body: string): string {
  let rest = crc32(body)
  let digits = ""
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits
    rest = Math.floor(rest / ALPHABET.length)
  }
  return digits
}
