import { asc, count, isNotNull, isNull, lt } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { events } from "../../db/event-schema.ts"
import { actorTimers, organizations } from "../../db/schema.ts"
import type { Context } from "../../platform/context.ts"
import { counted } from "../../platform/counted.ts"
import { clockOffset } from "../clock-offset.ts"
import { type WebhookState, webhookStates } from "../stories/webhook-states.ts"
import { readChainStatus } from "../verbs/chain-status.ts"
import { describeDoubled } from "../verbs/found-serials.ts"
import { findStuck, mostStuck } from "../verbs/stuck.ts"
import { shareAnswer } from "./shared-answer.ts"

/** One thing that an operator looks at first. `address` links to more, if there is more. */
export type Sign = { is_wrong: boolean; text: string; address: string | null }

/** What is wrong now, then what is right; read at most every five seconds for all viewers. */
export function createHealth(context: Context): () => Promise<Sign[]> {
  return shareAnswer(
    () => readSigns(context),
    () => freshMilliseconds,
  )
}

const freshMilliseconds = 5_000

async function readSigns(context: Context): Promise<Sign[]> {
  const queries = context.db.read
  const now = context.clock()
  const status = await readChainStatus(context)
  const signs = [
    ...stuckSigns(await findStuck(queries, now)),
    ...context.keyFaults().map(({ text }) => wrong(text)),
    ...clockSigns(await clockOffset(context)),
    ...status.lanes.flatMap(laneSigns),
    ...status.chains.flatMap((chain) => chainSigns(context, chain)),
    ...(await timerSigns(queries, now)),
    ...(await webhookSigns(queries, now)),
    ...(await feedSigns(queries, now)),
    ...status.unasked_serials.map(({ collection_id, serials }) =>
      wrong(
        `the chain has ${serials} serials of a collection that belong to no unit: pair their chips again`,
        `/console/actors/${collection_id}`,
      ),
    ),
    ...status.doubled_serials.map((doubled) =>
      wrong(describeDoubled(doubled), `/console/actors/${doubled.unit_id}`),
    ),
    ...(await suspendedSigns(queries)),
  ]
  return [...signs.filter(({ is_wrong }) => is_wrong), ...signs.filter(({ is_wrong }) => !is_wrong)]
}

function wrong(text: string, address: string | null = null): Sign {
  return { is_wrong: true, text, address }
}

function right(text: string, address: string | null = null): Sign {
  return { is_wrong: false, text, address }
}

type Stuck = Awaited<ReturnType<typeof findStuck>>
type ChainStatus = Awaited<ReturnType<typeof readChainStatus>>

/** The oldest stands for all that wait for the same reason. */
function stuckSigns(stuck: Stuck): Sign[] {
  const reasons = Map.groupBy(stuck, ({ reason }) => reason)
  if (reasons.size === 0) return [right("nothing is stuck")]
  const atLeast = stuck.length < mostStuck ? "" : "at least "
  const named = [...reasons].slice(0, mostReasons).flatMap(([reason, all]) => {
    const [oldest] = all
    if (!oldest) return []
    return [
      wrong(
        `${atLeast}${all.length} stuck since ${seconds(oldest.since)}: ${reason}`,
        `/console/actors/${oldest.id}`,
      ),
    ]
  })
  const others = [...reasons.values()].slice(mostReasons).flat().length
  if (others === 0) return named
  return [...named, wrong(`${atLeast}${others} more stuck, for other reasons: run operator stuck`)]
}

const mostReasons = 5

/** From as far apart as the alert on clocks, in seconds. */
const wrongClockSeconds = 30

function clockSigns(offset: number | null): Sign[] {
  if (offset === null || Math.abs(offset) <= wrongClockSeconds) return []
  const apart = `${Math.round(Math.abs(offset))} s ${offset > 0 ? "ahead of" : "behind"} that of the database`
  return [wrong(`the clock of this process is ${apart}: is each synchronized by NTP?`)]
}

/** An open lane may still say what holds it up. */
function laneSigns(lane: ChainStatus["lanes"][number]): Sign[] {
  const { id, status, reason, balance, runway_transactions } = lane
  const has = balance ?? "an unknown balance"
  if (status !== "open")
    return [wrong(`lane ${id} is ${status}: ${reason ?? "no reason is recorded"}; it has ${has}`)]
  const enough = runway_transactions === null ? "" : `, enough for ${runway_transactions} usual transactions`
  const isPoor = runway_transactions !== null && runway_transactions < fewTransactions
  const money = { is_wrong: isPoor, text: `lane ${id} has ${has}${enough}`, address: null }
  return reason === null ? [money] : [wrong(`lane ${id} is open, but reports: ${reason}`), money]
}

const fewTransactions = 20

function chainSigns({ config }: Context, chain: ChainStatus["chains"][number]): Sign[] {
  const { chain_id, name, reachable, error, trouble, troubled, block_number, watched_block } = chain
  const called = `${name} (${chain_id})`
  if (!reachable) return [wrong(`${called} does not answer: ${error}`)]
  if (trouble !== null) return [wrong(`${called} ${trouble}`)]
  const providers = troubled.map(({ number, state, said }) =>
    wrong(
      `provider number ${number} of ${called} is ${state === "behind" ? "behind the others" : `failing: ${said}`}`,
    ),
  )
  return [
    ...providers,
    progressOf(config.chains, chain, `${called} is at block ${block_number}`, watched_block),
  ]
}

function progressOf(
  chains: Context["config"]["chains"],
  { chain_id, block_number }: ChainStatus["chains"][number],
  at: string,
  watched: number | null,
): Sign {
  const settings = chains.find((each) => each.chain_id === chain_id)
  if (block_number === null || watched === null || !settings) return right(at)
  const behind = Math.max(0, block_number - settings.confirmation_depth + 1 - watched)
  const text = `${at}, read up to ${watched}, ${behind} blocks behind`
  return { is_wrong: behind > settings.finality_depth, text, address: null }
}

/** Any worker fires timers, and so does whoever reads their actor. */
async function timerSigns(queries: Queries, now: Date): Promise<Sign[]> {
  const [overdue] = await queries
    .select({ id: actorTimers.actor_id, due_at: actorTimers.due_at })
    .from(actorTimers)
    .where(lt(actorTimers.due_at, new Date(now.getTime() - lateMilliseconds)))
    .orderBy(asc(actorTimers.due_at))
    .limit(1)
  if (!overdue) return []
  const since = seconds(overdue.due_at.toISOString())
  return [
    wrong(`timers have been overdue since ${since}: is a worker running?`, `/console/actors/${overdue.id}`),
  ]
}

const lateMilliseconds = 60_000

async function webhookSigns(queries: Queries, now: Date): Promise<Sign[]> {
  const states = await webhookStates(queries, null)
  const troubled = states.filter((state) => isTroubled(state, now))
  if (troubled.length === 0)
    return states.length === 0
      ? []
      : [right(counted(states.length, "webhook endpoint", "webhook endpoints"), "/console/webhooks")]
  const named = troubled.slice(0, mostReasons).map((state) => {
    const { id, url, status, waiting, waiting_since, last_refusals } = state
    const said = last_refusals[0]?.error
    const waits = `${counted(waiting, "event", "events")} waiting since ${waiting_since ? seconds(waiting_since) : "now"}`
    return wrong(
      `webhook endpoint ${url} is ${status}, ${waits}${said ? `: ${said}` : ""}`,
      `/console/actors/${id}`,
    )
  })
  const others = troubled.length - named.length
  if (others === 0) return named
  const have = counted(others, "more webhook endpoint has", "more webhook endpoints have")
  return [...named, wrong(`${have} events waiting`, "/console/webhooks")]
}

/** An endpoint without a backlog is fine, and so is one that its organization has paused. */
function isTroubled({ status, failure, waiting_since, last_refusals }: WebhookState, now: Date): boolean {
  if (waiting_since === null) return false
  if (status === "paused") return failure !== null
  if (now.getTime() - Date.parse(waiting_since) > deliveredMilliseconds) return true
  return last_refusals.length > 0
}

const deliveredMilliseconds = 5 * 60_000

/** A worker gives events their place in the feed within moments. */
async function feedSigns(queries: Queries, now: Date): Promise<Sign[]> {
  const [late] = await queries.select({ there: count() }).from(events).where(isNull(events.position))
  const [first] = await queries
    .select({ created_at: events.created_at })
    .from(events)
    .where(isNull(events.position))
    .orderBy(asc(events.id))
    .limit(1)
  if (!first || now.getTime() - first.created_at.getTime() < lateMilliseconds) return []
  return [
    wrong(
      `${Number(late?.there ?? 0)} events have had no place in the feed since ${seconds(first.created_at.toISOString())}: is a worker running?`,
    ),
  ]
}

/** Suspended on purpose, so it is not called wrong. */
async function suspendedSigns(queries: Queries): Promise<Sign[]> {
  const rows = await queries
    .select({ name: organizations.name, suspended_at: organizations.suspended_at })
    .from(organizations)
    .where(isNotNull(organizations.suspended_at))
  return rows.map(({ name, suspended_at }) =>
    right(`organization ${name} has been suspended since ${seconds(suspended_at?.toISOString() ?? "")}`),
  )
}

function seconds(iso: string): string {
  return iso.replace(/\.\d+Z$/, "Z")
}
