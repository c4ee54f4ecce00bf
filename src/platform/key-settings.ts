import type { Hex } from "viem"
import { ConfigError } from "./config-error.ts"

/** A lane's signer: a private key, or the name of a key that stays in a cloud's key service. */
export type SignerKey = Hex | `aws-kms:${string}` | `gcp-kms:${string}`

/** Reads `SIGNER_KEYS`, a comma-separated list. Throws `ConfigError`. */
export function signerKeys(setting: string): SignerKey[] {
  const texts = setting.split(",").map((text) => text.trim())
  const keys: SignerKey[] = []
  for (const [index, text] of texts.filter((text) => text !== "").entries()) {
    const wrong = (what: string) => new ConfigError(`SIGNER_KEYS: key number ${index + 1} ${what}`)
    if (!isSignerKey(text)) throw wrong(takes(text))
    if (keys.some((key) => isSame(key, text))) throw wrong("is a duplicate; every lane needs its own key")
    keys.push(text)
  }
  return keys
}

/** Reads `AUTHORIZER_KEY`. Throws `ConfigError`. */
export function authorizerKey(setting: string): Hex | null {
  if (!setting) return null
  if (!isPrivateKey(setting))
    throw new ConfigError("AUTHORIZER_KEY must be a private key: 0x and 64 hexadecimal digits")
  return setting
}

function isSignerKey(text: string): text is SignerKey {
  return isPrivateKey(text) || awsKey.test(text) || gcpKey.test(text)
}

/** An ARN, an alias, or the id of a key in the process's own region. */
const awsKey =
  /^aws-kms:(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)\/\S+|alias\/\S+|(mrk-)?[0-9a-fA-F-]{32,36})$/
const gcpKey =
  /^gcp-kms:projects\/[^/\s]+\/locations\/[^/\s]+\/keyRings\/[^/\s]+\/cryptoKeys\/[^/\s]+\/cryptoKeyVersions\/\d+$/

/** Explains what is accepted without quoting the text, which may be a private key with a typo. */
function takes(text: string): string {
  if (text.startsWith("aws-kms:"))
    return "does not name a key: aws-kms: takes an ARN, an alias or the id of a key"
  if (text.startsWith("gcp-kms:"))
    return "does not name a key: gcp-kms: takes projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/…"
  return "must be a private key, 0x and 64 hexadecimal digits, or aws-kms: or gcp-kms: and the name of a key"
}

/** The order of secp256k1 (SEC 2, section 2.4.1): a private key is between 0 and it, both excluded. */
export const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

function isPrivateKey(text: string): text is Hex {
  return /^0x[0-9a-fA-F]{64}$/.test(text) && BigInt(text) > 0n && BigInt(text) < curveOrder
}

/**
 * Returns whether two settings name the same key. Two names in a key service may also mean one key; their addresses
 * show that later.
 */
function isSame(one: SignerKey, other: SignerKey): boolean {
  return one.startsWith("0x") && other.startsWith("0x") ? BigInt(one) === BigInt(other) : one === other
}
