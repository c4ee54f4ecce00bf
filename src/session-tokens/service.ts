import { eq, sql } from "drizzle-orm"
import { fireDueTimers, sendEvent, startActor } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import { newCredential } from "../credentials.ts"
import type { Queries } from "../db/database.ts"
import { placeholdersOf, prepared } from "../db/prepared.ts"
import { sessionTokens } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError } from "../errors.ts"
import { newId } from "../ids.ts"

export type SessionTokenRow = typeof sessionTokens.$inferSelect

/** The token in clear text, which nobody can recover, and what is stored of it. */
export type IssuedSessionToken = { token: string; session: SessionTokenRow }

/** Issues a session token for a recorded tap, valid for `ttl_seconds`. */
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
  await insertSessionToken(turn.tx).execute(session)
  await startActor(turn, {
    id: session.id,
    machine: "session-token",
    organization_id: caller.organization_id,
    input: { ttl_seconds },
  })
  return { token, session }
}

const insertSessionToken = prepared((queries) =>
  queries.insert(sessionTokens).values(placeholdersOf(sessionTokens)).prepare("insert_session_token"),
)

/** The session token of this hash, whatever became of it; null when there never was one. */
export async function findSessionToken(queries: Queries, hash: string): Promise<SessionTokenRow | null> {
  const [session] = await sessionTokenOfHash(queries).execute({ hash })
  return session ?? null
}

const sessionTokenOfHash = prepared((queries) =>
  queries
    .select()
    .from(sessionTokens)
    .where(eq(sessionTokens.hash, sql.placeholder("hash")))
    .prepare("session_token_of_hash"),
)

/** Its status and the clock decide together, so that no session lives on until somebody looks after it. */
export function isLive({ status, expires_at }: SessionTokenRow, at: Date): boolean {
  return status === "valid" && at < expires_at
}

/** Ends the session that the caller holds. Throws `session_token.invalid_or_expired` when it has ended before. */
export async function revokeSessionToken(turn: Turn, caller: Caller): Promise<void> {
  if (!caller.session) throw new ApiError("auth.unauthorized")
  const { accepted } = await sendEvent(turn, caller.credential_id, { type: "REVOKE" })
  if (!accepted) throw new ApiError("session_token.invalid_or_expired")
}

/** Carries the end of a session whose time is over into its status. Answers whether it was due. */
export async function expireIfDue(turn: Turn, sessionId: string): Promise<boolean> {
  return (await fireDueTimers(turn, sessionId)) > 0
}
