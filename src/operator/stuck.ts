import { and, asc, eq, lt, or } from "drizzle-orm"
import type { WatchAuthorizationInput } from "../../machines/authorization.ts"
import { type ActorRow, type EffectRow, failureIn, reasonOf, workOf } from "../actors/waiting.ts"
import type { Queries } from "../db/database.ts"
import { actors, effects } from "../db/schema.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const stuck: Command = {
  name: "stuck",
  takes: "",
  options: {},
  plan:
    () =>
    async ({ context }) => {
      const now = context.clock()
      const found = [
        ...(await stoppedActors(context.db.read)),
        ...(await overdueEffects(context.db.read, now)),
      ]
      return {
        document: { stuck: found },
        text: table(
          ["ID", "MACHINE", "STATE", "SINCE", "REASON"],
          found.map((each) => [each.id, each.machine, each.state, each.since, each.reason]),
        ),
      }
    },
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
  const rows = await queries
    .select({ effect: effects, actor: actors })
    .from(effects)
    .innerJoin(actors, eq(actors.id, effects.actor_id))
    .where(and(eq(effects.status, "open"), lt(effects.created_at, before)))
    .orderBy(asc(effects.created_at))
  const overdue = rows.filter(({ effect }) => !isStillOffered(effect, before))
  const work = await workOf(
    queries,
    overdue.map(({ effect }) => effect),
  )
  return overdue.flatMap(({ actor, effect }, index) => {
    const waiting = work[index]
    if (!waiting) return []
    return {
      ...named(actor),
      effect_id: effect.id,
      since: effect.created_at.toISOString(),
      reason: reasonOf(waiting, now),
    }
  })
}

/** An authorization waits for somebody's wallet until its deadline, and is not stuck for that. */
function isStillOffered({ src, input }: EffectRow, before: Date): boolean {
  if (src !== "watchAuthorization") return false
  return Date.parse((input as WatchAuthorizationInput).deadline_at) >= before.getTime()
}

function named(actor: ActorRow) {
  return {
    id: actor.id,
    machine: actor.machine,
    organization_id: actor.organization_id,
    state: actor.state,
  }
}
