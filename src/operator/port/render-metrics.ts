import { and, asc, count, eq, gt, inArray, isNotNull, isNull, lt, min } from "drizzle-orm"
import { Gauge, Registry } from "prom-client"
import { chainCursors } from "../../db/chain-schema.ts"
import type { Queries } from "../../db/database.ts"
import { events, webhookEndpoints, webhookQueue } from "../../db/event-schema.ts"
import { type Given, query } from "../../db/query.ts"
import { actorTimers, effects, lanes, transactions } from "../../db/schema.ts"
import { openTransactionStatuses, webhookEndpointStatuses } from "../../db/statuses.ts"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import type { ProviderHealth } from "../../engine/chain/providers.ts"
import { hasKeyOf } from "../../engine/chain/signers.ts"
import { kindsOfWork } from "../../engine/lanes/turns.ts"
import type { World } from "../../engine/world.ts"
import type { Context, KeyFault } from "../../platform/context.ts"
import { within } from "../../platform/deadline.ts"
import { registry } from "../../platform/metrics.ts"
import { createQuickClient } from "../ask-chain.ts"
import { clockOffset } from "../clock-offset.ts"
import type { WakeUpBoard } from "./wake-up-board.ts"

/** All metrics in Prometheus's text format: what this process counted, and the state of the whole service. */
export async function renderMetrics(world: World, board: WakeUpBoard | null): Promise<string> {
  const [state, counted] = await Promise.all([stateOf(world, board), registry.metrics()])
  return `${counted}\n${state}`
}

export const metricsType = registry.contentType

/** Read on every request: from the database, which all processes share, from Redis and the chains. */
async function stateOf({ context, chains }: World, board: WakeUpBoard | null): Promise<string> {
  const gauges = createGauges()
  for (const chain of chains.keys())
    for (const variable of ["AUTHORIZER_KEY", "SIGNER_KEYS", "CHAINS"]) {
      const isOfBoth = (each: KeyFault) => each.chain_id === chain && each.variable === variable
      gauges.key_faults.set({ chain: String(chain), variable }, context.keyFaults().filter(isOfBoth).length)
    }
  await Promise.all([
    readDatabase(context.db.read, { chains, now: context.clock() }, gauges),
    readClock(context, gauges),
    readRedis(board, gauges),
    ...[...chains.values()].map((chain) => readChain(chain, gauges)),
  ])
  return await gauges.registry.metrics()
}

type Gauges = ReturnType<typeof createGauges>

function createGauges() {
  const own = new Registry()
  const gauge = (name: string, help: string, labelNames: string[] = []) => {
    const made = new Gauge({ name, help, labelNames, registers: [own] })
    // One without labels begins as 0, but is absent until its value is known.
    if (labelNames.length === 0) made.remove()
    return made
  }
  return {
    registry: own,
    database_up: gauge("service_database_up", "1 if the database answered"),
    database_seconds: gauge("service_database_seconds", "Time that the database took to answer, in seconds"),
    clock_offset: gauge(
      "service_clock_offset_seconds",
      "Clock of this process minus that of the database, in seconds; absent on SQLite",
    ),
    effects_open: gauge(
      "service_effects_open",
      "Effects, which are work for the outside world, that are not done yet",
      ["src"],
    ),
    effects_oldest: gauge("service_effects_oldest_seconds", "Age of the oldest open effect, in seconds", [
      "src",
    ]),
    apply_lag: gauge(
      "service_apply_lag_seconds",
      "How long the most overdue timer of a machine has been due, in seconds",
    ),
    lane_status: gauge("service_lane_status", "1 for the present status of the lane, 0 for the others", [
      "lane",
      "status",
    ]),
    lane_held: gauge(
      "service_lane_held",
      "1 while a worker holds the lane; absent if its key is not in SIGNER_KEYS",
      ["lane"],
    ),
    lane_in_flight: gauge(
      "service_lane_in_flight",
      "Transactions that are not confirmed yet, whether sent or not",
      ["lane"],
    ),
    lane_next_nonce: gauge("service_lane_next_nonce", "The next nonce of the lane", ["lane"]),
    lane_balance: gauge(
      "service_lane_balance_ether",
      "Balance of the lane's signer, in the coin of the chain",
      ["lane"],
    ),
    chain_up: gauge("service_chain_up", "1 if a provider of the chain answered", ["chain"]),
    provider_up: gauge(
      "service_chain_provider_up",
      "1 while the provider answers this process, by its place in rpc_urls",
      ["chain", "number"],
    ),
    chain_seconds: gauge(
      "service_chain_seconds",
      "Time that the providers of the chain took to answer, in seconds",
      ["chain"],
    ),
    chain_head: gauge("service_chain_head", "Number of the newest block", ["chain"]),
    chain_watched: gauge(
      "service_chain_watched_block",
      "Number of the last block read for authorizations and owners",
      ["chain"],
    ),
    webhook_endpoints: gauge("service_webhook_endpoints", "Webhook endpoints by status", ["status"]),
    webhook_given_up: gauge(
      "service_webhook_endpoints_given_up",
      "Webhook endpoints that are paused because every attempt to deliver an event failed",
    ),
    webhook_waiting: gauge(
      "service_webhook_events_waiting",
      "Events waiting to be delivered to enabled webhook endpoints",
    ),
    webhook_oldest: gauge(
      "service_webhook_oldest_seconds",
      "Age of the oldest event waiting for an enabled webhook endpoint, in seconds; absent if none is",
    ),
    events_unnumbered: gauge("service_events_unnumbered", "Events that have no place in the feed yet"),
    key_faults: gauge(
      "service_key_faults",
      "Keys, or the desk, to which the factory does not grant the role they need",
      ["chain", "variable"],
    ),
    redis_up: gauge("service_redis_up", "1 if Redis accepted a write; absent without Redis"),
    wake_ups: gauge("service_wake_ups_waiting", "Wake-ups that no worker has taken yet"),
  }
}

async function readDatabase(queries: Queries, asked: Asked, gauges: Gauges): Promise<void> {
  const begin = performance.now()
  const isUp = await inTime(readRows(queries, asked, gauges)).then(
    () => true,
    () => false,
  )
  gauges.database_up.set(Number(isUp))
  gauges.database_seconds.set((performance.now() - begin) / 1000)
}

/** A silent database must not take longer than Prometheus waits for everything, ten seconds. */
function inTime<T>(answer: Promise<T>): Promise<T> {
  return within(answer, 8_000, "the database did not answer in time")
}

type Asked = { chains: World["chains"]; now: Date }

async function readRows(queries: Queries, { chains, now }: Asked, gauges: Gauges): Promise<void> {
  await readWork(queries, now, gauges)
  await readLanes(queries, { chains, now }, gauges)
  for (const { chain_id, block_number } of await queries.select().from(chainCursors))
    gauges.chain_watched.set({ chain: String(chain_id) }, block_number)
  await readWebhooks(queries, now, gauges)
}

async function readWork(queries: Queries, now: Date, gauges: Gauges): Promise<void> {
  const [overdue] = await queries
    .select({ due_at: actorTimers.due_at })
    .from(actorTimers)
    .where(lt(actorTimers.due_at, now))
    .orderBy(asc(actorTimers.due_at))
    .limit(1)
  gauges.apply_lag.set(overdue ? secondsSince(overdue.due_at, now) : 0)
  for (const src of [...kindsOfWork, "watchAuthorization"]) {
    const [of] = await openOf(queries, { src })
    if (!of?.oldest) continue
    gauges.effects_open.set({ src }, Number(of.open))
    gauges.effects_oldest.set({ src }, secondsSince(of.oldest, now))
  }
}

/** Each kind by itself, because only then SQLite reads nothing but the index, like which this is phrased. */
const openOf = query((db, { src }: Given<{ src: string }>) =>
  db
    .select({ open: count(), oldest: min(effects.created_at) })
    .from(effects)
    .where(and(eq(effects.status, "open"), eq(effects.src, src), gt(effects.src, ""))),
)

/** Nobody works on a chain that is not in CHAINS, nor holds for long a lane whose key is not in SIGNER_KEYS. */
async function readLanes(queries: Queries, { chains, now }: Asked, gauges: Gauges): Promise<void> {
  const rows = await queries
    .select({ lane: transactions.lane_id, open: count() })
    .from(transactions)
    .where(inArray(transactions.status, openTransactionStatuses))
    .groupBy(transactions.lane_id)
  const inFlight = new Map(rows.map((row) => [row.lane, Number(row.open)]))
  for (const { id: lane, chain_id, status, leased_until, next_nonce } of await queries.select().from(lanes)) {
    const chain = chains.get(chain_id)
    if (!chain) continue
    for (const each of ["open", "paused", "halted"])
      gauges.lane_status.set({ lane, status: each }, Number(status === each))
    if (hasKeyOf(chain, lane))
      gauges.lane_held.set({ lane }, Number(leased_until !== null && leased_until > now))
    gauges.lane_in_flight.set({ lane }, inFlight.get(lane) ?? 0)
    if (next_nonce !== null) gauges.lane_next_nonce.set({ lane }, next_nonce)
  }
}

function secondsSince(at: Date, now: Date): number {
  return Math.max(0, (now.getTime() - at.getTime()) / 1000)
}

/** Also absent while the database does not respond. */
async function readClock(context: Context, gauges: Gauges): Promise<void> {
  const offset = await inTime(clockOffset(context)).catch(() => null)
  if (offset === null) return gauges.registry.removeSingleMetric("service_clock_offset_seconds")
  gauges.clock_offset.set(offset)
}

async function readWebhooks(queries: Queries, now: Date, gauges: Gauges): Promise<void> {
  const endpoints = await queries
    .select({ status: webhookEndpoints.status, there: count() })
    .from(webhookEndpoints)
    .where(isNull(webhookEndpoints.deleted_at))
    .groupBy(webhookEndpoints.status)
  for (const status of webhookEndpointStatuses)
    gauges.webhook_endpoints.set(
      { status },
      Number(endpoints.find((each) => each.status === status)?.there ?? 0),
    )
  const [given] = await queries
    .select({ up: count() })
    .from(webhookEndpoints)
    .where(and(eq(webhookEndpoints.status, "paused"), isNotNull(webhookEndpoints.failure)))
  gauges.webhook_given_up.set(Number(given?.up ?? 0))
  const [waiting] = await queries
    .select({ waiting: count(), oldest: min(webhookQueue.created_at) })
    .from(webhookQueue)
    .innerJoin(webhookEndpoints, eq(webhookEndpoints.id, webhookQueue.endpoint_id))
    .where(eq(webhookEndpoints.status, "enabled"))
  gauges.webhook_waiting.set(Number(waiting?.waiting ?? 0))
  if (waiting?.oldest) gauges.webhook_oldest.set(secondsSince(waiting.oldest, now))
  const [unnumbered] = await queries.select({ there: count() }).from(events).where(isNull(events.position))
  gauges.events_unnumbered.set(Number(unnumbered?.there ?? 0))
}

async function readRedis(board: WakeUpBoard | null, gauges: Gauges): Promise<void> {
  if (!board) return gauges.registry.removeSingleMetric("service_redis_up")
  gauges.redis_up.set((await board.takesWrites()) ? 1 : 0)
  const waiting = await board.waiting()
  if (waiting !== null) gauges.wake_ups.set(waiting)
}

async function readChain(connected: ConnectedChain, gauges: Gauges): Promise<void> {
  const { chain_id, config, signers } = connected
  const chain = String(chain_id)
  const client = createQuickClient(config)
  const begin = performance.now()
  let answered = false
  try {
    const [head, ...balances] = await within(
      Promise.all([client.getBlockNumber(), ...signers.map(({ address }) => client.getBalance({ address }))]),
      patienceMilliseconds,
      "the chain did not answer in time",
    )
    gauges.chain_head.set({ chain }, Number(head))
    for (const [index, { lane_id }] of signers.entries())
      gauges.lane_balance.set({ lane: lane_id }, Number(balances[index]) / 10 ** config.coin_decimals)
    answered = true
  } catch {}
  gauges.chain_up.set({ chain }, Number(answered))
  readProviders(connected, answered, gauges)
  gauges.chain_seconds.set({ chain }, (performance.now() - begin) / 1000)
}

/** Metrics do not wait for a silent chain. */
const patienceMilliseconds = 3_000

/**
 * Each provider as this process knows it. A process without work asks them nothing, so it asks all of several here, for
 * the next reading; of a single one it knows whether the chain has just `answered`.
 */
function readProviders({ chain_id, providers }: ConnectedChain, answered: boolean, gauges: Gauges): void {
  providers.rankWhenDue()
  const health = providers.health()
  for (const each of health) {
    const isUp = health.length === 1 ? answered : isAnswering(each)
    gauges.provider_up.set({ chain: String(chain_id), number: String(each.number) }, Number(isUp))
  }
}

/** Returns whether a provider is not resting, nor between two rests, the longest of which takes a minute. */
function isAnswering({ state, troubled_seconds }: ProviderHealth): boolean {
  return state !== "resting" && state !== "gone" && troubled_seconds < 60
}
