import { and, asc, eq, inArray, ne, type SQL, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type EffectRow, effects, transactions } from "../../db/schema.ts"
import { openTransactionStatuses } from "../../db/statuses.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { laneQueue } from "../../platform/queues.ts"
import type { LaneEffect } from "../actors/effects.ts"
import { openEffectIn } from "../actors/rows.ts"
import { callsIn } from "../chain/desk.ts"
import { type Effect, effectsIn, jobFor } from "../jobs/job.ts"
import type { HeldLane } from "./held-lane.ts"
import type { WatchedTransaction } from "./transactions.ts"

/** Public pools guarantee to hold sixteen transactions of one sender. */
export const maxInFlight = 16
/**
 * How many of the window one organization may hold while others wait, counting batches and counter work separately; and
 * how many batches may hold while no one else waits, so that a newcomer finds room.
 */
const maxBesideOthers = maxInFlight / 4
const maxAlone = maxInFlight - maxBesideOthers

/**
 * Returns how long a round applies results, or sends new work, before it turns to the rest: a quarter of a block time
 * or, where blocks are fast, the time of a few requests.
 */
export function spellMilliseconds({ block_time_seconds }: Pick<ChainConfig, "block_time_seconds">): number {
  return Math.max(block_time_seconds * 250, leastSpellMilliseconds)
}

const leastSpellMilliseconds = 500

/** Lower is more urgent: people at a counter come before batches. */
const urgency: Readonly<Record<LaneEffect, number>> = {
  relayClaim: 0,
  replaceChip: 1,
  issueUnit: 2,
  deployCollection: 3,
  refreshMetadata: 4,
}

/** The kinds of work that lanes do, most urgent first. */
export const kindsOfWork = Object.keys(urgency)

/** Returns the urgency of a kind; lower is done sooner. */
export function urgencyOf(kind: string): number {
  return urgency[kind as LaneEffect] ?? kindsOfWork.length
}

/** Enough effects to fill the window with the largest batches. */
const planningDepth = 1_600

/**
 * Returns what may be planned now, oldest first: for each waiting organization its most urgent effects. Where order
 * matters, everything behind an effect that is put off waits, too.
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

/** Returns whether a lane has anything to send, or to watch until it is final. */
export async function hasWork(queries: Queries, laneId: string): Promise<boolean> {
  const [watched] = await watchedOfLane(queries, { lane_id: laneId })
  if (watched) return true
  const [waiting] = await openEffectIn(queries, { queue: laneQueue(laneId) })
  return waiting !== undefined
}

const watchedOfLane = query((db, { lane_id }: Given<{ lane_id: string }>) =>
  db
    .select({ id: transactions.id })
    .from(transactions)
    .where(and(eq(transactions.lane_id, lane_id), ne(transactions.status, "final")))
    .limit(1),
)

/**
 * Reads deeper into the lines only while effects there may be among the first, so that no line is read from end to end.
 */
async function readWaiting({ context, signer }: HeldLane): Promise<Effect[]> {
  const queue = laneQueue(signer.lane_id)
  for (let depth = leastDepth; ; depth *= deeper) {
    const rows = await waitingInTurn(context.db.read, { queue, depth })
    if (depth >= planningDepth || isDeepEnough(rows, depth))
      return effectsIn(rows.map(({ effect }) => effect))
  }
}

const [leastDepth, deeper] = [16, 5]

type InTurn = { effect: EffectRow; place: number; line_place: number }

/** Returns whether no effect that lies deeper in a line comes before the last one that was read. */
function isDeepEnough(rows: InTurn[], depth: number): boolean {
  const isFull = rows.length === planningDepth
  const lastPlace = rows.at(-1)?.place ?? 0
  const ofEach = Map.groupBy(rows, ({ effect }) => effect.organization_id)
  return [...ofEach.values()].every((own) => {
    // The first effect of a line behind which more may follow that was not read.
    const cut = own.find(({ line_place }) => line_place === depth)
    if (!cut) return true
    const end = own.at(-1) ?? cut
    // What follows comes after the last one that was read only if the limit cut this organization off: in the last
    // turn or, if that did not reach it, in the one before.
    if (!isFull || end.place < lastPlace - 1) return false
    // Of equally urgent effects, those deeper in their lines come last; less urgent ones would come after them.
    return urgencyOf(end.effect.src) === urgencyOf(cut.effect.src)
  })
}

/**
 * Selects the first effect of each organization before the second of any, and within an organization the
 * first of each line before the second of any: so no organization fills what is read at once, and no
 * line that cannot be planned does.
 */
const waitingInTurn = query((db, { queue, depth }: Given<{ queue: string; depth: number }>) => {
  const places = Object.entries(urgency).map(([src, place]) => sql.raw(`when '${src}' then ${place}`))
  const urgencyOfRow = sql`case ${effects.src} ${sql.join(places, sql` `)} else 9 end`
  const line_place = sql<number>`in_line.line_place`.mapWith(Number)
  return db
    .select({
      effect: effects,
      line_place: line_place.as("line_place"),
      place:
        sql<number>`row_number() over (partition by ${effects.organization_id} order by ${urgencyOfRow}, in_line.line_place, ${effects.id})`
          .mapWith(Number)
          .as("place"),
    })
    .from(firstsOfLines(queue, depth))
    .innerJoin(effects, eq(effects.id, sql`in_line.id`))
    .orderBy(sql`place`, asc(effects.id))
    .limit(planningDepth)
})

/** Takes one index lookup for each line, and one for each effect found in it. */
function firstsOfLines(queue: SQL<string>, depth: SQL<number>): SQL {
  // Phrased like the index in migrations/0029_waiting_in_turn.sql.
  const line = sql`coalesce(cast(organization_id as text), '') || ' ' || src || ' ' || coalesce(input ->> 'collection_id', '')`
  const waiting = sql`from ${effects} where queue = ${queue} and status = 'open' and transaction_id is null`
  const nextLine = (than: SQL) => sql`(select ${line} ${waiting} ${than} order by ${line} limit 1)`
  const nextIn = (those: SQL) =>
    sql`(select effects.id ${waiting} and ${line} = ${those} order by id limit 1)`
  return sql`(with recursive lines(line) as (
    select ${nextLine(sql``)}
    union all select ${nextLine(sql`and ${line} > lines.line`)} from lines where lines.line is not null
  ), in_line(line, id, line_place) as (
    select lines.line, ${nextIn(sql`lines.line`)}, 1 from lines where lines.line is not null
    union all select in_line.line, ${nextIn(sql`in_line.line and effects.id > in_line.id`)}, in_line.line_place + 1
    from in_line where in_line.id is not null and in_line.line_place < ${depth}
  ) select id, line_place from in_line where id is not null) in_line`
}

/** Returns whether an effect is due. If the clock was set back, none waits longer than `maxDelayMilliseconds`. */
function isDue(lane: HeldLane, { attempts, due_at }: Effect): boolean {
  const now = lane.context.clock().getTime()
  return attempts === 0 || due_at.getTime() <= now || due_at.getTime() > now + maxDelayMilliseconds
}

/** The longest that waiting work is ever put off. */
export const maxDelayMilliseconds = 10 * 60_000

/** How many open transactions each organization has, counter work and batches separately. */
type Shares = Map<string, number>

/** Returns the shares of a lane's window, by the organizations whose effects its transactions perform. */
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

/** Counts one more open transaction for its organization. */
export function addShare(shares: Shares, holder: Holder): void {
  shares.set(shareKey(holder), shareOf(shares, holder) + 1)
}

function shareOf(shares: Shares, holder: Holder): number {
  return shares.get(shareKey(holder)) ?? 0
}

/** Keeps the two kinds apart, so that an organization's batches do not count against its claims. */
function shareKey({ src, organization_id }: Holder): string {
  return `${isAtCounter(src) ? "counter" : "batch"} ${organization_id}`
}

function isAtCounter(src: LaneEffect): boolean {
  return urgency[src] < urgency.issueUnit
}

/**
 * Returns the effect whose turn it is: the most urgent work of the organization that holds least of the window; null if
 * all that wait hold as much as they may.
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

/** Returns the effect whose turn it is, then all of its kind that may go with it, its own organization's first. */
export function ofTheSameKind(waiting: Effect[], turn: Effect): [Effect, ...Effect[]] {
  const others = waiting.filter((effect) => effect.src === turn.src && effect !== turn)
  const isOwn = ({ organization_id }: Effect) => organization_id === turn.organization_id
  return [turn, ...others.filter(isOwn), ...others.filter((each) => !isOwn(each))]
}

/** Returns the contracts that other lanes of the chain are calling with work that keeps an order. */
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
        inArray(transactions.status, openTransactionStatuses),
      ),
    ),
)

/** Returns the contracts that a transaction calls, directly or through the desk. */
export function contractsOf({ to, call }: { to: string; call: string }): string[] {
  return callsIn({ to, data: call }).map((each) => each.to)
}
