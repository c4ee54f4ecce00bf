import { createPublicKey, type KeyObject } from "node:crypto"
import { eq } from "drizzle-orm"
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWK,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose"
import { type IdentitySettings, identityTokenUses, organizations } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { readBounded } from "../../platform/bounded-body.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { Unavailable } from "../../platform/unavailable.ts"

/** The customer named by a verified identity token, and what makes the token single-use. */
export type IdentityProof = { customer_id: string; jti: string; expires_at: Date }

/**
 * Verifies a body's identity token; returns null without one. An invalid token is `validation.failed` on its field, not
 * a 401, for which clients would drop a valid session. Call it before the database transaction: it may fetch the JWKS.
 */
export async function checkIdentityToken(
  context: Context,
  caller: Caller,
  token: string | undefined,
): Promise<IdentityProof | null> {
  if (token === undefined) return null
  const [organization] = await context.db.read
    .select({ identity: organizations.identity })
    .from(organizations)
    .where(eq(organizations.id, caller.organization_id))
  if (!organization?.identity)
    throw refused(
      "the organization has no sign-in configured: leave this field out, or ask the operator to configure one",
    )
  return proofOf(await verified(organization.identity, token, context.clock()), context.clock())
}

/**
 * Marks the token as used, in the database transaction that records what it was used for. Throws `validation.failed`.
 */
export async function useIdentityToken(turn: Turn, caller: Caller, proof: IdentityProof): Promise<void> {
  const used = await turn.tx
    .insert(identityTokenUses)
    .values({ organization_id: caller.organization_id, jti: proof.jti, expires_at: proof.expires_at })
    .onConflictDoNothing()
    .returning({ jti: identityTokenUses.jti })
  if (used.length === 0) throw refused("it was used before: ask the sign-in for a new one")
}

/**
 * Returns the settings as stored. `public_key` is a PEM (SPKI or certificate) or a JWK. Throws `validation.failed` on a
 * wrong setting, including a private or symmetric key.
 */
export function requireIdentitySettings(settings: {
  issuer: string
  audience: string
  jwks_url?: string | undefined
  public_key?: string | undefined
}): IdentitySettings {
  const { issuer, audience, jwks_url, public_key } = settings
  if (issuer === "") throw fieldError("issuer", "must not be empty")
  if (audience === "") throw fieldError("audience", "must not be empty")
  if (jwks_url !== undefined) {
    return { issuer, audience, jwks_url: requireKeysAddress(jwks_url) }
  }
  if (public_key === undefined) throw fieldError("jwks_url", "is required, unless there is a public_key")
  algorithmsOf(publicKeyOf(public_key))
  return { issuer, audience, public_key }
}

/** Checks the URL as a browser would open it: `http://localhost:1@evil.test` is on evil.test. */
function requireKeysAddress(text: string): string {
  const url = URL.parse(text)
  const isHere = url?.protocol === "http:" && ["localhost", "127.0.0.1"].includes(url.hostname)
  if (!url || !(isHere || url.protocol === "https:") || /\s/.test(text))
    throw fieldError("jwks_url", "must be an https URL; http is for localhost only")
  if (url.username || url.password) throw fieldError("jwks_url", "must not contain a user name or password")
  return url.href
}

/**
 * Fetches the keys at a sign-in's address, as the first identity token would. Returns how many there are; throws
 * `Unavailable`, with the cause, if they cannot be fetched.
 */
export async function countKeysAt(url: string, now: Date): Promise<number> {
  const known = keySetOf(url)
  await fetchKeys(known, url, now)
  return known.keys.jwks()?.keys.length ?? 0
}

const MAX_LIFETIME_SECONDS = 600
/** How far the clocks of the sign-in and of this service may differ. */
const CLOCK_TOLERANCE_SECONDS = 5
const JWKS_TIMEOUT_MILLISECONDS = 3_000
/** More than hundreds of keys need; each token costs time with all of it. */
const MAX_JWKS_BYTES = 256 * 1_024
/** How many keys are tried for a token that does not say which one signed it. */
const MAX_TRIED_KEYS = 20
const rsaAlgorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
const curveAlgorithms: Record<string, string[]> = {
  prime256v1: ["ES256"],
  "P-256": ["ES256"],
  secp384r1: ["ES384"],
  "P-384": ["ES384"],
  secp521r1: ["ES512"],
  "P-521": ["ES512"],
}
const edwardsAlgorithms = ["EdDSA", "Ed25519"]
const allAlgorithms = [
  ...new Set([...rsaAlgorithms, ...Object.values(curveAlgorithms).flat(), ...edwardsAlgorithms]),
]

/** One cache of keys per URL, shared by all requests. */
const keySets = new Map<string, KeySet>()
const MAX_KEY_SETS = 1_000

type KeySet = {
  keys: ReturnType<typeof createRemoteJWKSet>
  failure: { at: Date; cause: string } | null
}

/** How long to wait before fetching the keys of a sign-in again after a failure. */
const REST_MILLISECONDS = 10_000

async function verified(settings: IdentitySettings, token: string, at: Date): Promise<JWTPayload> {
  const expected: JWTVerifyOptions = {
    issuer: settings.issuer,
    audience: settings.audience,
    currentDate: at,
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    requiredClaims: ["exp", "sub", "jti"],
  }
  try {
    if (settings.jwks_url) {
      return await verifiedAt(settings.jwks_url, token, { ...expected, algorithms: allAlgorithms }, at)
    }
    const key = publicKeyOf(settings.public_key ?? "")
    return (await jwtVerify(token, key, { ...expected, algorithms: algorithmsOf(key) })).payload
  } catch (error) {
    throw refusalOf(error)
  }
}

/**
 * Verifies a token with the sign-in's keys. If no fetched key fits, fetches them again, since there may be a newer one;
 * only this request waits for that. Throws `Unavailable` while the keys cannot be fetched.
 */
async function verifiedAt(
  url: string,
  token: string,
  expected: JWTVerifyOptions,
  now: Date,
): Promise<JWTPayload> {
  const known = keySetOf(url)
  const { keys } = known
  const keyOf: JWTVerifyGetKey = async (...asked) => {
    if (!keys.fresh) await fetchKeys(known, url, now)
    return await fetchedKeys(keys)(...asked)
  }
  try {
    return await verifiedByAny(token, keyOf, expected)
  } catch (error) {
    if (!isOfNoKey(error) || keys.coolingDown) throw error
    await fetchKeys(known, url, now)
    return await verifiedByAny(token, keyOf, expected)
  }
}

function isOfNoKey(error: unknown): boolean {
  return (
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys
  )
}

/** Verifies a token with whichever key fits: it need not name its key (RFC 7515, section 4.1.4). */
async function verifiedByAny(
  token: string,
  keys: JWTVerifyGetKey,
  expected: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, expected)).payload
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let tried = 0
    for await (const key of error) {
      if (tried++ === MAX_TRIED_KEYS)
        throw refused(
          `it must have the kid of one key: more than ${MAX_TRIED_KEYS} of the organization's sign-in fit it`,
        )
      const payload = await payloadBy(token, key, expected)
      if (payload) return payload
    }
    throw error
  }
}

/** Returns null if the token was signed with another key. */
async function payloadBy(
  token: string,
  key: CryptoKey,
  expected: JWTVerifyOptions,
): Promise<JWTPayload | null> {
  try {
    return (await jwtVerify(token, key, expected)).payload
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed || isUnusable(error)) return null
    throw error
  }
}

function proofOf(payload: JWTPayload, at: Date): IdentityProof {
  const { sub, jti, exp = 0 } = payload
  if (!isName(sub)) throw refused("its sub must be a text of 1 to 256 characters")
  if (!isName(jti)) throw refused("its jti must be a text of 1 to 256 characters")
  const lastExpiry = at.getTime() / 1000 + MAX_LIFETIME_SECONDS + CLOCK_TOLERANCE_SECONDS
  if (exp > lastExpiry) throw refused("its exp is more than 10 minutes away")
  return { customer_id: sub, jti, expires_at: new Date((exp + CLOCK_TOLERANCE_SECONDS) * 1000) }
}

function isName(claim: unknown): claim is string {
  return (
    typeof claim === "string" &&
    claim.length >= 1 &&
    claim.length <= 256 &&
    claim.isWellFormed() &&
    !/\p{Cc}/u.test(claim)
  )
}

async function fetchKeys(known: KeySet, url: string, now: Date): Promise<void> {
  const { keys, failure } = known
  const isResting = failure && Math.abs(now.getTime() - failure.at.getTime()) < REST_MILLISECONDS
  if (isResting) throw new Unavailable(failure.cause)
  try {
    await keys.reload()
  } catch (error) {
    const cause = `the keys at ${new URL(url).origin} cannot be fetched: ${(error as Error).message}`
    known.failure = { at: now, cause }
    throw new Unavailable(cause)
  }
}

function fetchedKeys(keys: KeySet["keys"]) {
  return createLocalJWKSet(keys.jwks() ?? { keys: [] })
}

function keySetOf(url: string): KeySet {
  const known = keySets.get(url)
  if (known) return known
  if (keySets.size >= MAX_KEY_SETS) keySets.clear()
  const keys = createRemoteJWKSet(new URL(url), {
    timeoutDuration: JWKS_TIMEOUT_MILLISECONDS,
    [customFetch]: fetchBounded,
  })
  const made: KeySet = { keys, failure: null }
  keySets.set(url, made)
  return made
}

async function fetchBounded(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  const { text, is_whole } = await readBounded(response, response.status === 200 ? MAX_JWKS_BYTES : 0)
  if (response.status !== 200) throw new Error(`its status is ${response.status} and not 200`)
  if (!is_whole) throw new Error(`the response is longer than ${MAX_JWKS_BYTES / 1_024} KiB`)
  return new Response(text)
}

function publicKeyOf(text: string): KeyObject {
  const rule = "must be a public key, as PEM or JWK, of RSA, P-256, P-384, P-521 or Ed25519"
  // Node would silently derive the public key from a private one, and this text would be stored.
  if (/PRIVATE KEY/.test(text)) throw fieldError("public_key", `${rule}: this is a private key`)
  const jwk = parsedJwk(text)
  if (jwk && ("d" in jwk || "k" in jwk)) throw fieldError("public_key", `${rule}: this is a secret key`)
  try {
    return jwk ? createPublicKey({ key: jwk, format: "jwk" }) : createPublicKey(text)
  } catch {
    throw fieldError("public_key", rule)
  }
}

function parsedJwk(text: string): JWK | null {
  try {
    const value = JSON.parse(text)
    return typeof value === "object" ? value : null
  } catch {
    return null
  }
}

function algorithmsOf(key: KeyObject): string[] {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === "rsa" && (details?.modulusLength ?? 0) >= 2048) return rsaAlgorithms
  if (type === "ed25519") return edwardsAlgorithms
  const algorithms = type === "ec" ? curveAlgorithms[details?.namedCurve ?? ""] : undefined
  if (algorithms) return algorithms
  throw fieldError("public_key", "must be RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519")
}

function refusalOf(error: unknown): Error {
  if (error instanceof ApiError || error instanceof Unavailable) return error
  if (error instanceof errors.JWTExpired) return refused("it has expired")
  if (error instanceof errors.JWTClaimValidationFailed) return refused(faultOf(error))
  const isUnsigned =
    isOfNoKey(error) || error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported
  if (isUnsigned) return refused("it is not signed with a key of the organization's sign-in")
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid)
    return refused("it is not a signed JWT")
  if (isUnusable(error))
    return refused("the key that it names cannot be used: ask the sign-in for another one")
  throw error
}

/** Says which claim the sign-in has to set in another way. */
function faultOf({ claim, reason }: errors.JWTClaimValidationFailed): string {
  if (reason === "missing") return `its ${claim} is missing`
  if (reason === "invalid") return `its ${claim} must be a number of seconds`
  if (claim === "nbf") return "its nbf lies in the future: compare the clock of the sign-in"
  return `its ${claim} is not the registered one`
}

/** Returns whether the key is unreadable, too short, or published with its private half. */
function isUnusable(error: unknown): boolean {
  return error instanceof TypeError || error instanceof DOMException || error instanceof errors.JWKSInvalid
}

function refused(reason: string): ApiError {
  return fieldError("identity_token", `is not accepted: ${reason}`)
}
