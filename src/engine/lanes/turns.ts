import { and, asc, eq, gte, inArray, isNull, ne, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { effects, transactions } from "../../db/schema.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { laneQueue } from "../../platform/queues.ts"
import type { LaneEffect } from "../actors/effects.ts"
import { callsIn } from "../chain/desk.ts"
import { type Effect, effectsIn, jobFor } from "../jobs/job.ts"
import type { HeldLane } from "./held-lane.ts"
import type { WatchedTransaction } from "./transactions.ts"

/** Sixteen transactions of one sender are what public pools promise to hold. */
export const maxInFlight = 16
/**
 * What one organization may hold of them while another waits, by its batches and by its work at a counter; and by its
 * batches while nobody does, so that whoever comes finds room.
 */
const maxBesideOthers = maxInFlight / 4
const maxAlone = maxInFlight - maxBesideOthers

/**
 * How long a round gives results, or sends what is new, before it looks at what else there is: a quarter of a block's
 * time, and where blocks are fast as long as some answers of a provider take.
 */
export function spellMilliseconds({ block_time_seconds }: Pick<ChainConfig, "block_time_seconds">): number {
  return Math.max(block_time_seconds * 250, leastSpellMilliseconds)
}

const leastSpellMilliseconds = 500

/** People at a counter come before batches. */
const urgency: Readonly<Record<LaneEffect, number>> = {
  relayClaim: 0,
  replaceChip: 1,
  issueUnit: 2,
  deployCollection: 3,
  refreshMetadata: 4,
}

/** The less, the sooner something of a kind is done. */
export function urgencyOf(kind: string): number {
  return urgency[kind as LaneEffect] ?? Object.keys(urgency).length
}

/** As many effects as fill the window with the largest batches. */
const planningDepth = 1_600

/**
 * What may be planned now, oldest first: of each organization that waits, what is most urgent to it. Where order matters,
 * what follows an effect that is put off waits behind it.
 */
export async function waitingWork(lane: HeldLane): Promise<Effect[]> {
  const waiting = await readWaiting(lane)
  const blocked = new Set<string>()
  return waiting
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .filter((effect) => {
      const line = jobFor(lane.jobs, effect.src).lineOf?.(effect)
      if (line !== undefined && blocked.has(line)) return false
      if (isDue(lane, effect)) return true
      if (line !== undefined) blocked.add(line)
      return false
    })
}

/** Whether a lane has anything to send, or to watch until it is final. */
export async function hasWork(queries: Queries, laneId: string): Promise<boolean> {
  const [watched] = await watchedOfLane(queries, { lane_id: laneId })
  if (watched) return true
  const [waiting] = await waitingIn(queries, { queue: laneQueue(laneId) })
  return waiting !== undefined
}

const watchedOfLane = query((db, { lane_id }: Given<{ lane_id: string }>) =>
  db
    .select({ id: transactions.id })
    .from(transactions)
    .where(and(eq(transactions.lane_id, lane_id), ne(transactions.status, "final")))
    .limit(1),
)

const waitingIn = query((db, { queue }: Given<{ queue: string }>) =>
  db
    .select({ id: effects.id })
    .from(effects)
    .where(and(eq(effects.queue, queue), eq(effects.status, "open")))
    .limit(1),
)

async function readWaiting({ context, signer }: HeldLane): Promise<Effect[]> {
  const rows = await waitingInTurn(context.db.read, { queue: laneQueue(signer.lane_id) })
  return effectsIn(rows.map(({ effect }) => effect))
}

/**
 * The first of each organization before the second of any, and the first of each of its lines before the second of
 * one: what is read at once is filled by nobody, and by no line that cannot be planned.
 */
const waitingInTurn = query((db, { queue }: Given<{ queue: string }>) => {
  const places = Object.entries(urgency).map(([src, place]) => sql.raw(`when '${src}' then ${place}`))
  const inLine = db
    .select({
      id: sql<string>`${effects.id}`.as("waiting_id"),
      organization_id: sql<string | null>`${effects.organization_id}`.as("waiting_for"),
      urgency: sql<number>`case ${effects.src} ${sql.join(places, sql` `)} else 9 end`.as("urgency"),
      line_place:
        sql<number>`row_number() over (partition by ${effects.organization_id}, ${effects.src}, ${effects.input} ->> 'collection_id' order by ${effects.id})`.as(
          "line_place",
        ),
    })
    .from(effects)
    .where(
      and(
        eq(effects.queue, queue),
        eq(effects.status, "open"),
        isNull(effects.transaction_id),
        // True of each: without it SQLite takes another index, and reads what is open in all queues.
        gte(effects.id, lowestId),
      ),
    )
    .as("in_line")
  const inTurn = db
    .select({
      id: inLine.id,
      organization_id: inLine.organization_id,
      place:
        sql<number>`row_number() over (partition by ${inLine.organization_id} order by ${inLine.urgency}, ${inLine.line_place}, ${inLine.id})`.as(
          "place",
        ),
    })
    .from(inLine)
    .as("in_turn")
  return db
    .select({ effect: effects })
    .from(inTurn)
    .innerJoin(effects, eq(effects.id, inTurn.id))
    .orderBy(asc(inTurn.place), asc(effects.id))
    .limit(planningDepth)
})

const lowestId = "00000000-0000-0000-0000-000000000000"

/** A clock that was set back must not put work off for longer than anything ever is. */
function isDue(lane: HeldLane, { attempts, due_at }: Effect): boolean {
  const now = lane.context.clock().getTime()
  return attempts === 0 || due_at.getTime() <= now || due_at.getTime() > now + maxDelayMilliseconds
}

/** Nothing that waits is put off for longer. */
export const maxDelayMilliseconds = 10 * 60_000

/** How many transactions each organization has on its way, those for people at a counter apart. */
type Shares = Map<string, number>

/** The shares of a lane's window, by the organizations whose effects its transactions achieve. */
export async function sharesOf(lane: HeldLane, inFlight: WatchedTransaction[]): Promise<Shares> {
  const shares: Shares = new Map()
  if (inFlight.length === 0) return shares
  const ids = inFlight.map(({ id }) => id)
  const rows = await holdersOf(lane.context.db.read, { transaction_ids: ids })
  for (const { src, organization_id } of rows) addShare(shares, { src: src as LaneEffect, organization_id })
  return shares
}

const holdersOf = query((db, { transaction_ids }: Given<{ transaction_ids: string[] }>) =>
  db
    .selectDistinct({
      transaction_id: effects.transaction_id,
      src: effects.src,
      organization_id: effects.organization_id,
    })
    .from(effects)
    .where(inArray(effects.transaction_id, transaction_ids)),
)

type Holder = Pick<Effect, "src" | "organization_id">

/** Counts one more transaction in flight for whoever it is for. */
export function addShare(shares: Shares, holder: Holder): void {
  shares.set(shareKey(holder), shareOf(shares, holder) + 1)
}

function shareOf(shares: Shares, holder: Holder): number {
  return shares.get(shareKey(holder)) ?? 0
}

/** An organization's batches are not in the way of its own claims. */
function shareKey({ src, organization_id }: Holder): string {
  return `${isAtCounter(src) ? "counter" : "batch"} ${organization_id}`
}

function isAtCounter(src: LaneEffect): boolean {
  return urgency[src] < urgency.issueUnit
}

/**
 * Whose turn it is: the most urgent work, of the organization that holds least of the window; null where those that
 * wait hold all that they may.
 */
export function nextTurn(waiting: Effect[], shares: Shares): Effect | null {
  const organizations = new Set(waiting.map(({ organization_id }) => organization_id))
  const mostOf = ({ src }: Effect) => {
    if (organizations.size > 1) return maxBesideOthers
    return isAtCounter(src) ? maxInFlight : maxAlone
  }
  const [first] = waiting
    .filter((each) => shareOf(shares, each) < mostOf(each))
    .toSorted(
      (one, other) =>
        urgency[one.src] - urgency[other.src] ||
        shareOf(shares, one) - shareOf(shares, other) ||
        (one.id < other.id ? -1 : 1),
    )
  return first ?? null
}

/** The effect whose turn it is, with all of its kind that may go with it: those of its organization first. */
export function ofTheSameKind(waiting: Effect[], turn: Effect): [Effect, ...Effect[]] {
  const others = waiting.filter((effect) => effect.src === turn.src && effect !== turn)
  const isOwn = ({ organization_id }: Effect) => organization_id === turn.organization_id
  return [turn, ...others.filter(isOwn), ...others.filter((each) => !isOwn(each))]
}

/** The contracts for which something of a kind that keeps an order is on its way by another lane of the chain. */
export async function busyElsewhere(lane: HeldLane): Promise<Set<string>> {
  const { chain_id } = lane.chain
  const rows = await callsOfOthers(lane.context.db.read, { chain_id, lane_id: lane.lease.lane_id })
  const keptInOrder = rows.filter(({ kind }) => jobFor(lane.jobs, kind).lineOf !== undefined)
  return new Set(keptInOrder.flatMap(contractsOf))
}

const callsOfOthers = query((db, { chain_id, lane_id }: Given<{ chain_id: number; lane_id: string }>) =>
  db
    .selectDistinct({ kind: transactions.kind, to: transactions.to, call: transactions.call })
    .from(transactions)
    .where(
      and(
        eq(transactions.chain_id, chain_id),
        ne(transactions.lane_id, lane_id),
        inArray(transactions.status, ["allocated", "signed", "sent", "mined"]),
      ),
    ),
)

/** The contracts that a transaction calls, directly or through the desk. */
export function contractsOf({ to, call }: { to: string; call: string }): string[] {
  return callsIn({ to, data: call }).map((each) => each.to)
}
