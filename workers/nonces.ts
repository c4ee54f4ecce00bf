import { adoptNonce, haltLane, type LeasedLane } from "../src/chain/lanes.ts"
import { reach } from "../src/chain/rpc.ts"
import {
  displaceTransaction,
  effectsOf,
  finalFrom,
  isInFlight,
  nonceAfterLast,
  openTransactions,
  type TransactionRow,
  updateTransaction,
  type WatchedTransaction,
} from "../src/chain/transactions.ts"
import type { Queries } from "../src/db/database.ts"
import { followFinalBlock, reorganizedTooDeep } from "./final-block.ts"
import { type HeldLane, inLane } from "./lane.ts"

/**
 * Compares what chain and database know of a signer's nonces and of the blocks that are final. Whatever cannot be,
 * halts the lane until a person has told it, by `operator retry`, to take its nonces from the chain again.
 */
export async function compareWithChain(lane: HeldLane, { lane: row }: LeasedLane): Promise<void> {
  if (row.next_nonce === null) {
    delete lane.memory.seen_head
    return await adopt(lane)
  }
  if (lane.is_halted) return
  const reason = (await reorganizedTooDeep(lane, row)) ?? (await outOfStep(lane, row.next_nonce))
  if (reason !== null) return await halt(lane, reason)
  await followFinalBlock(lane, row.final_block_number)
}

/** Stops the lane; what is on its way is still watched. */
export async function halt(lane: HeldLane, reason: string): Promise<void> {
  if (lane.is_halted) return
  lane.is_halted = true
  lane.context.log.error({ lane_id: lane.lease.lane_id, reason }, "the lane is halted")
  await inLane(lane, (turn) => haltLane(turn, lane.lease, reason))
}

/** Whether somebody else used a transaction's nonce: beyond doubt, at depth, and in the eyes of every provider. */
export async function isUsedByOther(lane: HeldLane, transaction: WatchedTransaction): Promise<boolean> {
  const depth = BigInt(lane.chain.config.confirmation_depth)
  const blockNumber = lane.head - depth + 1n
  if (transaction.nonce >= lane.used_nonces || blockNumber < 0n) return false
  const { address } = lane.signer
  const usedAtDepth = await reach(() => lane.chain.rpc.getTransactionCount({ address, blockNumber }))
  if (usedAtDepth <= transaction.nonce) return false
  for (const { hash } of transaction.attempts) {
    const params = [hash]
    const receipts = await lane.chain.providers.askAll({ method: "eth_getTransactionReceipt", params })
    if (receipts.length < lane.chain.config.rpc_urls.length || receipts.some((receipt) => receipt !== null))
      return false
  }
  return true
}

async function outOfStep(lane: HeldLane, nextNonce: number): Promise<string | null> {
  const { address, lane_id } = lane.signer
  const { used_nonces: used, chain } = lane
  if (used > nextNonce)
    return `the chain has ${used} transactions of ${address}, the database knows ${nextNonce}: stop whoever else uses the key, then run: operator retry ${lane_id}`
  const lost = await finalFrom(lane.context.db.read, lane_id, used)
  if (lost.length === 0) return null
  return `the chain has ${used} transactions of ${address} and had ${used + lost.length} at a depth of ${chain.config.finality_depth} blocks: check that its providers are right, then run: operator retry ${lane_id}`
}

/**
 * Takes the lane's nonces from the chain: at its first start, and when a person said so. What the chain lost is sent
 * again, what lost its nonce to somebody else gets a new one.
 */
async function adopt(lane: HeldLane): Promise<void> {
  const { address, lane_id } = lane.signer
  const { read } = lane.context.db
  const pending = await reach(() => lane.chain.rpc.getTransactionCount({ address, blockTag: "pending" }))
  const lost = await finalFrom(read, lane_id, lane.used_nonces)
  const displaced: WatchedTransaction[] = []
  for (const transaction of await openTransactions(read, lane_id))
    if (isInFlight(transaction) && (await isUsedByOther(lane, transaction))) displaced.push(transaction)
  const next = Math.max(lane.used_nonces, pending, await nonceAfterLast(read, lane_id))
  const achieved = await whichAchieved(read, lost)
  await inLane(lane, async (turn) => {
    await adoptNonce(turn, lane.lease, next)
    for (const { id } of lost) {
      const status = achieved.has(id) ? "confirmed" : "reverted"
      await updateTransaction(turn, lane.lease, id, { status, ...nowhere })
    }
    for (const transaction of displaced)
      await displaceTransaction(turn, lane.lease, transaction, { status: "final", ...nowhere })
  })
}

/** Those that something was done by, of transactions whose results were given; others reverted or were cancelled. */
async function whichAchieved(queries: Queries, given: TransactionRow[]): Promise<Set<string>> {
  const achieved = new Set<string>()
  for (const { id } of given)
    if ((await effectsOf(queries, id)).some(({ status }) => status === "done")) achieved.add(id)
  return achieved
}

/** A transaction that no block holds, and that is due to be sent at once. */
export const nowhere = { hash: null, block_number: null, block_hash: null, sent_block: null }
