import { and, asc, count, desc, eq, inArray, isNull, min } from "drizzle-orm"
import { type Address, createPublicClient, fallback, formatEther, http } from "viem"
import { rawMessage } from "../chain/rpc.ts"
import type { ChainConfig } from "../config.ts"
import type { Queries } from "../db/database.ts"
import { chainCursors, foundSerials, lanes, transactions, units } from "../db/schema.ts"
import type { Command } from "./command.ts"
import { table } from "./text.ts"

export const chainStatus: Command = {
  name: "chain status",
  takes: "",
  options: {},
  plan:
    () =>
    async ({ context }) => {
      const rows = await lanesWithWork(context.db.read)
      const chains = await Promise.all(
        context.config.chains.map((chain) => askChain(context.db.read, chain, rows)),
      )
      const accounts = new Map(chains.flatMap((chain) => chain.accounts))
      const laneStatuses = rows
        .map((lane) => ({ ...lane, ...(accounts.get(lane.id) ?? unknownAccount) }))
        .map((lane) => ({ ...lane, runway_transactions: runway(lane) }))
      const unasked_serials = await unaskedSerials(context.db.read)
      const document = { chains: chains.map(({ status }) => status), lanes: laneStatuses, unasked_serials }
      const parts = [`chains\n${chainTable(document.chains)}`, `lanes\n${laneTable(laneStatuses)}`]
      if (unasked_serials.length > 0)
        parts.push(`serials that the chain has and no unit\n${serialTable(unasked_serials)}`)
      return { document, text: parts.join("\n\n") }
    },
}

const timeoutMilliseconds = 2_000

type LaneWithWork = Awaited<ReturnType<typeof lanesWithWork>>[number]
/** Null: the chain was not reached. */
type Account = { nonce_latest: number | null; nonce_pending: number | null; balance_wei: string | null }
const unknownAccount: Account = { nonce_latest: null, nonce_pending: null, balance_wei: null }

async function lanesWithWork(queries: Queries) {
  const open = await queries
    .select({
      lane_id: transactions.lane_id,
      transactions: count(),
      oldest: min(transactions.created_at),
    })
    .from(transactions)
    .where(inArray(transactions.status, ["allocated", "signed", "sent", "mined"]))
    .groupBy(transactions.lane_id)
  const openByLane = new Map(open.map((each) => [each.lane_id, each]))
  const rows = await queries.select().from(lanes).orderBy(asc(lanes.chain_id), asc(lanes.id))
  const costs = new Map<string, bigint | null>()
  for (const { id } of rows) costs.set(id, await usualCost(queries, id))
  return rows.map((lane) => ({
    id: lane.id,
    chain_id: lane.chain_id,
    address: lane.address,
    purpose: lane.purpose,
    status: lane.status,
    reason: lane.reason,
    next_nonce: lane.next_nonce,
    open_transactions: Number(openByLane.get(lane.id)?.transactions ?? 0),
    oldest_open_at: openByLane.get(lane.id)?.oldest?.toISOString() ?? null,
    usual_cost_wei: costs.get(lane.id)?.toString() ?? null,
    leased_until: lane.leased_until?.toISOString() ?? null,
  }))
}

/** What a lane's last transactions could cost at the most, on average; null when it never sent one. */
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

/** How many more transactions a balance pays for, at the usual cost. */
function runway({ usual_cost_wei, balance_wei }: LaneWithWork & Account): number | null {
  if (balance_wei === null || !usual_cost_wei || usual_cost_wei === "0") return null
  return Number(BigInt(balance_wei) / BigInt(usual_cost_wei))
}

/** What a chain says now, in at most a few seconds, and how far this service has read it. */
async function askChain(queries: Queries, chain: ChainConfig, rows: LaneWithWork[]) {
  const cursors = await queries.select().from(chainCursors)
  const watched_block = cursors.find(({ chain_id }) => chain_id === chain.chain_id)?.block_number ?? null
  const known = { chain_id: chain.chain_id, name: chain.name, watched_block }
  const client = createPublicClient({
    transport: fallback(
      chain.rpc_urls.map((url) => http(url, { timeout: timeoutMilliseconds, retryCount: 0 })),
      { retryCount: 0 },
    ),
  })
  try {
    const [block, ...accounts] = await Promise.all([
      client.getBlockNumber(),
      ...rows.filter(({ chain_id }) => chain_id === chain.chain_id).map(askAccount),
    ])
    return { status: { ...known, reachable: true, block_number: Number(block), error: null }, accounts }
  } catch (error) {
    return {
      status: { ...known, reachable: false, block_number: null, error: rawMessage(error) },
      accounts: [],
    }
  }

  async function askAccount(lane: LaneWithWork): Promise<[string, Account]> {
    const address = lane.address as Address
    const [latest, pending, balance] = await Promise.all([
      client.getTransactionCount({ address, blockTag: "latest" }),
      client.getTransactionCount({ address, blockTag: "pending" }),
      client.getBalance({ address }),
    ])
    return [lane.id, { nonce_latest: latest, nonce_pending: pending, balance_wei: String(balance) }]
  }
}

/** By collection, the serials found on chain after a back-up was restored whose chip is not paired again yet. */
async function unaskedSerials(queries: Queries) {
  const rows = await queries
    .select({ collection_id: foundSerials.collection_id, serials: count() })
    .from(foundSerials)
    .leftJoin(
      units,
      and(eq(units.collection_id, foundSerials.collection_id), eq(units.serial, foundSerials.serial)),
    )
    .where(isNull(units.id))
    .groupBy(foundSerials.collection_id)
    .orderBy(asc(foundSerials.collection_id))
  return rows.map(({ collection_id, serials }) => ({ collection_id, serials: Number(serials) }))
}

type ChainStatus = Awaited<ReturnType<typeof askChain>>["status"]

function chainTable(chains: ChainStatus[]): string {
  return table(
    ["CHAIN", "NAME", "REACHABLE", "NEWEST BLOCK", "WATCHED TO"],
    chains.map((chain) => [
      chain.chain_id,
      chain.name,
      chain.reachable ? "yes" : `no: ${chain.error}`,
      chain.block_number,
      chain.watched_block,
    ]),
  )
}

function serialTable(rows: Awaited<ReturnType<typeof unaskedSerials>>): string {
  return table(
    ["COLLECTION", "SERIALS"],
    rows.map(({ collection_id, serials }) => [collection_id, serials]),
  )
}

function laneTable(rows: (LaneWithWork & Account & { runway_transactions: number | null })[]): string {
  return table(
    [
      "LANE",
      "PURPOSE",
      "STATUS",
      "NEXT NONCE",
      "ON CHAIN",
      "PENDING",
      "OPEN",
      "OLDEST",
      "BALANCE",
      "RUNWAY",
      "REASON",
    ],
    rows.map((lane) => [
      lane.id,
      lane.purpose,
      lane.status,
      lane.next_nonce,
      lane.nonce_latest,
      lane.nonce_pending,
      lane.open_transactions,
      lane.oldest_open_at,
      lane.balance_wei === null ? null : formatEther(BigInt(lane.balance_wei)),
      lane.runway_transactions === null ? null : `${lane.runway_transactions} transactions`,
      lane.reason,
    ]),
  )
}
