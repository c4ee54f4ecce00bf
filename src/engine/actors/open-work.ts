import { and, eq, type SQL, sql } from "drizzle-orm"
import type { Builder } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { effects } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { ApiError } from "../../platform/errors.ts"

/**
 * Runs the work of an organization's request. Throws `rate_limit.exceeded` if the work would leave the
 * organization with more than the limit of effects waiting for lanes, or for wallets. Requests that
 * add no effects are never refused.
 */
export type WithinOpenWork = <T>(
  turn: Turn,
  organizationId: string,
  work: (turn: Turn) => Promise<T>,
) => Promise<T>

/** Allows each organization `limit` effects waiting for lanes, and as many waiting for wallets. */
export function createOpenWorkLimit(limit: number): WithinOpenWork {
  const ceilings = [
    createCeiling(
      limit,
      "lane:",
      waitingForLanes,
      "pieces of work of this organization would wait for the chain",
    ),
    createCeiling(
      limit,
      "chain:",
      waitingForWallets,
      "authorizations of this organization would wait for wallets",
    ),
  ]
  return async (turn, organizationId, work) => {
    const queues: string[] = []
    const wake = (queue: string) => {
      queues.push(queue)
      turn.wake(queue)
    }
    const result = await work({ ...turn, wake })
    for (const requireRoom of ceilings) await requireRoom(turn, organizationId, queues)
    return result
  }
}

type RequireRoom = (turn: Turn, organizationId: string, woken: readonly string[]) => Promise<void>

/** Limits the open effects in queues with this prefix; `what` names them in the error. */
function createCeiling(
  limit: number,
  prefix: string,
  waiting: typeof waitingForLanes,
  what: string,
): RequireRoom {
  const allowances = new Map<string, Allowance>()
  return async (turn, organizationId, woken) => {
    const added = woken.filter((queue) => queue.startsWith(prefix)).length
    if (added === 0 || isAllowed(allowances.get(organizationId), turn.at, added)) return
    const [counted] = await waiting(turn.tx, { organization_id: organizationId })
    const room = limit - (counted?.open ?? 0)
    if (room < 0)
      throw new ApiError(
        "rate_limit.exceeded",
        `More than ${limit} ${what}. Wait until some of them are done.`,
      )
    allowances.set(organizationId, { since: turn.at, left: Math.floor(room / sharers) })
  }
}

/** How many effects may be added before they are counted again. */
type Allowance = { since: Date; left: number }

const allowedMilliseconds = 1_000
/** How many processes may each add effects on an allowance at the same time. */
const sharers = 16

/** Reduces the allowance. A rollback does not restore it, which only means counting again sooner. */
function isAllowed(allowance: Allowance | undefined, at: Date, added: number): boolean {
  if (!allowance) return false
  const age = at.getTime() - allowance.since.getTime()
  if (age < 0 || age > allowedMilliseconds || allowance.left < added) return false
  allowance.left -= added
  return true
}

// Literals, as in the partial indexes `effects_open_by_organization` and `effects_watched_by_organization`: with
// parameters the indexes would not be used.
const waitingForLanes = query((db, given: Given<{ organization_id: string }>) =>
  openEffects(db, given, sql`${effects.queue} like 'lane:%'`),
)

const waitingForWallets = query((db, given: Given<{ organization_id: string }>) =>
  openEffects(db, given, sql`${effects.queue} like 'chain:%'`),
)

function openEffects(db: Builder, { organization_id }: Given<{ organization_id: string }>, isOfQueues: SQL) {
  return db
    .select({ open: sql<number>`count(*)`.mapWith(Number) })
    .from(effects)
    .where(and(eq(effects.organization_id, organization_id), sql`${effects.status} = 'open'`, isOfQueues))
}
