import { asc, ne } from "drizzle-orm"
import type { Queries } from "../db/database.ts"
import { organizations } from "../db/schema.ts"
import { serviceSecrets } from "../db/service-secret-schema.ts"
import type { Turn } from "../db/turn.ts"
import { derivedKey, type Secret } from "./sealing.ts"
import { StartError } from "./start-error.ts"
import { hasStrayEnds, strayEnds } from "./stray-ends.ts"

/**
 * Throws `StartError` unless the given secrets include all those that the database has data sealed with, and registers
 * the current one. If several processes bring different secrets to a new database at once, one wins.
 */
export async function holdToKnownSecrets({ tx, at }: Turn, { current, previous }: Secret): Promise<void> {
  const mine = checkValueOf(current)
  const registered = await registeredSecrets(tx)
  const others = registered.filter(({ check_value }) => check_value !== mine)
  const isRegistered = others.length < registered.length
  const opened = previous === null ? null : checkValueOf(previous)
  if (others.some(({ check_value }) => check_value !== opened))
    throw new StartError(registered.at(-1)?.check_value === mine ? stillNeeded : wrongSecretLike(current))
  if (isRegistered) return
  // Data of an earlier release, which registered no secret, may be sealed with one that has such ends.
  if (hasStrayEnds(current) && !(await isInUse(tx))) throw new StartError(`SERVICE_SECRET ${strayEnds}`)
  const number = (registered.at(-1)?.number ?? 0) + 1
  await tx.insert(serviceSecrets).values({ number, check_value: mine, registered_at: at })
}

async function isInUse(tx: Queries): Promise<boolean> {
  return (await tx.select({ id: organizations.id }).from(organizations).limit(1)).length > 0
}

function wrongSecretLike(secret: string): string {
  return hasStrayEnds(secret) ? `${wrongSecret}. This one ${strayEnds}` : wrongSecret
}

const wrongSecret =
  "SERVICE_SECRET is not the one that this database was written with: set the right one, or, to rotate it, set the previous one as SERVICE_SECRET_PREVIOUS; if it is lost, see operator secrets adopt --help"
const stillNeeded =
  "an earlier secret is still needed: set it as SERVICE_SECRET_PREVIOUS until operator secrets rewrap has encrypted everything again; if it is lost, see operator secrets adopt --help"

/** Makes the current secret the only one a start needs, once nothing is sealed with another, or the other is lost. */
export async function adoptSecret({ tx, at }: Turn, { current }: Secret): Promise<void> {
  const check_value = checkValueOf(current)
  await tx.delete(serviceSecrets).where(ne(serviceSecrets.check_value, check_value))
  const [registered] = await registeredSecrets(tx)
  if (!registered) await tx.insert(serviceSecrets).values({ number: 1, check_value, registered_at: at })
}

async function registeredSecrets(tx: Queries) {
  return await tx.select().from(serviceSecrets).orderBy(asc(serviceSecrets.number))
}

/** Returns a value that distinguishes secrets and reveals nothing about them. */
function checkValueOf(secret: string): string {
  return derivedKey(secret, "check value").toString("base64url")
}
