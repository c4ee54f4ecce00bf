import { numberToHex } from "viem"
import type { Queries } from "../../db/database.ts"
import type { LaneRow, TransactionRow } from "../../db/schema.ts"
import { unlessUnknown } from "../chain/endpoint.ts"
import { surelyHeld } from "../chain/headers.ts"
import { unlessForgotten } from "../chain/old-state.ts"
import { ChainUnreachable, reach } from "../chain/rpc.ts"
import { useUpNonce } from "../jobs/job.ts"
import { compareFinalBlock, disagreement, followFinalBlock, isFromAll } from "./final-block.ts"
import { type Findings, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { adoptNonce } from "./leases.ts"
import { findUse } from "./nonce-use.ts"
import {
  effectsOf,
  finalFrom,
  findTransaction,
  isInFlight,
  nonceAfterLast,
  openTransactions,
  settledTransactions,
  updateTransaction,
  type WatchedTransaction,
} from "./transactions.ts"
import { maxInFlight } from "./turns.ts"
import { goOnWithoutNonce } from "./without-nonce.ts"

/**
 * Compares what the chain and the database know about a signer's nonces and about final blocks. If they contradict each
 * other, the lane halts until an operator tells it, with `operator retry`, to take its nonces from the chain again.
 */
export async function compareWithChain(lane: HeldLane, row: LaneRow): Promise<Findings> {
  if (row.next_nonce === null) {
    try {
      await adopt(lane, row)
      return nothing
    } catch (error) {
      if (!(error instanceof ChainUnreachable)) throw error
      const notice = `the next nonce of ${lane.signer.address} cannot be read from chain ${lane.chain.chain_id}: ${error.message}`
      return { ...noticed(notice), failure: error }
    }
  }
  if (row.status === "halted") return nothing
  const compared = await compareFinalBlock(lane, row)
  if (compared.halt !== null || compared.failure) return compared
  const counted = await compareNonces(lane, row.next_nonce)
  if (counted.halt !== null || counted.failure) return counted
  await followFinalBlock(lane, row.final_block_number)
  return nothing
}

async function compareNonces(lane: HeldLane, nextNonce: number): Promise<Findings> {
  const { address, lane_id } = lane.signer
  const { used_nonces: used, chain } = lane
  if (used > nextNonce) {
    const halt = `the chain has ${used} transactions of ${address}, but the database knows of ${nextNonce}: if a backup was restored, run: operator restored; otherwise make sure that nobody else uses the key, then run: operator retry ${lane_id}`
    return { ...nothing, halt }
  }
  const lost = await finalFrom(lane.context.db.read, lane_id, used)
  if (lost.length === 0) return nothing
  const had = used + lost.length
  // A single provider that stopped long ago lacks as many, too.
  const counts = await countsAt(lane, Math.max(...lost.map(({ block_number }) => block_number ?? 0)))
  if (counts.length > 0 && counts.every((count) => count >= had))
    return { ...nothing, failure: new ChainUnreachable(`a provider of chain ${chain.chain_id} is behind`) }
  const isBeyondDoubt = isFromAll(lane, counts) && counts.every((count) => count < had)
  if (!isBeyondDoubt) return disagreement(lane, `the transactions of ${address}`)
  const halt = `the chain has ${used} transactions of ${address}, but ${had} were final at a depth of ${chain.config.finality_depth} blocks: make sure that its providers are right, then run: operator retry ${lane_id}`
  return { ...nothing, halt }
}

/**
 * Reads how many of the signer's transactions each provider has up to a block. Where blocks are final at once, the
 * newest block of a provider that is one block behind would have fewer. Reads counts at the newest block if that state
 * was pruned, or if the chain ends far below the block.
 */
async function countsAt({ chain, signer, head }: HeldLane, blockNumber: number): Promise<number[]> {
  const count = (block: string) =>
    chain.providers.askAll({ method: "eth_getTransactionCount", params: [signer.address, block] })
  const endsBelow = head + surelyHeld(chain.config) < BigInt(blockNumber)
  const then = endsBelow ? null : await unlessForgotten(() => count(numberToHex(blockNumber)))
  const counts = then ?? (await reach(() => count("latest")))
  return counts.flatMap((each) => (each === null ? [] : Number(each)))
}

/**
 * Takes the lane's nonces from the chain: at its first start, and when an operator asked for it. Transactions that the
 * chain lost are sent again; those that lost their nonce to someone else get a new one, even if their results were
 * applied before. After a restored back-up, as many nonces are skipped as may have been in flight.
 */
async function adopt(lane: HeldLane, { restored_at }: LaneRow): Promise<void> {
  const { lane_id } = lane.signer
  const { read } = lane.context.db
  const lost = await finalFrom(read, lane_id, lane.used_nonces)
  const displaced = await usedByOthers(lane)
  const known = Math.max(
    lane.used_nonces,
    ...(await pendingNonces(lane)),
    await nonceAfterLast(read, lane_id),
  )
  const nonce = restored_at === null ? known : known + maxInFlight
  const achieved = await whichAchieved(read, [...lost, ...displaced])
  await inLane(lane, async (turn) => {
    if (!(await adoptNonce(turn, lane.lease, { nonce, restored_at }))) return
    for (const { id } of lost) {
      const status = achieved.has(id) ? "confirmed" : "reverted"
      await updateTransaction(turn, lane.lease, id, { status, ...nowhere })
    }
    for (const transaction of displaced) {
      const ended = { status: "final", ...nowhere } as const
      const isWanted = transaction.kind !== useUpNonce
      if (isWanted && (isInFlight(transaction) || achieved.has(transaction.id)))
        await goOnWithoutNonce(turn, lane, transaction, ended)
      else await updateTransaction(turn, lane.lease, transaction.id, ended)
    }
  })
}

/** Returns the nonce after those in each provider's pool; empty if no provider counts its pool. */
export async function pendingNonces({ chain, signer }: HeldLane): Promise<number[]> {
  const question = { method: "eth_getTransactionCount", params: [signer.address, "pending"] }
  const counts = await reach(() => unlessUnknown(chain.providers.askAll(question), () => []))
  return counts.map(Number)
}

/** Returns transactions that are not final and in no block, and whose nonce someone else used. */
async function usedByOthers(lane: HeldLane): Promise<WatchedTransaction[]> {
  const { read } = lane.context.db
  const { lane_id } = lane.signer
  const settled = await settledTransactions(read, lane_id)
  const outside = settled.filter(({ block_hash }) => block_hash === null)
  const watched = await Promise.all(outside.map(({ id }) => findTransaction(read, id)))
  const inFlight = (await openTransactions(read, lane_id)).filter(isInFlight)
  const used: WatchedTransaction[] = []
  for (const transaction of [...watched, ...inFlight])
    if ((await findUse(lane, transaction))?.is_ours === false) used.push(transaction)
  return used
}

/** Returns the ids of those transactions that achieved something; the others reverted or were cancelled. */
async function whichAchieved(queries: Queries, given: TransactionRow[]): Promise<Set<string>> {
  const achieved = new Set<string>()
  for (const { id } of given)
    if ((await effectsOf(queries, id)).some(({ status }) => status === "done")) achieved.add(id)
  return achieved
}

/** The columns of a transaction that is in no block and is to be sent at once. */
export const nowhere = { hash: null, block_number: null, block_hash: null, sent_block: null }
