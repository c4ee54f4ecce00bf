import { and, eq, sql } from "drizzle-orm"
import { type Given, query } from "../../db/query.ts"
import { effects } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { ApiError } from "../../platform/errors.ts"
import { laneQueue } from "../../platform/queues.ts"

/**
 * Does what a request of an organization asks for, and refuses with `rate_limit.exceeded` what would leave the
 * organization with more effects waiting for a lane than it may have. Requests that add no work are never refused.
 */
export type WithinOpenWork = <T>(
  turn: Turn,
  organizationId: string,
  work: (turn: Turn) => Promise<T>,
) => Promise<T>

/** `limit` effects of one organization may wait. */
export function createOpenWorkLimit(limit: number): WithinOpenWork {
  const allowances = new Map<string, Allowance>()

  return async (turn, organizationId, work) => {
    let added = 0
    const wake = (queue: string) => {
      if (queue.startsWith(laneQueue(""))) added += 1
      turn.wake(queue)
    }
    const result = await work({ ...turn, wake })
    if (added === 0 || isAllowed(allowances.get(organizationId), turn.at, added)) return result
    const [counted] = await openWork(turn.tx, { organization_id: organizationId })
    const room = limit - (counted?.open ?? 0)
    if (room < 0) throw tooMuch(limit)
    allowances.set(organizationId, { since: turn.at, left: Math.floor(room / sharers) })
    return result
  }
}

/** What may be added before it is counted anew. */
type Allowance = { since: Date; left: number }

const allowedMilliseconds = 1_000
/** A process takes no more of the room on trust than leaves as much for so many others. */
const sharers = 16

/** What is taken up stays taken where the database transaction is undone: then it is counted sooner. */
function isAllowed(allowance: Allowance | undefined, at: Date, added: number): boolean {
  if (!allowance) return false
  const age = at.getTime() - allowance.since.getTime()
  if (age < 0 || age > allowedMilliseconds || allowance.left < added) return false
  allowance.left -= added
  return true
}

function tooMuch(limit: number): ApiError {
  return new ApiError(
    "rate_limit.exceeded",
    `More than ${limit} pieces of work of this organization would wait for the chain. Wait until some of them are done.`,
  )
}

// The words of the index `effects_open_by_organization`, which no parameter may stand for.
const openWork = query((db, given: Given<{ organization_id: string }>) =>
  db
    .select({ open: sql<number>`count(*)`.mapWith(Number) })
    .from(effects)
    .where(
      and(
        eq(effects.organization_id, given.organization_id),
        sql`${effects.status} = 'open'`,
        sql`${effects.queue} like 'lane:%'`,
      ),
    ),
)
