import { and, asc, eq, gte, lt, type SQL, sql } from "drizzle-orm"
import type { PgColumn } from "drizzle-orm/pg-core"
import type { Builder, Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type ActorRow, actors, effects, lanes } from "../../db/schema.ts"
import { laneQueue } from "../../platform/queues.ts"
import { failureIn, reasonOf, stopOf, type Work, workOf } from "../stories/waiting.ts"

/** Actors that stopped, then work that is held up or open for too long; the oldest first of each kind. */
export async function findStuck(queries: Queries, now: Date): Promise<Stuck[]> {
  return [...(await stoppedActors(queries)), ...(await overdueEffects(queries, now))]
}

/** How long work may be open before it is called stuck. */
const patienceMilliseconds = 5 * 60_000

/** `id` is the unit, collection, claim, transfer or chip replacement: `retry` and `explain` take it. */
type Stuck = {
  id: string
  machine: string
  organization_id: string | null
  state: string
  effect_id: string | null
  since: string
  reason: string
}

/** Units and collections whose work failed for good: nothing happens until somebody retries them. */
async function stoppedActors(queries: Queries): Promise<Stuck[]> {
  const stopped = [
    ...(await longestIn(queries, { machine: "unit-token", state: "pending.stopped" })),
    ...(await longestIn(queries, { machine: "collection-contract", state: "failed" })),
  ]
  return stopped.sort(byAge(({ updated_at }) => updated_at)).map((actor) => ({
    ...named(actor),
    effect_id: null,
    since: actor.updated_at.toISOString(),
    reason: `stopped: ${failureIn(actor) ?? "no failure is recorded"}`,
  }))
}

const longestIn = query((db, given: Given<{ machine: string; state: string }>) =>
  db
    .select()
    .from(actors)
    .where(and(eq(actors.machine, given.machine), eq(actors.state, given.state)))
    .orderBy(asc(actors.updated_at), asc(actors.id))
    .limit(mostStuck),
)

async function overdueEffects(queries: Queries, now: Date): Promise<Stuck[]> {
  const before = new Date(now.getTime() - patienceMilliseconds)
  const rows = await watchedInVain(queries, { before: before.toISOString() })
  for (const { id } of await queries.select({ id: lanes.id }).from(lanes))
    rows.push(...(await oldestOf(queries, { queue: laneQueue(id) })))
  rows.sort(byAge(({ effect }) => effect.created_at))
  const work = await workOf(
    queries,
    rows.map(({ effect }) => effect),
  )
  return rows.flatMap(({ actor, effect }, index) => {
    const waiting = work[index]
    if (!waiting || (effect.created_at >= before && !isHindered(waiting, now))) return []
    return {
      ...named(actor),
      effect_id: effect.id,
      since: effect.created_at.toISOString(),
      reason: reasonOf(waiting, now),
    }
  })
}

/** Each lane by itself: one that stands still, with whatever waits for it, hides nothing of another one. */
const oldestOf = query((db, { queue }: Given<{ queue: string }>) =>
  firstOpen(db, eq(effects.queue, queue), effects.id),
)

/**
 * An authorization waits for somebody's wallet until its deadline, and is not stuck until then. Those whose outcome
 * could not be read come first.
 */
const watchedInVain = query((db, { before }: Given<{ before: string }>) => {
  // Phrased like the index in migrations/0030_open_effects.sql.
  const isWatched = and(eq(effects.src, "watchAuthorization"), gte(effects.src, "watchAuthorization"))
  const deadline = sql`case when ${effects.last_error} is null then ${effects.input} ->> 'deadline_at' else '' end`
  return firstOpen(db, and(isWatched, lt(deadline, before)), deadline)
})

function firstOpen(db: Builder, isMeant: SQL | undefined, order: SQL | PgColumn) {
  return db
    .select({ effect: effects, actor: actors })
    .from(effects)
    .innerJoin(actors, eq(actors.id, effects.actor_id))
    .where(and(eq(effects.status, "open"), isMeant))
    .orderBy(asc(order))
    .limit(mostStuck)
}

function byAge<Row>(ageOf: (row: Row) => Date): (one: Row, other: Row) => number {
  return (one, other) => ageOf(one).getTime() - ageOf(other).getTime()
}

/** Whether something is in the way that more time alone does not take away. */
function isHindered({ effect, lane, transaction, attempts }: Work, now: Date): boolean {
  if (lane && stopOf(lane, now) !== null) return true
  if (transaction?.status === "mined") return false
  return Boolean(effect.last_error ?? attempts.at(-1)?.last_error)
}

/** What waits behind so many in a lane has the same reasons. */
export const mostStuck = 1_000

function named(actor: ActorRow) {
  return {
    id: actor.id,
    machine: actor.machine,
    organization_id: actor.organization_id,
    state: actor.state,
  }
}
