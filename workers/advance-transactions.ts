import {
  type Address,
  formatTransactionReceipt,
  type Hex,
  type RpcTransactionReceipt,
  type TransactionReceipt,
} from "viem"
import { settleEffect } from "../src/actors/runtime.ts"
import { LeaseLost } from "../src/chain/lanes.ts"
import { CallReverted, ChainUnreachable, reach } from "../src/chain/rpc.ts"
import {
  effectsOf,
  releaseEffect,
  updateTransaction,
  type WatchedTransaction,
} from "../src/chain/transactions.ts"
import { DatabaseUnavailable } from "../src/db/database.ts"
import { loggable } from "../src/log.ts"
import { bump, bumpedFees, sendAttempt, signAndSend, tellSubmitted } from "./broadcast.ts"
import { jobFor } from "./jobs.ts"
import { type HeldLane, inLane } from "./lane.ts"
import { halt, isUsedByOther, nowhere } from "./nonces.ts"
import { tryCall } from "./try-call.ts"

/** Blocks without a receipt after which the same bytes are sent again. */
const resendBlocks = 2
/** How often fees are raised before a person has to look. */
const maxAttempts = 8

/**
 * Moves what is on its way on by what the chain says of it now. True when everything was looked at: a question that
 * failed teaches nothing about its transaction and stops no other one.
 */
export async function advanceTransactions(
  lane: HeldLane,
  due: WatchedTransaction[],
  watched: WatchedTransaction[],
): Promise<boolean> {
  const lowestOpen = watched.find(({ block_hash }) => block_hash === null)
  const places = await Promise.allSettled(due.map((transaction) => findPlace(lane, transaction)))
  let isAllSeen = true
  for (const [index, transaction] of due.entries()) {
    const place = places[index]
    try {
      if (place?.status !== "fulfilled") throw place?.reason
      await advanceTransaction(lane, transaction, place.value, transaction === lowestOpen)
    } catch (error) {
      if (error instanceof LeaseLost || error instanceof DatabaseUnavailable) throw error
      isAllSeen = false
      if (!(error instanceof ChainUnreachable)) noteFailure(lane, transaction, error)
      else lane.context.log.debug({ nonce: transaction.nonce, ...loggable(error) }, "is asked again")
    }
  }
  return isAllSeen
}

function noteFailure(lane: HeldLane, { nonce, kind }: WatchedTransaction, error: unknown): void {
  const { error: failure } = loggable(error)
  lane.notices.push(`nonce ${nonce} (${kind}) cannot be moved on and is tried again: ${failure}`)
}

/** Where a transaction is in the chain that the lane follows. */
type Place = { hash: string; block_number: number; block_hash: string }

/** The same, with the receipt where it was asked for to find that out. */
type Found = { place: Place; receipt: TransactionReceipt | null }

/** The block that holds whichever attempt was mined. Null proves nothing. */
async function findPlace(lane: HeldLane, transaction: WatchedTransaction): Promise<Found | null> {
  const { hash, block_number, block_hash } = transaction
  if (hash && block_hash !== null && block_number !== null) {
    if (await isCanonical(lane, block_number, block_hash))
      return { place: { hash, block_number, block_hash }, receipt: null }
  }
  if (transaction.nonce >= lane.used_nonces) return null
  const receipts = await Promise.all(
    transaction.attempts.map((attempt) => receiptOf(lane, attempt.hash as Hex)),
  )
  for (const receipt of receipts) {
    if (receipt === null) continue
    const place = placeOf(receipt)
    if (await isCanonical(lane, place.block_number, place.block_hash)) return { place, receipt }
  }
  return null
}

async function isCanonical(lane: HeldLane, blockNumber: number, blockHash: string): Promise<boolean> {
  if (blockNumber > Number(lane.head)) return false
  const { hash } = await lane.chain.headers.at(BigInt(blockNumber))
  return hash === blockHash
}

async function receiptOf(lane: HeldLane, hash: Hex): Promise<TransactionReceipt | null> {
  const found = await reach(() =>
    lane.chain.rpc.request({ method: "eth_getTransactionReceipt", params: [hash] }),
  )
  return found ? formatTransactionReceipt(found as RpcTransactionReceipt) : null
}

function placeOf(receipt: TransactionReceipt): Place {
  return {
    hash: receipt.transactionHash,
    block_number: Number(receipt.blockNumber),
    block_hash: receipt.blockHash,
  }
}

/** Only the lowest open nonce may get higher fees. */
async function advanceTransaction(
  lane: HeldLane,
  transaction: WatchedTransaction,
  found: Found | null,
  isLowestOpen: boolean,
): Promise<void> {
  if (transaction.status === "allocated") return await signAndSend(lane, transaction)
  if (!found) return await pushOn(lane, await takeOutOfBlock(lane, transaction), isLowestOpen)

  const { place } = found
  const depth = Number(lane.head) - place.block_number + 1
  const { confirmation_depth, finality_depth } = lane.chain.config
  const isConfirmed = transaction.status === "confirmed" || transaction.status === "reverted"
  if (!isConfirmed && depth >= confirmation_depth) return await confirm(lane, transaction, found)
  const isUndone = transaction.status === "confirmed" && found.receipt?.status === "reverted"
  if (isUndone) return await sendAnew(lane, transaction, place)
  const status = isConfirmed ? (depth >= finality_depth ? "final" : transaction.status) : "mined"
  if (status === transaction.status && transaction.block_hash === place.block_hash) return
  lane.checkpoint("receipt", transaction.kind)
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, transaction.id, { status, ...place })
    if (transaction.status === "signed") await tellSubmitted(turn, transaction, place.hash)
  })
  lane.checkpoint("mined", transaction.kind)
}

/** A reorganization threw it out: the results that were given stand, and the same bytes bring it back. */
async function takeOutOfBlock(lane: HeldLane, transaction: WatchedTransaction): Promise<WatchedTransaction> {
  if (transaction.block_hash === null) return transaction
  const { nonce, hash, block_number } = transaction
  lane.context.log.warn(
    { lane_id: lane.lease.lane_id, nonce, hash, block_number },
    "its block was replaced: it is sent again",
  )
  const status = transaction.status === "mined" ? "sent" : transaction.status
  const change = { status, ...nowhere }
  await inLane(lane, (turn) => updateTransaction(turn, lane.lease, transaction.id, change))
  return { ...transaction, ...change }
}

/**
 * After a reorganization it was mined again and reverted, because what it builds on came back later: the same content
 * is sent with a new nonce, as soon as it can succeed.
 */
async function sendAnew(lane: HeldLane, transaction: WatchedTransaction, place: Place): Promise<void> {
  const { nonce, kind, to, call } = transaction
  const verdict = await tryCall(lane.chain, lane.signer.address, { to: to as Address, data: call as Hex })
  if (!(verdict instanceof CallReverted))
    return await inLane(lane, (turn) =>
      displaceTransaction(turn, lane.lease, transaction, { status: "reverted", ...place }),
    )
  lane.notices.push(
    `nonce ${nonce} (${kind}) had succeeded and reverted after a reorganization; it is sent anew when ${verdict.reason} is over`,
  )
}

/** A transaction that is not mined does not rest: the same bytes go out again, at last with higher fees. */
async function pushOn(lane: HeldLane, transaction: WatchedTransaction, isLowestOpen: boolean): Promise<void> {
  const last = transaction.attempts.at(-1)
  if (!last) return
  if (await isUsedByOther(lane, transaction))
    return await halt(
      lane,
      `nonce ${transaction.nonce} of ${lane.signer.address} was used by a transaction that this service did not send: stop whoever else uses the key, then run: operator retry ${lane.lease.lane_id}`,
    )
  const blocksSince = (block: number | null) => (block === null ? Infinity : Number(lane.head) - block)
  const isWaitingLong =
    isLowestOpen &&
    transaction.nonce >= lane.used_nonces &&
    blocksSince(last.first_sent_block ?? Number(lane.head)) >= lane.chain.config.bump_after_blocks
  if (isWaitingLong && (await raiseFees(lane, transaction))) return
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
  lane.notices.push(
    `nonce ${transaction.nonce} is not mined at the highest fee: raise max_fee_per_gas_gwei in CHAINS, or wait for lower fees`,
  )
  return false
}

/** At the confirmation depth the results reach the actors, together with the transaction's own status. */
async function confirm(lane: HeldLane, transaction: WatchedTransaction, found: Found): Promise<void> {
  const { place } = found
  const receipt = found.receipt ?? (await receiptOf(lane, place.hash as Hex))
  if (receipt?.blockHash !== place.block_hash) return
  // Where providers disagree about the block, one of them is wrong: the next round asks again.
  const hashes = await reach(() => lane.chain.providers.blockHashes(receipt.blockNumber))
  if (hashes.some((hash) => hash !== null && hash !== receipt.blockHash)) {
    lane.notices.push(
      `the providers of chain ${transaction.chain_id} disagree about block ${place.block_number}: nothing is confirmed until they agree, or the wrong one is removed from CHAINS`,
    )
    throw new ChainUnreachable("the providers disagree")
  }
  const queries = lane.context.db.read
  const members = await effectsOf(queries, transaction.id)
  const job = jobFor(transaction.kind)
  const mined = { transaction, effects: members, receipt }
  const results = await job.results(lane.chain, queries, mined)
  const status = receipt.status === "success" ? "confirmed" : "reverted"
  lane.checkpoint("confirm", transaction.kind)
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, transaction.id, { status, ...place })
    if (transaction.status === "signed") await tellSubmitted(turn, transaction, place.hash)
    for (const [index, effect] of members.entries()) {
      const result = results[index]
      if (result === "again") await releaseEffect(turn, effect)
      else if (result) await settleEffect(turn, effect.id, result)
    }
    await job.afterwards?.(turn, mined, results)
  })
  lane.checkpoint("apply", transaction.kind)
}
