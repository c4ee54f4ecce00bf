import { adoptNonce, haltLane, type LeasedLane } from "../src/chain/lanes.ts"
import { reach } from "../src/chain/rpc.ts"
import {
  displaceTransaction,
  finalFrom,
  isInFlight,
  nonceAfterLast,
  openTransactions,
  updateTransaction,
  type WatchedTransaction,
} from "../src/chain/transactions.ts"
import { type HeldLane, inLane } from "./lane.ts"

/**
 * Compares what chain and database know of a signer's nonces. Whatever cannot be, halts the lane until a person has
 * told it, by `operator retry`, to take its nonces from the chain again.
 */
export async function compareNonces(lane: HeldLane, { lane: row }: LeasedLane): Promise<void> {
  if (row.next_nonce === null) {
    delete lane.memory.seen_head
    return await adopt(lane)
  }
  const reason = (await reorganizedTooDeep(lane)) ?? (await outOfStep(lane, row.next_nonce))
  if (reason !== null) await halt(lane, reason)
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

async function reorganizedTooDeep(lane: HeldLane): Promise<string | null> {
  const count = lane.chain.headers.deepReorganizations()
  const isNew = count > (lane.memory.deep_reorganizations ?? 0)
  lane.memory.deep_reorganizations = count
  if (!isNew) return null
  return `chain ${lane.chain.chain_id} replaced more than its last ${lane.chain.config.finality_depth} blocks: check that its providers are right, then run: operator retry ${lane.signer.lane_id}`
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
  await inLane(lane, async (turn) => {
    await adoptNonce(turn, lane.lease, next)
    for (const transaction of lost)
      await updateTransaction(turn, lane.lease, transaction.id, { status: "confirmed", ...nowhere })
    for (const transaction of displaced)
      await displaceTransaction(turn, lane.lease, transaction, { status: "final", ...nowhere })
  })
}

/** A transaction that no block holds, and that is due to be sent at once. */
export const nowhere = { hash: null, block_number: null, block_hash: null, sent_block: null }
