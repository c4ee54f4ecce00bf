import { eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { chips, organizations, type SessionTokenRow, sessionTokens } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { catchUp, sendEvent } from "../../engine/actors/runtime.ts"
import type { Caller } from "../../platform/caller.ts"
import { newCredential } from "../../platform/credentials.ts"
import { ApiError } from "../../platform/errors.ts"
import { newId } from "../../platform/ids.ts"

/** The token in clear text, which cannot be recovered later, and its row. */
export type IssuedSessionToken = { token: string; session: SessionTokenRow }

/** Issues a session token for a recorded tap, valid for `ttl_seconds`. Its actor is only created by its first event. */
export async function issueSessionToken(
  turn: Turn,
  caller: Caller,
  grant: { tap_id: string; chip_id: string; unit_id: string; ttl_seconds: number },
): Promise<IssuedSessionToken> {
  const { ttl_seconds, ...scope } = grant
  const { token, hash } = newCredential("session_token")
  const session = {
    id: newId(),
    organization_id: caller.organization_id,
    ...scope,
    hash,
    status: "valid" as const,
    expires_at: new Date(turn.at.getTime() + ttl_seconds * 1000),
    created_at: turn.at,
  }
  await insertSessionToken(turn.tx, session)
  return { token, session }
}

const insertSessionToken = query((db, row: Given<SessionTokenRow>) => db.insert(sessionTokens).values(row))

/** A session, since when its organization is suspended, and the unit its chip is paired to now. */
type HeldSession = SessionTokenRow & { suspended_at: Date | null; unit_of_chip: string | null }

/** Returns the session with this token hash, even if it has ended; null if there never was one. */
export async function findSessionToken(queries: Queries, hash: string): Promise<HeldSession | null> {
  const [found] = await sessionTokenOfHash(queries, { hash })
  if (!found) return null
  const { session, suspended_at, unit_of_chip } = found
  return { ...session, suspended_at, unit_of_chip }
}

const sessionTokenOfHash = query((db, { hash }: Given<{ hash: string }>) =>
  db
    .select({
      session: sessionTokens,
      suspended_at: organizations.suspended_at,
      unit_of_chip: chips.unit_id,
    })
    .from(sessionTokens)
    .innerJoin(organizations, eq(organizations.id, sessionTokens.organization_id))
    .innerJoin(chips, eq(chips.chip_id, sessionTokens.chip_id))
    .where(eq(sessionTokens.hash, hash)),
)

/**
 * Returns whether a session is valid. It ends by its status, its expiry, or, without any event, when its chip is no
 * longer paired to its unit.
 */
export function isLive({ status, expires_at, unit_id, unit_of_chip }: HeldSession, at: Date): boolean {
  return status === "valid" && at < expires_at && unit_id === unit_of_chip
}

/** Ends the caller's session. Throws `session_token.invalid_or_expired` if it has already ended. */
export async function revokeSessionToken(turn: Turn, caller: Caller): Promise<void> {
  if (!caller.session) throw new ApiError("auth.unauthorized")
  const { accepted } = await sendEvent(turn, caller.credential_id, { type: "REVOKE" })
  if (!accepted) throw new ApiError("session_token.invalid_or_expired")
}

/** Records in its status that a session has expired. */
export async function expireSessionToken(turn: Turn, sessionId: string): Promise<void> {
  await catchUp(turn, sessionId)
}
