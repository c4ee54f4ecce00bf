import { and, asc, eq, isNotNull, lt, ne, or, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type ActorRow, actors, type EffectRow, effects } from "../../db/schema.ts"
import { failureIn, reasonOf, stopOf, type Work, workOf } from "../stories/waiting.ts"

/**
 * What does not go on by itself, work that something is in the way of now, and work that is open for too long; the
 * longest first of each kind.
 */
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

/** Units and collections whose work failed for good: nothing happens before somebody retries them. */
async function stoppedActors(queries: Queries): Promise<Stuck[]> {
  const stopped = await queries
    .select()
    .from(actors)
    .where(
      or(
        and(eq(actors.machine, "unit-token"), eq(actors.state, "pending.stopped")),
        and(eq(actors.machine, "collection-contract"), eq(actors.state, "failed")),
      ),
    )
    .orderBy(asc(actors.updated_at))
  return stopped.map((actor) => ({
    ...named(actor),
    effect_id: null,
    since: actor.updated_at.toISOString(),
    reason: `stopped: ${failureIn(actor) ?? "no failure is noted"}`,
  }))
}

async function overdueEffects(queries: Queries, now: Date): Promise<Stuck[]> {
  const before = new Date(now.getTime() - patienceMilliseconds)
  const queues = await queries.selectDistinct({ queue: effects.queue }).from(effects).where(isOpen)
  const rows: Overdue[] = []
  for (const { queue } of queues) rows.push(...(await overdueIn(queries, queue, before)))
  rows.sort((one, other) => one.effect.created_at.getTime() - other.effect.created_at.getTime())
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

type Overdue = { effect: EffectRow; actor: ActorRow }

/** The first of one queue: a chain that stands still, with whatever waits for it, hides nothing of another one. */
async function overdueIn(queries: Queries, queue: string, before: Date): Promise<Overdue[]> {
  const isOverdue = or(needsNoWallet, wasOverAt(before), isNotNull(effects.last_error))
  return await queries
    .select({ effect: effects, actor: actors })
    .from(effects)
    .innerJoin(actors, eq(actors.id, effects.actor_id))
    .where(and(eq(effects.queue, queue), isOpen, isOverdue))
    .orderBy(asc(effects.id))
    .limit(mostShown)
}

/** In the words of the index of what is open. */
const isOpen = sql`${effects.status} = 'open'`

/** Whether something is in the way that more time alone does not take away. */
function isHindered({ effect, lane, transaction, attempts }: Work, now: Date): boolean {
  if (lane && stopOf(lane, now) !== null) return true
  if (transaction?.status === "mined") return false
  return Boolean(effect.last_error ?? attempts.at(-1)?.last_error)
}

/** What waits behind so many in a queue has the same reasons. */
const mostShown = 1_000

/** An authorization waits for somebody's wallet until its deadline, and is not stuck for that. */
const needsNoWallet = ne(effects.src, "watchAuthorization")
const wasOverAt = (before: Date) => lt(sql`${effects.input} ->> 'deadline_at'`, before.toISOString())

function named(actor: ActorRow) {
  return {
    id: actor.id,
    machine: actor.machine,
    organization_id: actor.organization_id,
    state: actor.state,
  }
}
