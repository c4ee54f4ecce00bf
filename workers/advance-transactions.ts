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
  type AttemptRow,
  displaceTransaction,
  effectsOf,
  finalizeTransactions,
  findTransaction,
  isCancelled,
  isGivenUp,
  openTransactions,
  releaseEffect,
  settledTransactions,
  updateTransaction,
  type WatchedTransaction,
} from "../src/chain/transactions.ts"
import { DatabaseUnavailable } from "../src/db/database.ts"
import type { Turn } from "../src/db/turn.ts"
import { loggable } from "../src/log.ts"
import { feesNow, raisedFees, replace, sendAttempt, signAndSend, tellSubmitted } from "./broadcast.ts"
import { disagreement } from "./final-block.ts"
import { isOutput, type Job, type JobResult, type Mined } from "./job.ts"
import { jobFor } from "./jobs.ts"
import { type HeldLane, inLane } from "./lane.ts"
import { halt, isUsedByOther, nowhere } from "./nonces.ts"
import { noteStep } from "./note-step.ts"
import { tryCall } from "./try-call.ts"

/** Blocks without a receipt after which the same bytes are sent again. */
const resendBlocks = 2

/** What a round learnt of a lane's transactions. */
export type Looked = {
  /** By nonce; a question that failed teaches nothing about its transaction and stops no other one. */
  seen: { transaction: WatchedTransaction; found: Found | null }[]
  lowest_open: WatchedTransaction | undefined
  is_complete: boolean
}

/** Asks the chain where everything is that is not final, and notes what was mined, lost and is final now. */
export async function lookAtTransactions(lane: HeldLane): Promise<Looked> {
  const { read } = lane.context.db
  const open = await openTransactions(read, lane.lease.lane_id)
  const watched = [...(await lostTransactions(lane)), ...open].sort((one, other) => one.nonce - other.nonce)
  const places = await Promise.allSettled(watched.map((transaction) => findPlace(lane, transaction)))
  const looked: Looked = {
    seen: [],
    lowest_open: watched.find(({ block_hash }) => block_hash === null),
    is_complete: true,
  }
  for (const [index, transaction] of watched.entries()) {
    const place = places[index]
    if (place?.status === "fulfilled") looked.seen.push({ transaction, found: place.value })
    else noteFailure(lane, looked, transaction, place?.reason)
  }
  await noteMined(lane, looked.seen)
  return looked
}

/** Those whose results were given and whose block was replaced; those that are deep enough end here. */
async function lostTransactions(lane: HeldLane): Promise<WatchedTransaction[]> {
  const { read } = lane.context.db
  const settled = await settledTransactions(read, lane.lease.lane_id)
  const final: string[] = []
  const lost: WatchedTransaction[] = []
  for (const { id, block_number, block_hash } of settled) {
    const isThere =
      block_number !== null && block_hash !== null && (await isCanonical(lane, block_number, block_hash))
    if (!isThere) lost.push(await findTransaction(read, id))
    else if (Number(lane.head) - block_number + 1 >= lane.chain.config.finality_depth) final.push(id)
  }
  if (final.length > 0) await inLane(lane, (turn) => finalizeTransactions(turn, lane.lease, final))
  return lost
}

async function noteMined(lane: HeldLane, seen: Looked["seen"]): Promise<void> {
  const mined = seen.flatMap(({ transaction, found }) => {
    const isNew = ["signed", "sent"].includes(transaction.status)
    const isMoved = transaction.status === "mined" && transaction.block_hash !== found?.place.block_hash
    return found && (isNew || isMoved) ? [{ transaction, place: found.place }] : []
  })
  if (mined.length === 0) return
  for (const { transaction } of mined) lane.checkpoint("receipt", transaction.kind)
  await inLane(lane, async (turn) => {
    for (const { transaction, place } of mined) {
      await updateTransaction(turn, lane.lease, transaction.id, { status: "mined", ...place })
      if (!isCancelled(transaction, place.hash)) await tellSubmitted(turn, transaction, place.hash)
    }
  })
  for (const { transaction } of mined) lane.checkpoint("mined", transaction.kind)
}

/** Sends what no block holds: for the first time, again, or with higher fees. */
export async function sendOn(lane: HeldLane, looked: Looked): Promise<void> {
  for (const { transaction, found } of looked.seen) {
    const isFirst = transaction.status === "allocated"
    if (found && !isFirst) continue
    await attempt(lane, looked, transaction, async () => {
      if (isFirst) return await signAndSend(lane, transaction)
      const isLowestOpen = transaction === looked.lowest_open
      await pushOn(lane, await takeOutOfBlock(lane, transaction), isLowestOpen)
    })
  }
}

/** Gives the results of what is deep enough, for about a quarter of a block's time; false when there is more to do. */
export async function giveResults(lane: HeldLane, looked: Looked): Promise<boolean> {
  const { confirmation_depth, block_time_seconds } = lane.chain.config
  const deadline = performance.now() + block_time_seconds * 250
  for (const { transaction, found } of looked.seen) {
    if (!found || transaction.status === "allocated") continue
    const depth = Number(lane.head) - found.place.block_number + 1
    const isOpen = transaction.status !== "confirmed" && transaction.status !== "reverted"
    if (isOpen && depth < confirmation_depth) continue
    if (performance.now() > deadline) return false
    await attempt(lane, looked, transaction, () =>
      isOpen ? confirm(lane, transaction, found) : takeBack(lane, transaction, found),
    )
  }
  return looked.is_complete
}

/** What goes wrong with one transaction stops no other one. */
async function attempt(
  lane: HeldLane,
  looked: Looked,
  transaction: WatchedTransaction,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    noteFailure(lane, looked, transaction, error)
  }
}

function noteFailure(
  lane: HeldLane,
  looked: Looked,
  { nonce, kind }: WatchedTransaction,
  error: unknown,
): void {
  if (error instanceof LeaseLost || error instanceof DatabaseUnavailable) throw error
  looked.is_complete = false
  const failure = loggable(error)
  if (error instanceof ChainUnreachable) lane.context.log.debug({ nonce, ...failure }, "is asked again")
  else lane.notices.push(`nonce ${nonce} (${kind}) cannot be moved on and is tried again: ${failure.error}`)
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

/** It was lost and is in a block again, where it must achieve once more what it did. */
async function takeBack(lane: HeldLane, transaction: WatchedTransaction, found: Found): Promise<void> {
  const { receipt, place } = found
  const { id, status, kind } = transaction
  if (status !== "confirmed" || !receipt)
    return await inLane(lane, (turn) => updateTransaction(turn, lane.lease, id, { status, ...place }))
  if (isCancelled(transaction, place.hash)) return await sendAnew(lane, transaction, place)
  const queries = lane.context.db.read
  const job = jobFor(kind)
  const mined = { transaction, effects: await effectsOf(queries, id), receipt }
  const results = receipt.status === "success" ? await job.results(lane.chain, queries, mined) : []
  if (hasUndone(mined, results)) return await sendAnew(lane, transaction, place)
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, id, { status, ...place })
    await restate(turn, job, mined, results)
  })
}

/** Whether something that was done has to be done again, and can be: not what somebody else came before. */
function hasUndone({ effects, receipt }: Mined, results: JobResult[]): boolean {
  const isReverted = receipt.status === "reverted"
  return effects.some(({ status }, index) => status === "done" && (isReverted || results[index] === "again"))
}

/** What was done stays done, but maybe by another transaction than it was said to be. */
async function restate(turn: Turn, job: Job, { effects }: Mined, results: JobResult[]): Promise<void> {
  for (const [index, effect] of effects.entries()) {
    const result = results[index]
    if (effect.status !== "done" || !isOutput(result)) continue
    const { transaction_hash } = result.output as { transaction_hash: string }
    await job.restate?.(turn, effect, transaction_hash)
  }
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
 * After a reorganization it was mined again without effect, because what it builds on came back later, or its cancel
 * was mined instead: the same content is sent with a new nonce, as soon as it can succeed.
 */
async function sendAnew(lane: HeldLane, transaction: WatchedTransaction, place: Place): Promise<void> {
  const { nonce, kind } = transaction
  const [to, data] = [transaction.to as Address, transaction.call as Hex]
  const isThere = await reach(() => lane.chain.rpc.getCode({ address: to }))
  const verdict = await tryCall(lane.chain, lane.signer.address, { to, data })
  if (isThere && !(verdict instanceof CallReverted)) return await moveContent(lane, transaction, place)
  const obstacle =
    verdict instanceof CallReverted ? `${verdict.reason} is over` : `${to} has its contract again`
  lane.notices.push(
    `nonce ${nonce} (${kind}) had succeeded and has no effect after a reorganization; it is sent anew when ${obstacle}`,
  )
}

/**
 * Its nonce is used and nothing achieved: the same content goes out with a new nonce and today's fees. It is the same
 * so that the bytes of the old one, should a reorganization bring them back, achieve what is asked and nothing else.
 */
async function moveContent(lane: HeldLane, transaction: WatchedTransaction, place: Place): Promise<void> {
  const { max_fee_per_gas, max_priority_fee_per_gas } = await feesNow(lane)
  const content = {
    ...transaction,
    max_fee_per_gas: String(max_fee_per_gas),
    max_priority_fee_per_gas: String(max_priority_fee_per_gas),
  }
  await inLane(lane, (turn) =>
    displaceTransaction(turn, lane.lease, content, { status: "reverted", ...place }),
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
  const isWanted = ({ is_cancel }: AttemptRow) => is_cancel === isGivenUp(transaction)
  const isWaitingLong =
    isLowestOpen &&
    blocksSince(last.first_sent_block ?? Number(lane.head)) >= lane.chain.config.bump_after_blocks
  const mayReplace = transaction.nonce >= lane.used_nonces && (isWaitingLong || !isWanted(last))
  if (mayReplace && (await raiseFees(lane, transaction))) return
  const sentBlock = transaction.status === "signed" ? null : transaction.sent_block
  if (blocksSince(sentBlock) < resendBlocks) return
  await sendAttempt(lane, transaction, transaction.attempts.findLast(isWanted) ?? last)
}

/** False when the fees cannot be raised: the bytes that are out stay in play, and a person is told. */
async function raiseFees(lane: HeldLane, transaction: WatchedTransaction): Promise<boolean> {
  const { id, nonce } = transaction
  const kind = isGivenUp(transaction) ? "cancel" : "bump"
  const last = transaction.attempts.at(-1)
  const fees = last ? await raisedFees(lane, last, kind) : null
  if (fees) {
    await replace(lane, transaction, kind, fees)
    return true
  }
  lane.notices.push(
    kind === "cancel"
      ? `nonce ${nonce} is given up, and what uses it up is not mined at the highest fee: wait for lower fees, or raise max_fee_per_gas_gwei in CHAINS`
      : `nonce ${nonce} is not mined at the highest fee: raise max_fee_per_gas_gwei in CHAINS, wait for lower fees, or give it up with: operator cancel ${id}`,
  )
  return false
}

/** At the confirmation depth the results reach the actors, together with the transaction's own status. */
async function confirm(lane: HeldLane, transaction: WatchedTransaction, found: Found): Promise<void> {
  const since = performance.now()
  const { place } = found
  const receipt = found.receipt ?? (await receiptOf(lane, place.hash as Hex))
  if (receipt?.blockHash !== place.block_hash) return
  await requireAgreement(lane, place)
  const queries = lane.context.db.read
  const members = await effectsOf(queries, transaction.id)
  if (isCancelled(transaction, place.hash)) {
    await moveContent(lane, transaction, place)
    return noteStep(lane.context, { name: "confirm", since, outcome: "cancelled" }, transaction, members)
  }
  const job = jobFor(transaction.kind)
  const mined = { transaction, effects: members, receipt }
  const results = await job.results(lane.chain, queries, mined)
  if (hasUndone(mined, results)) return await sendAnew(lane, transaction, place)
  const status = receipt.status === "success" ? "confirmed" : "reverted"
  lane.checkpoint("confirm", transaction.kind)
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, transaction.id, { status, ...place })
    await restate(turn, job, mined, results)
    for (const [index, effect] of members.entries()) {
      const result = results[index]
      if (result === "again") await releaseEffect(turn, effect)
      else if (result) await settleEffect(turn, effect.id, result)
    }
    await job.afterwards?.(turn, mined, results)
  })
  lane.checkpoint("apply", transaction.kind)
  noteStep(lane.context, { name: "confirm", since, outcome: status }, transaction, members)
}

/** Where providers disagree about the block, one of them is wrong: the next round asks again. */
async function requireAgreement(lane: HeldLane, { block_number, block_hash }: Place): Promise<void> {
  const hashes = await reach(() => lane.chain.providers.blockHashes(BigInt(block_number)))
  if (hashes.every((hash) => hash === null || hash === block_hash)) return
  throw disagreement(lane, block_number)
}
