import { and, eq, exists, inArray, isNull, lte, notInArray, sql } from "drizzle-orm"
import { webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { type Given, query } from "../../src/db/query.ts"
import type { Turn } from "../../src/db/turn.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/** Longer than an attempt takes, so that a holder's attempts are over before another takes its place. */
const endpointLeaseMilliseconds = 15_000

/** An endpoint that only this worker may send to, until a time of the monotonic clock. */
type HeldEndpoint = { endpoint_id: string; held_until: number }

/** A monotonic clock, in milliseconds. The wall clocks of machines differ, and jump. */
export type SteadyClock = () => number

/** Takes leases on endpoints for one worker, under the name `owner`. */
export function createEndpointLeases(context: Context, owner: string, steady: SteadyClock) {
  /** The leases of other workers that were in the way, and since when each is unchanged. */
  let rivals = new Map<string, Rival>()

  return {
    /**
     * Takes the enabled endpoints that have something due and no holder, and renews those in `busy`. Only the
     * holder of an endpoint sends to it.
     */
    async take(busy: ReadonlyMap<string, { held_until: number }>): Promise<HeldEndpoint[]> {
      const asked = steady()
      const due = await dueEndpoints(context.db.read, { at: context.clock() })
      const inTheWay = due.filter(({ lease_owner }) => lease_owner !== null && lease_owner !== owner)
      rivals = new Map(inTheWay.map((each) => [each.id, sightRival(rivals.get(each.id), each, asked)]))
      const free = due.filter((each) => !busy.has(each.id) && isFree(each))
      const kept = [...busy]
        .filter(([, { held_until }]) => held_until - asked < renewedWithin)
        .map(([id]) => id)
      if (free.length === 0 && kept.length === 0) return []
      const lease = async (turn: Turn) => {
        const taken = await Promise.all(free.map((each) => takeLease(turn, owner, each)))
        return [...taken.flat(), ...(await keepLeases(turn, owner, kept))]
      }
      const leased = await inTurn(context, null, lease, "read committed")
      return leased.map(({ id }) => ({ endpoint_id: id, held_until: asked + endpointLeaseMilliseconds }))
    },
  }

  /** Returns whether an endpoint can be taken: a lease has expired once it was seen unrenewed for its full duration. */
  function isFree({ id, lease_owner }: Lease): boolean {
    if (lease_owner === null || lease_owner === owner) return true
    const rival = rivals.get(id)
    return rival !== undefined && steady() - rival.since > endpointLeaseMilliseconds
  }
}

/** Renewed this long before its end, well before it prevents new attempts. */
const renewedWithin = endpointLeaseMilliseconds - 2_500

type Lease = { id: string; lease_owner: string | null; leased_until: Date | null }
type Rival = { mark: string; since: number }

function sightRival(known: Rival | undefined, lease: Lease, now: number): Rival {
  const mark = `${lease.lease_owner} ${lease.leased_until?.getTime()}`
  return known?.mark === mark ? known : { mark, since: now }
}

const dueEndpoints = query((db, { at }: Given<{ at: Date }>) => {
  const due = db
    .select({ one: sql`1` })
    .from(webhookQueue)
    .where(and(eq(webhookQueue.endpoint_id, webhookEndpoints.id), lte(webhookQueue.due_at, at)))
  return db
    .select({
      id: webhookEndpoints.id,
      lease_owner: webhookEndpoints.lease_owner,
      leased_until: webhookEndpoints.leased_until,
    })
    .from(webhookEndpoints)
    .where(
      and(
        eq(webhookEndpoints.status, "enabled"),
        // Not while its attempts are being reset.
        isNull(webhookEndpoints.retry_from),
        exists(due),
      ),
    )
})

/** Takes an endpoint whose lease is unchanged; returns no row if another worker was faster. */
async function takeLease(
  turn: Turn,
  owner: string,
  { id, lease_owner, leased_until }: Lease,
): Promise<{ id: string }[]> {
  const seen = {
    ...(lease_owner !== null && { lease_owner }),
    ...(leased_until !== null && { leased_until }),
  }
  return await takeWhereSeen(turn.tx, { id, owner, until: leaseEnd(turn), ...seen })
}

type Wanted = { id: string; owner: string; until: Date; lease_owner?: string; leased_until?: Date }

const takeWhereSeen = query((db, { id, owner, until, ...seen }: Given<Wanted>) => {
  const { lease_owner, leased_until } = webhookEndpoints
  return db
    .update(webhookEndpoints)
    .set({ lease_owner: owner, leased_until: until })
    .where(
      and(
        eq(webhookEndpoints.id, id),
        seen.lease_owner ? eq(lease_owner, seen.lease_owner) : isNull(lease_owner),
        seen.leased_until ? eq(leased_until, seen.leased_until) : isNull(leased_until),
      ),
    )
    .returning({ id: webhookEndpoints.id })
})

async function keepLeases(turn: Turn, owner: string, ids: string[]): Promise<{ id: string }[]> {
  if (ids.length === 0) return []
  return await turn.tx
    .update(webhookEndpoints)
    .set({ leased_until: leaseEnd(turn) })
    .where(and(eq(webhookEndpoints.lease_owner, owner), inArray(webhookEndpoints.id, ids)))
    .returning({ id: webhookEndpoints.id })
}

function leaseEnd({ at }: Turn): Date {
  return new Date(at.getTime() + endpointLeaseMilliseconds)
}

/** Releases the leases of an owner, except on the `busy` endpoints, so that others need not wait. */
export async function leaveEndpoints(turn: Turn, owner: string, busy: string[]): Promise<void> {
  await turn.tx
    .update(webhookEndpoints)
    .set({ lease_owner: null, leased_until: null })
    .where(and(eq(webhookEndpoints.lease_owner, owner), notInArray(webhookEndpoints.id, busy)))
}
