import type { Address, Hex } from "viem"
import type { Turn } from "../../db/turn.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { settleEffect } from "../actors/runtime.ts"
import { unlessForgotten } from "../chain/old-state.ts"
import { isAgreedOn } from "../chain/providers.ts"
import { CallReverted, ChainUnreachable } from "../chain/rpc.ts"
import { tryCall } from "../chain/try-call.ts"
import { type Effect, isOutput, type Job, type JobResult, jobFor, type Mined } from "../jobs/job.ts"
import { disagreement, isFinal } from "./final-block.ts"
import { attempt, type Findings, join, nothing } from "./findings.ts"
import { type HeldLane, inLane, type Judged } from "./held-lane.ts"
import { type BlockPlace, receiptOf, type Seen, type Sighting } from "./look.ts"
import { nowhere } from "./nonces.ts"
import { noteStep } from "./note-step.ts"
import { withoutReceipt } from "./push-on.ts"
import { moveContent, sendAnew, tellLost, waitsUntil } from "./send-anew.ts"
import {
  effectsOf,
  isCancelled,
  releaseEffect,
  updateTransaction,
  type WatchedTransaction,
} from "./transactions.ts"
import { spellMilliseconds, urgencyOf } from "./turns.ts"

/**
 * Applies the results of transactions that are deep enough, for a limited time. Transactions that have been deep enough
 * for a while come last: they wait for finality, like reverted ones, and are judged again at each block. Otherwise those
 * come first that were not judged for longest: what only waits must not use up the time of what it waits for.
 */
export async function giveResults(
  lane: HeldLane,
  seen: readonly Seen[],
  before: Judged,
): Promise<{ findings: Findings; is_done: boolean; judged: Judged }> {
  const { config } = lane.chain
  const { confirmation_depth } = config
  const begin = performance.now()
  const deadline = begin + spellMilliseconds(config)
  const found: Findings[] = []
  const depthOf = ({ mined }: Seen) => (mined ? Number(lane.head) - mined.place.block_number + 1 : 0)
  const lateness = (each: Seen) => Number(depthOf(each) > confirmation_depth + lateBlocks(config))
  const lastTurn = ({ transaction }: Seen) => before.get(transaction.id) ?? 0
  const inOrder = seen.toSorted(
    (one, other) => lateness(one) - lateness(other) || lastTurn(one) - lastTurn(other),
  )
  const judged = new Map(seen.map((each) => [each.transaction.id, lastTurn(each)]))
  for (const each of inOrder) {
    const { transaction, mined } = each
    if (!mined || transaction.status === "allocated") continue
    const depth = depthOf(each)
    const isOpen = transaction.status !== "confirmed" && transaction.status !== "reverted"
    if (isOpen && depth < confirmation_depth) continue
    if (performance.now() > deadline) return { findings: join(...found), is_done: false, judged }
    judged.set(transaction.id, begin)
    const given = await attempt(lane, transaction, () =>
      isOpen ? confirm(lane, transaction, mined) : takeBack(lane, transaction, mined),
    )
    found.push(given)
  }
  return { findings: join(...found), is_done: true, judged }
}

/** Splits transactions into those that people wait for, most urgent first, and the others. */
export function byUrgency(seen: readonly Seen[]): [soon: Seen[], later: Seen[]] {
  const place = ({ transaction }: Seen) => urgencyOf(transaction.kind)
  const isLast = (each: Seen) => place(each) >= urgencyOf("deployCollection")
  const inOrder = seen.toSorted((one, other) => place(one) - place(other))
  return [inOrder.filter((each) => !isLast(each)), inOrder.filter(isLast)]
}

/**
 * Returns how late results may normally be: a round reaches everything within ten blocks, or
 * ten seconds if blocks are faster.
 */
function lateBlocks({ block_time_seconds }: ChainConfig): number {
  return Math.max(10, Math.ceil(10 / block_time_seconds))
}

/** Applies the results at the confirmation depth: to the actors, together with the transaction's own status. */
async function confirm(
  lane: HeldLane,
  transaction: WatchedTransaction,
  sighting: Sighting,
): Promise<Findings> {
  const since = performance.now()
  const { place } = sighting
  const receipt = sighting.receipt ?? (await receiptOf(lane, place.hash as Hex))
  // Without a receipt it would wait with no visible reason.
  if (!receipt && (await isFinal(lane, place))) return withoutReceipt(transaction, place)
  if (receipt?.blockHash !== place.block_hash) return nothing
  const block = { number: BigInt(place.block_number), hash: place.block_hash }
  // A provider is wrong; the next round asks again.
  if (!(await isAgreedOn(lane.chain, block))) return disagreement(lane, `block ${block.number}`)
  const queries = lane.context.db.read
  const members = await effectsOf(queries, transaction.id)
  if (isCancelled(transaction, place.hash)) {
    // What was done once is not planned again, so it must wait here until it may be sent.
    if (members.some(({ status }) => status === "done"))
      return await sendUndone(lane, { transaction, effects: members, receipt }, place, members)
    await moveContent(lane, transaction, place)
    noteStep(lane.context, { name: "confirm", since, outcome: "cancelled" }, transaction, members)
    return nothing
  }
  const job = jobFor(lane.jobs, transaction.kind)
  const mined = { transaction, effects: members, receipt }
  const judged = await job.results(lane.chain, queries, mined)
  const undone = undoneOf(mined, judged)
  if (undone.length > 0) return await sendUndone(lane, mined, place, undone)
  const results = await judgeBesideSuccess(lane, mined, await judgeReverted(lane, job, mined, judged))
  const isInVain = receipt.status === "reverted" || (results.length > 0 && results.every(isError))
  if (isInVain && !(await isForGood(lane, place, results))) return nothing
  const status = receipt.status === "success" || results.some(isOutput) ? "confirmed" : "reverted"
  const isSettled = await standsWithBlock(lane, place, mined, results)
  const stored = isSettled ? place : unsettled(place)
  lane.checkpoint("confirm", transaction.kind)
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, transaction.id, { status, ...stored })
    await restate(turn, job, mined, results)
    for (const [index, effect] of members.entries()) {
      const result = results[index]
      if (result === "again") await releaseEffect(turn, effect)
      else if (result) await settleEffect(turn, effect.id, result)
    }
    await job.afterwards?.(turn, mined, results)
  })
  lane.checkpoint("apply", transaction.kind)
  if (isSettled) tellLostOf(lane, mined, results)
  noteStep(lane.context, { name: "confirm", since, outcome: status }, transaction, members)
  return nothing
}

/**
 * Sends again content that moved here after its results were given. Until it can be sent it is not open: what it waits
 * for may wait until nothing is.
 */
async function sendUndone(
  lane: HeldLane,
  mined: Mined & { transaction: WatchedTransaction },
  place: BlockPlace,
  undone: Effect[],
): Promise<Findings> {
  // With its place it would count as settled there.
  const change = { status: "confirmed", ...nowhere } as const
  await inLane(lane, (turn) => updateTransaction(turn, lane.lease, mined.transaction.id, change))
  return await sendAnew(lane, mined, place, undone)
}

/**
 * Judges a reverted call by what it would do now. Unless the contract refuses it in a way that waiting does not fix, it
 * is planned again, a limited number of times: it may have lacked a role, gas or an earlier transaction.
 */
async function judgeReverted(
  lane: HeldLane,
  job: Job,
  { transaction, effects, receipt }: Mined,
  results: JobResult[],
): Promise<JobResult[]> {
  if (receipt.status === "success" || !results.some(isError)) return results
  const call = { to: transaction.to as Address, data: transaction.call as Hex }
  const verdict = await tryCall(lane.chain, lane.signer.address, call)
  if (verdict instanceof CallReverted && job.refusal(verdict.reason) !== null) return results
  return results.map((result, index) =>
    isError(result) && (effects[index]?.attempts ?? 0) < maxTries ? "again" : result,
  )
}

const maxTries = 10

/**
 * Plans again what failed only because of blocks that are not final, in a transaction that achieved something else: that
 * has its result at once, and if those blocks are undone, the same bytes may achieve both.
 */
async function judgeBesideSuccess(lane: HeldLane, mined: Mined, results: JobResult[]): Promise<JobResult[]> {
  if (mined.receipt.status === "reverted" || !results.some(isError) || results.every(isError)) return results
  const byFinal = await judgeByFinalIfTold(lane, mined)
  return results.map((result, index) => {
    const isOpen = mined.effects[index]?.status === "open"
    return isOpen && isError(result) && byFinal && !isError(byFinal[index]) ? "again" : result
  })
}

function isError(result: JobResult | undefined): result is Extract<JobResult, { error: unknown }> {
  return result !== undefined && result !== "again" && "error" in result
}

/**
 * Returns whether the outcome of a transaction that achieved nothing is final. Before that, what failed may yet
 * succeed, and another transaction that did the work may be undone without notice.
 */
async function isForGood(lane: HeldLane, place: BlockPlace, results: JobResult[]): Promise<boolean> {
  if (results.every((result) => result === "again")) return true
  if (!(await isFinal(lane, place))) return false
  return await areShownForGood(lane, place, results)
}

/** Returns whether the outcome stands as long as its block is in the chain. */
async function standsWithBlock(
  lane: HeldLane,
  place: BlockPlace,
  mined: Mined,
  results: JobResult[],
): Promise<boolean> {
  const lost = lostOf(mined, results)
  if (lost.length > 0 && !(await areLostByFinal(lane, mined, lost))) return false
  return await areShownForGood(lane, place, results)
}

/**
 * Returns whether final blocks show the results as lost, too: whoever came first may be in a newer block, which may be
 * undone alone. A node that has pruned so old a state does not count against it.
 */
async function areLostByFinal(lane: HeldLane, mined: Mined, lost: Lost[]): Promise<boolean> {
  const results = await judgeByFinal(lane, mined)
  return results === null || lostOf(mined, results).length === lost.length
}

/** Like `judgeByFinal`, but leaves everything open if no node tells: what succeeded does not wait for one that does. */
async function judgeByFinalIfTold(lane: HeldLane, mined: Mined): Promise<JobResult[] | null> {
  try {
    return await judgeByFinal(lane, mined)
  } catch (error) {
    if (error instanceof ChainUnreachable) return mined.effects.map(() => "again")
    throw error
  }
}

/** Judges a transaction by what final blocks show; null if a node has pruned so old a state. */
async function judgeByFinal({ chain, context, jobs }: HeldLane, mined: Mined): Promise<JobResult[] | null> {
  const job = jobFor(jobs, mined.transaction.kind)
  const { headers, config } = chain
  const { number: newest } = await headers.follow()
  const confirmation_depth = Number(newest - (await headers.finalHeight()) + 1n)
  const then = { ...chain, config: { ...config, confirmation_depth } }
  return await unlessForgotten(() => job.results(then, context.db.read, mined))
}

/**
 * Returns whether all blocks that show outputs are final, together with the transaction's own: a node on another fork
 * may have shown them, and nothing else watches them, so until then the transaction is judged again at each block.
 */
async function areShownForGood(lane: HeldLane, place: BlockPlace, results: JobResult[]): Promise<boolean> {
  const others = results.filter(isOutput).flatMap(({ block_number }) => block_number ?? [])
  if (others.length === 0) return true
  return await isFinal(lane, { block_number: Math.max(place.block_number, ...others) })
}

/** Returns the place without its block hash, so that the transaction is looked for again at each block. */
function unsettled(place: BlockPlace): Omit<BlockPlace, "block_hash"> & { block_hash: null } {
  return { ...place, block_hash: null }
}

/** Handles a transaction that was lost and is in a block again: it must achieve there what it did before. */
async function takeBack(
  lane: HeldLane,
  transaction: WatchedTransaction,
  { receipt, place }: Sighting,
): Promise<Findings> {
  const { id, status, kind } = transaction
  if (status !== "confirmed" || !receipt) {
    await inLane(lane, (turn) => updateTransaction(turn, lane.lease, id, { status, ...place }))
    return nothing
  }
  const queries = lane.context.db.read
  const job = jobFor(lane.jobs, kind)
  const mined = { transaction, effects: await effectsOf(queries, id), receipt }
  if (isCancelled(transaction, place.hash)) {
    if (mined.effects.some(({ status }) => status === "done"))
      return await sendAnew(lane, mined, place, mined.effects)
    // What it had not done has failed or been planned again.
    await inLane(lane, (turn) => updateTransaction(turn, lane.lease, id, { status: "reverted", ...place }))
    return nothing
  }
  const results = await job.results(lane.chain, queries, mined)
  const undone = undoneOf(mined, results)
  if (undone.length > 0) return await sendAnew(lane, mined, place, undone)
  const isSettled = await standsWithBlock(lane, place, mined, results)
  const stored = isSettled ? place : unsettled(place)
  await inLane(lane, async (turn) => {
    await updateTransaction(turn, lane.lease, id, { status, ...stored })
    await restate(turn, job, mined, results)
  })
  if (isSettled) tellLostOf(lane, mined, results)
  else if (lostOf(mined, results).length > 0)
    return waitsUntil(mined, "the transaction that came first is undone")
  return nothing
}

function tellLostOf(lane: HeldLane, mined: Mined, results: JobResult[]): void {
  for (const { actor_id, reason } of lostOf(mined, results))
    tellLost(lane, mined, { actor_ids: [actor_id], reason })
}

type Lost = { actor_id: string; reason: string }

/** Returns what was reported as done and no longer is after a reorganization, because someone else came first. */
function lostOf({ effects }: Mined, results: JobResult[]): Lost[] {
  return effects.flatMap(({ status, actor_id }, index) => {
    const result = results[index]
    return status === "done" && isError(result) ? [{ actor_id, reason: result.error.code }] : []
  })
}

/**
 * Returns what was done, is undone and can be done again. It cannot if someone else came first, or if older bytes that a
 * reorganization brought back have done it.
 */
function undoneOf({ effects, receipt }: Mined, results: JobResult[]): Effect[] {
  const isReverted = receipt.status === "reverted"
  return effects.filter(({ status }, index) => {
    if (status !== "done") return false
    return isReverted ? !isOutput(results[index]) : results[index] === "again"
  })
}

/** Records the transaction that did what was done: after a reorganization it may be another one than reported. */
async function restate(turn: Turn, job: Job, { effects }: Mined, results: JobResult[]): Promise<void> {
  for (const [index, effect] of effects.entries()) {
    const result = results[index]
    if (effect.status !== "done" || !isOutput(result)) continue
    await job.restate?.(turn, effect, result.output.transaction_hash)
  }
}
