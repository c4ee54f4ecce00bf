import { randomBytes } from "node:crypto"
import type { SealedSecret } from "../../db/event-schema.ts"
import { reseal, type Secret, seal, unseal } from "../../platform/sealing.ts"

/** A new signing secret as Standard Webhooks writes it: `whsec_` and 32 random bytes in base64. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`
}

/** The secrets of an endpoint with a new one before them; those that were valid still sign for a day. */
export function withNewSecret(
  serviceSecret: Secret,
  endpointId: string,
  { before, added, at }: { before: SealedSecret[]; added: string; at: Date },
): SealedSecret[] {
  const until = new Date(at.getTime() + overlapMilliseconds).toISOString()
  const sealed = seal(serviceSecret, purpose, endpointId, added)
  const others = before
    .filter((each) => isValid(each, at))
    .map((each) => ({ ...each, expires_at: each.expires_at ?? until }))
  return [{ sealed, expires_at: null }, ...others]
}

/** The secrets that sign now, the newest first. Throws `SealBroken`. */
export function signingSecrets(
  serviceSecret: Secret,
  endpointId: string,
  { secrets, at }: { secrets: SealedSecret[]; at: Date },
): string[] {
  return secrets
    .filter((each) => isValid(each, at))
    .map(({ sealed }) => unseal(serviceSecret, purpose, endpointId, sealed))
}

/** The same secrets under the service's current one; null where they are already. Throws `SealBroken`. */
export function resealSigningSecrets(
  serviceSecret: Secret,
  endpointId: string,
  secrets: SealedSecret[],
): SealedSecret[] | null {
  const anew = secrets.map((each) => reseal(serviceSecret, purpose, endpointId, each.sealed))
  if (anew.every((sealed) => sealed === null)) return null
  return secrets.map((each, index) => ({ ...each, sealed: anew[index] ?? each.sealed }))
}

const purpose = "webhook secrets"
const overlapMilliseconds = 24 * 60 * 60_000

function isValid({ expires_at }: SealedSecret, at: Date): boolean {
  return expires_at === null || Date.parse(expires_at) > at.getTime()
}
