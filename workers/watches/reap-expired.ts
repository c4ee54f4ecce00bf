import { asc, inArray, lte } from "drizzle-orm"
import type { PgColumn, PgTable } from "drizzle-orm/pg-core"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import {
  actors,
  actorTimers,
  idempotencyKeys,
  identityTokenUses,
  sessionTokens,
} from "../../src/db/schema.ts"
import { keptMilliseconds } from "../../src/http/idempotency.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/**
 * Deletes in short steps what is kept for a limited time: stored responses after a day, uses of identity tokens long
 * expired, and sessions that ended a day ago. Returns the number of sessions deleted.
 */
export async function reapExpired(context: Context): Promise<number> {
  const now = context.clock().getTime()
  const inSteps = async (milliseconds: number, reap: Reap) => {
    const old = { before: new Date(now - milliseconds), rows: atOnce }
    for (let all = 0; ; ) {
      const { length } = await inTurn(context, null, ({ tx }) => reap(tx, old))
      all += length
      if (length < atOnce) return all
    }
  }
  await inSteps(keptMilliseconds, reapAnswers)
  await inSteps(lateMilliseconds, reapTokenUses)
  return await inSteps(endedMilliseconds, reapSessions)
}

/** A token is used some time after it was found valid, maybe on a machine whose clock is behind. */
const lateMilliseconds = 10 * 60_000
/** As long as the response that created the session can be replayed. */
const endedMilliseconds = keptMilliseconds
const atOnce = 500

type Old = { before: Date; rows: number }

type Reap = (tx: Queries, old: Old) => Promise<unknown[]>

/** Returns a function that deletes the oldest rows of a table: one step's worth, and all others of its last instant. */
function reaperOf(table: PgTable, time: PgColumn): Reap {
  const oldest = query((db, given: Given<Old>) =>
    db.select({ at: time }).from(table).where(lte(time, given.before)).orderBy(asc(time)).limit(given.rows),
  )
  const deleteUntil = query((db, { at }: Given<{ at: unknown }>) => db.delete(table).where(lte(time, at)))
  return async (tx, old) => {
    const found = await oldest(tx, old)
    const last = found.at(-1)
    if (last) await deleteUntil(tx, last)
    return found
  }
}

const reapAnswers = reaperOf(idempotencyKeys, idempotencyKeys.created_at)
const reapTokenUses = reaperOf(identityTokenUses, identityTokenUses.expires_at)

/** Deletes ended sessions with their actors; only a session that had an event has one. */
async function reapSessions(tx: Queries, old: Old): Promise<string[]> {
  const ended = await endedSessions(tx, old)
  const ids = ended.map(({ id }) => id)
  if (ids.length === 0) return []
  const stored = await tx.select({ id: actors.id }).from(actors).where(inArray(actors.id, ids))
  const actorIds = stored.map(({ id }) => id)
  if (actorIds.length > 0) {
    await tx.delete(actorTimers).where(inArray(actorTimers.actor_id, actorIds))
    await tx.delete(actors).where(inArray(actors.id, actorIds))
  }
  await tx.delete(sessionTokens).where(inArray(sessionTokens.id, ids))
  return ids
}

const endedSessions = query((db, given: Given<Old>) => {
  const { id, expires_at } = sessionTokens
  return db
    .select({ id })
    .from(sessionTokens)
    .where(lte(expires_at, given.before))
    .orderBy(asc(expires_at), asc(id))
    .limit(given.rows)
})
