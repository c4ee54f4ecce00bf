import { formatTransactionReceipt, type Hex, type RpcTransactionReceipt, type TransactionReceipt } from "viem"
import { settleEffect } from "../src/actors/runtime.ts"
import { setLaneStatus } from "../src/chain/lanes.ts"
import { reach } from "../src/chain/rpc.ts"
import { effectsOf, updateTransaction, type WatchedTransaction } from "../src/chain/transactions.ts"
import { bump, bumpedFees, sendAttempt, signAndSend } from "./broadcast.ts"
import { jobFor } from "./jobs.ts"
import { type HeldLane, inLane } from "./lane.ts"

/** Blocks without a receipt after which the same bytes are sent again. */
const resendBlocks = 2
/** How often fees are raised before a person has to look. */
const maxAttempts = 8

/** Moves one transaction on by what the chain says of it now. Only the lowest open nonce may get higher fees. */
export async function advanceTransaction(
  lane: HeldLane,
  transaction: WatchedTransaction,
  isLowestOpen: boolean,
): Promise<void> {
  if (transaction.status === "allocated") return await signAndSend(lane, transaction)
  const receipt = await canonicalReceipt(lane, transaction)
  if (!receipt) return await pushOn(lane, transaction, isLowestOpen)

  const depth = Number(lane.head - receipt.blockNumber) + 1
  const { confirmation_depth, finality_depth } = lane.chain.config
  const isConfirmed = transaction.status === "confirmed" || transaction.status === "reverted"
  if (!isConfirmed && depth >= confirmation_depth) return await confirm(lane, transaction, receipt)
  const status = isConfirmed ? (depth >= finality_depth ? "final" : transaction.status) : "mined"
  if (status === transaction.status && transaction.block_hash === receipt.blockHash) return
  const position = positionOf(receipt)
  await inLane(lane, (turn) => updateTransaction(turn, lane.lease, transaction.id, { status, ...position }))
}

/** The receipt of whichever attempt was mined, when its block is still part of the chain. Null proves nothing. */
async function canonicalReceipt(
  lane: HeldLane,
  transaction: WatchedTransaction,
): Promise<TransactionReceipt | null> {
  for (const attempt of transaction.attempts) {
    const found = await reach(() =>
      lane.chain.rpc.request({ method: "eth_getTransactionReceipt", params: [attempt.hash as Hex] }),
    )
    if (!found) continue
    const receipt = formatTransactionReceipt(found as RpcTransactionReceipt)
    const block = await reach(() => lane.chain.rpc.getBlock({ blockNumber: receipt.blockNumber }))
    if (block.hash === receipt.blockHash) return receipt
  }
  return null
}

/** A transaction that is not mined does not rest: the same bytes go out again, at last with higher fees. */
async function pushOn(lane: HeldLane, transaction: WatchedTransaction, isLowestOpen: boolean): Promise<void> {
  const last = transaction.attempts.at(-1)
  if (!last) return
  const blocksSince = (block: number | null) => (block === null ? Infinity : Number(lane.head) - block)
  const isWaitingLong =
    blocksSince(last.first_sent_block ?? Number(lane.head)) >= lane.chain.config.bump_after_blocks
  if (isLowestOpen && isWaitingLong && (await raiseFees(lane, transaction))) return
  const sentBlock = transaction.status === "signed" ? null : transaction.sent_block
  if (blocksSince(sentBlock) >= resendBlocks) await sendAttempt(lane, transaction, last)
}

/** False when the fees cannot be raised: the bytes that are out stay in play, and a person is told. */
async function raiseFees(lane: HeldLane, transaction: WatchedTransaction): Promise<boolean> {
  const last = transaction.attempts.at(-1)
  const fees = last && transaction.attempts.length < maxAttempts ? await bumpedFees(lane, last) : null
  if (fees) {
    await bump(lane, transaction, fees)
    return true
  }
  const { nonce } = transaction
  const reason = `nonce ${nonce} is not mined at the highest fee: raise max_fee_per_gas_gwei in CHAINS, or wait for lower fees`
  lane.context.log.error({ lane_id: lane.lease.lane_id, reason }, "the fees cannot be raised")
  await inLane(lane, (turn) => setLaneStatus(turn, lane.lease, "open", reason))
  return false
}

/** At the confirmation depth the results reach the actors, together with the transaction's own status. */
async function confirm(
  lane: HeldLane,
  transaction: WatchedTransaction,
  receipt: TransactionReceipt,
): Promise<void> {
  // Where providers disagree about the block, one of them is wrong: the next round asks again.
  const hashes = await lane.chain.providers.blockHashes(receipt.blockNumber)
  if (hashes.some((hash) => hash !== null && hash !== receipt.blockHash)) return
  const queries = lane.context.db.read
  const members = await effectsOf(queries, transaction.id)
  const job = jobFor(transaction.kind)
  const mined = { transaction, effects: members, receipt }
  const results = await job.results(lane.chain, queries, mined)
  const status = receipt.status === "success" ? "confirmed" : "reverted"
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, transaction.id, { status, ...positionOf(receipt) })
    for (const [index, effect] of members.entries()) {
      const result = results[index]
      if (result) await settleEffect(turn, effect.id, result)
    }
    await job.afterwards?.(turn, mined, results)
  })
}

function positionOf(receipt: TransactionReceipt) {
  return {
    hash: receipt.transactionHash,
    block_number: Number(receipt.blockNumber),
    block_hash: receipt.blockHash,
  }
}
