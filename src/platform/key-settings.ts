import type { Hex } from "viem"
import { ConfigError } from "./config-error.ts"

/** Who signs for a lane: a private key, or a key that stays in a cloud's key service and is known by its name. */
export type SignerKey = Hex | `aws-kms:${string}` | `gcp-kms:${string}`

/** Reads `SIGNER_KEYS`: keys with commas between them. Throws `ConfigError`. */
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
    throw new ConfigError("AUTHORIZER_KEY is not 0x and the 64 digits of a private key")
  return setting
}

function isSignerKey(text: string): text is SignerKey {
  return isPrivateKey(text) || awsKey.test(text) || gcpKey.test(text)
}

/** An ARN, an alias, or the id of a key in the region of the process. */
const awsKey =
  /^aws-kms:(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)\/\S+|alias\/\S+|(mrk-)?[0-9a-fA-F-]{32,36})$/
const gcpKey =
  /^gcp-kms:projects\/[^/\s]+\/locations\/[^/\s]+\/keyRings\/[^/\s]+\/cryptoKeys\/[^/\s]+\/cryptoKeyVersions\/\d+$/

/** Does not quote what was given: it may be a private key with a typo. */
function takes(text: string): string {
  if (text.startsWith("aws-kms:")) return "names no key: aws-kms: takes an ARN, an alias or the id of a key"
  if (text.startsWith("gcp-kms:"))
    return "names no key: gcp-kms: takes projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/…"
  return "is not 0x and the 64 digits of a private key, nor aws-kms: or gcp-kms: and the name of one"
}

/** The order of secp256k1 (SEC 2, section 2.4.1): a private key is above 0 and below it. */
export const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

function isPrivateKey(text: string): text is Hex {
  return /^0x[0-9a-fA-F]{64}$/.test(text) && BigInt(text) > 0n && BigInt(text) < curveOrder
}

/** Two names in a key service may still mean one key; that shows once it has told its address. */
function isSame(one: SignerKey, other: SignerKey): boolean {
  return one.startsWith("0x") && other.startsWith("0x") ? BigInt(one) === BigInt(other) : one === other
}
