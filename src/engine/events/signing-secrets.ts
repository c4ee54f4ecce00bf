import { randomBytes } from "node:crypto"
import type { SealedSecret } from "../../db/event-schema.ts"
import { TooSoon } from "../../platform/errors.ts"
import { reseal, SealBroken, type Secret, seal, unseal } from "../../platform/sealing.ts"

/** Creates a signing secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`
}

/**
 * Returns an endpoint's secrets with a new one first; those that were valid keep signing for another day. Throws
 * `rate_limit.exceeded` if too many would sign, because each lengthens the header of every delivery.
 */
export function withNewSecret(
  serviceSecret: Secret,
  endpointId: string,
  { before, added, at }: { before: SealedSecret[]; added: string; at: Date },
): SealedSecret[] {
  const until = new Date(at.getTime() + overlapMilliseconds).toISOString()
  const others = before
    .filter((each) => isValid(each, at))
    .map((each) => ({ ...each, expires_at: each.expires_at ?? until }))
  const signing = others.filter((each) => opened(serviceSecret, endpointId, each) !== null)
  if (signing.length >= mostSecrets) {
    const ends = signing.map(({ expires_at }) => Date.parse(expires_at))
    throw new TooSoon("rate_limit.exceeded", tooManyWords, Math.min(...ends) - at.getTime())
  }
  return [{ sealed: seal(serviceSecret, purpose, endpointId, added), expires_at: null }, ...others]
}

/** Returns the secrets that sign now, newest first, without those sealed under a service secret that is lost. */
export function signingSecrets(
  serviceSecret: Secret,
  endpointId: string,
  { secrets, at }: { secrets: SealedSecret[]; at: Date },
): string[] {
  return secrets
    .filter((each) => isValid(each, at))
    .map((each) => opened(serviceSecret, endpointId, each))
    .filter((secret) => secret !== null)
}

/**
 * Returns the same secrets, resealed under the current service secret; null if all already are.
 * Throws `SealBroken` if none opens.
 */
export function resealSigningSecrets(
  serviceSecret: Secret,
  endpointId: string,
  secrets: SealedSecret[],
): SealedSecret[] | null {
  const open = secrets.filter((each) => opened(serviceSecret, endpointId, each) !== null)
  if (open.length === 0) throw new SealBroken(`no secret of webhook endpoint ${endpointId} can be decrypted`)
  const anew = secrets.map((each) =>
    open.includes(each) ? reseal(serviceSecret, purpose, endpointId, each.sealed) : null,
  )
  if (anew.every((sealed) => sealed === null)) return null
  return secrets.map((each, index) => ({ ...each, sealed: anew[index] ?? each.sealed }))
}

const purpose = "webhook secrets"
const overlapMilliseconds = 24 * 60 * 60_000
const mostSecrets = 5
const tooManyWords = `A webhook endpoint has at most ${mostSecrets} active secrets. A replaced secret expires after 24 hours: create a new one then.`

/** Returns null if it was sealed under a service secret that the service no longer has. */
function opened(serviceSecret: Secret, endpointId: string, { sealed }: SealedSecret): string | null {
  try {
    return unseal(serviceSecret, purpose, endpointId, sealed)
  } catch (error) {
    if (error instanceof SealBroken) return null
    throw error
  }
}

function isValid({ expires_at }: SealedSecret, at: Date): boolean {
  return expires_at === null || Date.parse(expires_at) > at.getTime()
}
