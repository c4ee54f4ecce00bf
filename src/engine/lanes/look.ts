import { formatTransactionReceipt, type Hex, type RpcTransactionReceipt, type TransactionReceipt } from "viem"
import { someAtATime } from "../chain/answers.ts"
import { reach } from "../chain/rpc.ts"
import { tellSubmitted } from "./broadcast.ts"
import { type Findings, failed, join } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import {
  finalizeTransactions,
  findTransaction,
  isCancelled,
  openTransactions,
  type SettledTransaction,
  settledTransactions,
  updateTransaction,
  type WatchedTransaction,
} from "./transactions.ts"

/** What a round found out about a lane's transactions. */
export type Looked = {
  /** Ordered by nonce. A failed request says nothing about its transaction, and stops no other. */
  readonly seen: readonly Seen[]
  readonly lowest_open: WatchedTransaction | undefined
  readonly findings: Findings
}

export type Seen = { readonly transaction: WatchedTransaction; readonly mined: Sighting | null }

/** Where a transaction is in the chain that the lane follows. */
export type BlockPlace = { hash: string; block_number: number; block_hash: string }

/** A place, with the receipt if finding it needed one. */
export type Sighting = { place: BlockPlace; receipt: TransactionReceipt | null }

/** Finds out where all transactions are that are not final, and stores which are now mined, lost or final. */
export async function lookAtTransactions(lane: HeldLane): Promise<Looked> {
  const { read } = lane.context.db
  const open = await openTransactions(read, lane.lease.lane_id)
  const watched = [...(await lostTransactions(lane)), ...open].sort((one, other) => one.nonce - other.nonce)
  const places = await Promise.allSettled(watched.map((transaction) => findPlace(lane, transaction)))
  const seen: Seen[] = []
  const failures: Findings[] = []
  for (const [index, transaction] of watched.entries()) {
    const place = places[index]
    if (place?.status === "fulfilled") seen.push({ transaction, mined: place.value })
    else failures.push(failed(lane, transaction, place?.reason))
  }
  await noteMined(lane, seen)
  // Skips used nonces: a transaction that lost its effect may itself wait for one behind a hole.
  const lowest_open = watched.find(
    ({ block_hash, nonce }) => block_hash === null && nonce >= lane.used_nonces,
  )
  return { seen, lowest_open, findings: join(...failures) }
}

/**
 * Returns transactions whose results were applied and whose block was replaced or is not settled yet. Makes
 * those final that are deep enough.
 */
async function lostTransactions(lane: HeldLane): Promise<WatchedTransaction[]> {
  const { read } = lane.context.db
  const settled = await settledTransactions(read, lane.lease.lane_id)
  const final: string[] = []
  const lost: WatchedTransaction[] = []
  const places = await someAtATime(settled, settledAtOnce, (each) => isInPlace(lane, each))
  for (const [index, { id, block_number }] of settled.entries()) {
    if (!places[index]) lost.push(await findTransaction(read, id))
    else if (Number(lane.head) - Number(block_number) + 1 >= lane.chain.config.finality_depth) final.push(id)
  }
  if (final.length > 0) await inLane(lane, (turn) => finalizeTransactions(turn, lane.lease, final))
  return lost
}

/** A new process has to read the block of each. */
const settledAtOnce = 20

async function isInPlace(lane: HeldLane, { block_number, block_hash }: SettledTransaction): Promise<boolean> {
  return block_number !== null && block_hash !== null && (await isCanonical(lane, block_number, block_hash))
}

async function noteMined(lane: HeldLane, seen: Seen[]): Promise<void> {
  const news = seen.flatMap(({ transaction, mined }) => {
    const isNew = ["signed", "sent"].includes(transaction.status)
    const isMoved = transaction.status === "mined" && transaction.block_hash !== mined?.place.block_hash
    return mined && (isNew || isMoved) ? [{ transaction, place: mined.place }] : []
  })
  if (news.length === 0) return
  for (const { transaction } of news) lane.checkpoint("receipt", transaction.kind)
  await inLane(lane, async (turn) => {
    for (const { transaction, place } of news) {
      await updateTransaction(turn, lane.lease, transaction.id, { status: "mined", ...place })
      if (!isCancelled(transaction, place.hash)) await tellSubmitted(turn, lane, transaction, place.hash)
    }
  })
  for (const { transaction } of news) lane.checkpoint("mined", transaction.kind)
}

/**
 * Finds the block in which any of the attempts was mined, whatever pools said about the others. Null proves nothing.
 */
async function findPlace(lane: HeldLane, transaction: WatchedTransaction): Promise<Sighting | null> {
  const { hash, block_number, block_hash } = transaction
  if (hash && block_hash !== null && block_number !== null) {
    if (await isCanonical(lane, block_number, block_hash))
      return { place: { hash, block_number, block_hash }, receipt: null }
  }
  if (transaction.nonce >= lane.used_nonces) return null
  const answers = await Promise.allSettled(
    transaction.attempts.map((attempt) => receiptOf(lane, attempt.hash as Hex)),
  )
  for (const answer of answers) {
    if (answer.status === "rejected" || answer.value === null) continue
    const place = placeOf(answer.value)
    if (await isCanonical(lane, place.block_number, place.block_hash)) return { place, receipt: answer.value }
  }
  const failure = answers.find(({ status }) => status === "rejected")
  if (failure?.status === "rejected") throw failure.reason
  return await finalPlace(lane, transaction)
}

/**
 * Finds a transaction whose results were applied but not settled in a block that is final by now: nodes prune its
 * receipt. If its block was replaced, it must be found in another one, where it may have no effect.
 */
async function finalPlace(
  lane: HeldLane,
  { status, hash, block_number, block_hash }: WatchedTransaction,
): Promise<Sighting | null> {
  if (status !== "confirmed" || hash === null || block_number === null || block_hash !== null) return null
  const blockNumber = BigInt(block_number)
  if (blockNumber > (await lane.chain.headers.finalHeight())) return null
  const block = await reach(() => lane.chain.rpc.getBlock({ blockNumber }))
  if (!block.transactions.includes(hash as Hex)) return null
  return { place: { hash, block_number, block_hash: block.hash }, receipt: null }
}

/** Returns whether the chain that the lane follows has this block at this height. */
async function isCanonical(lane: HeldLane, blockNumber: number, blockHash: string): Promise<boolean> {
  if (blockNumber > Number(lane.head)) return false
  const { hash } = await lane.chain.headers.at(BigInt(blockNumber))
  return hash === blockHash
}

/** Reads the receipt of an attempt, as the chain has it now; null proves nothing. */
export async function receiptOf(lane: HeldLane, hash: Hex): Promise<TransactionReceipt | null> {
  const found = await reach(() =>
    lane.chain.rpc.request({ method: "eth_getTransactionReceipt", params: [hash] }),
  )
  return found ? formatTransactionReceipt(found as RpcTransactionReceipt) : null
}

/** Returns where a receipt's transaction is. */
function placeOf(receipt: TransactionReceipt): BlockPlace {
  return {
    hash: receipt.transactionHash,
    block_number: Number(receipt.blockNumber),
    block_hash: receipt.blockHash,
  }
}
