import { and, asc, count, desc, eq, inArray, isNull, min } from "drizzle-orm"
import type { Address } from "viem"
import { chainCursors } from "../../db/chain-schema.ts"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { effects, lanes, transactions } from "../../db/schema.ts"
import { openTransactionStatuses } from "../../db/statuses.ts"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { roleFaults } from "../../engine/chain/check-roles.ts"
import { inCoin } from "../../engine/chain/coin.ts"
import { unlessUnknown } from "../../engine/chain/endpoint.ts"
import type { Providers } from "../../engine/chain/providers.ts"
import { rawMessage } from "../../engine/chain/rpc.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import type { Context, KeyFault } from "../../platform/context.ts"
import { within } from "../../platform/deadline.ts"
import { laneQueue } from "../../platform/queues.ts"
import { createQuickClient, createQuickProviders, lookAt, troubleWith } from "../ask-chain.ts"
import { doubledSerials, unaskedSerials } from "./found-serials.ts"

/** What each chain says now, and each lane with its work and its account. */
export async function readChainStatus({ config, db, clock }: Pick<Context, "config" | "db" | "clock">) {
  const rows = await lanesWithWork(db.read, clock())
  const chains = await Promise.all(config.chains.map((chain) => askChain(db.read, chain, rows, clock())))
  const accounts = new Map(chains.flatMap((chain) => chain.accounts))
  return {
    chains: chains.map(({ status }) => status),
    lanes: rows
      .map((lane) => ({ ...lane, ...(accounts.get(lane.id) ?? unknownAccount) }))
      .map((lane) => ({
        ...lane,
        runway_transactions: runway(lane),
        balance: balanceOf(lane, config.chains),
      })),
    unasked_serials: await unaskedSerials(db.read),
    doubled_serials: await doubledSerials(db.read),
  }
}

export type ChainStatus = Awaited<ReturnType<typeof readChainStatus>>

type LaneWithWork = Awaited<ReturnType<typeof lanesWithWork>>[number]
/** Null if the chain was not reached. */
type Account = { nonce_latest: number | null; nonce_pending: number | null; balance_wei: string | null }
const unknownAccount: Account = { nonce_latest: null, nonce_pending: null, balance_wei: null }

/** What only a connected process knows: its providers, the faults of its keys, and its lanes. */
export async function readConnections(chains: ReadonlyMap<number, ConnectedChain>) {
  const connected = [...chains.values()]
  return {
    providers: (await Promise.all(connected.map(providersOf))).flat(),
    key_faults: (await Promise.all(connected.map(keyFaultLines))).flat(),
    own_lane_ids: connected.flatMap(({ signers }) => signers.map(({ lane_id }) => lane_id)),
  }
}

/** How each provider answers now, by its place in `rpc_urls`. */
async function providersOf({ chain_id, providers }: ConnectedChain) {
  const asked = providers.askAll({ method: "eth_blockNumber" }).then(() => providers.rank())
  await within(asked, patienceMilliseconds, "a provider did not answer in time").catch(() => {})
  return providers.health().map((provider) => ({ chain_id, ...provider }))
}

/** How long a silent chain is waited for. */
const patienceMilliseconds = 3_000

/** What is wrong with the keys of a chain; a line of its own if that is unknown. */
async function keyFaultLines(chain: ConnectedChain): Promise<string[]> {
  return await keyFaultsOf(chain).then(
    (faults) => faults.map(({ text }) => text),
    (error) => [`whether keys lack their roles on chain ${chain.chain_id} is unknown: ${rawMessage(error)}`],
  )
}

/** The keys that the factory does not accept in their role; none if it cannot be asked. */
export async function readKeyFaults(chains: ReadonlyMap<number, ConnectedChain>): Promise<KeyFault[]> {
  const asked = [...chains.values()].map((chain) => keyFaultsOf(chain).catch(() => []))
  return (await Promise.all(asked)).flat()
}

/** Throws if the factory cannot be asked in time. */
async function keyFaultsOf(chain: ConnectedChain): Promise<KeyFault[]> {
  return await within(roleFaults(chain), patienceMilliseconds, "it did not answer in time")
}

async function lanesWithWork(queries: Queries, now: Date) {
  const open = await queries
    .select({
      lane_id: transactions.lane_id,
      transactions: count(),
      oldest: min(transactions.created_at),
    })
    .from(transactions)
    .where(inArray(transactions.status, openTransactionStatuses))
    .groupBy(transactions.lane_id)
  const openByLane = new Map(open.map((each) => [each.lane_id, each]))
  const rows = await queries.select().from(lanes).orderBy(asc(lanes.chain_id), asc(lanes.id))
  const costs = new Map<string, bigint | null>()
  const waiting = new Map<string, number>()
  for (const { id } of rows) {
    costs.set(id, await usualCost(queries, id))
    const [of] = await waitingIn(queries, { queue: laneQueue(id) })
    waiting.set(id, Number(of?.waiting))
  }
  return rows.map((lane) => ({
    id: lane.id,
    chain_id: lane.chain_id,
    address: lane.address,
    purpose: lane.purpose,
    status: lane.status,
    reason: lane.reason,
    next_nonce: lane.next_nonce,
    open_transactions: Number(openByLane.get(lane.id)?.transactions ?? 0),
    waiting_effects: waiting.get(lane.id) ?? 0,
    oldest_open_at: openByLane.get(lane.id)?.oldest?.toISOString() ?? null,
    usual_cost_wei: costs.get(lane.id)?.toString() ?? null,
    leased_until: lane.leased_until?.toISOString() ?? null,
    is_held: lane.leased_until !== null && lane.leased_until > now,
  }))
}

/** How much work has no transaction yet. */
const waitingIn = query((db, { queue }: Given<{ queue: string }>) =>
  db
    .select({ waiting: count() })
    .from(effects)
    .where(and(eq(effects.queue, queue), eq(effects.status, "open"), isNull(effects.transaction_id))),
)

/** The average maximum cost of a lane's last transactions; null if it never sent one. */
async function usualCost(queries: Queries, laneId: string): Promise<bigint | null> {
  const last = await queries
    .select({ gas: transactions.gas, max_fee_per_gas: transactions.max_fee_per_gas })
    .from(transactions)
    .where(eq(transactions.lane_id, laneId))
    .orderBy(desc(transactions.nonce))
    .limit(20)
  if (last.length === 0) return null
  const sum = last.reduce((wei, { gas, max_fee_per_gas }) => wei + BigInt(gas) * BigInt(max_fee_per_gas), 0n)
  return sum / BigInt(last.length)
}

function balanceOf({ chain_id, balance_wei }: LaneWithWork & Account, chains: ChainConfig[]): string | null {
  const chain = chains.find((each) => each.chain_id === chain_id)
  return chain && balance_wei !== null ? inCoin(BigInt(balance_wei), chain) : null
}

/** How many more transactions a balance can pay for, at the usual cost. */
function runway({ usual_cost_wei, balance_wei }: LaneWithWork & Account): number | null {
  if (balance_wei === null || !usual_cost_wei || usual_cost_wei === "0") return null
  return Number(BigInt(balance_wei) / BigInt(usual_cost_wei))
}

/** What a chain says now, within a few seconds, and how far this service has read it. */
async function askChain(queries: Queries, chain: ChainConfig, rows: LaneWithWork[], now: Date) {
  const cursors = await queries.select().from(chainCursors)
  const watched_block = cursors.find(({ chain_id }) => chain_id === chain.chain_id)?.block_number ?? null
  const known = { chain_id: chain.chain_id, name: chain.name, watched_block }
  const providers = createQuickProviders(chain)
  const client = createQuickClient(chain, providers)
  try {
    const [look, ...accounts] = await Promise.all([
      lookAt(chain, providers),
      ...rows.filter(({ chain_id }) => chain_id === chain.chain_id).map(askAccount),
    ])
    await providers.rank()
    const told = {
      block_number: Number(look.number),
      trouble: troubleWith(chain, look, now),
    }
    return {
      status: { ...known, ...told, reachable: true, error: null, troubled: troubledOf(providers) },
      accounts,
    }
  } catch (error) {
    return {
      status: { ...known, ...unreached, reachable: false, error: rawMessage(error) },
      accounts: [],
    }
  }

  async function askAccount(lane: LaneWithWork): Promise<[string, Account]> {
    const address = lane.address as Address
    const [latest, pending, balance] = await Promise.all([
      client.getTransactionCount({ address, blockTag: "latest" }),
      unlessUnknown(client.getTransactionCount({ address, blockTag: "pending" }), () => null),
      client.getBalance({ address }),
    ])
    return [lane.id, { nonce_latest: latest, nonce_pending: pending, balance_wei: String(balance) }]
  }
}

const unreached = { block_number: null, trouble: null, troubled: [] }

/** The providers that are not healthy, by their place in `rpc_urls`. */
function troubledOf(providers: Providers) {
  return providers.health().filter(({ state }) => state !== "healthy")
}
