import type { Address, Hex } from "viem"
import { firstFees, gasFor } from "../chain/fees.ts"
import { CallReverted, reach } from "../chain/rpc.ts"
import { tryCall } from "../chain/try-call.ts"
import { type Effect, jobFor, type Mined } from "../jobs/job.ts"
import { feeColumns } from "./attempts.ts"
import { isFinal } from "./final-block.ts"
import { type Findings, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import type { BlockPlace } from "./look.ts"
import { isRefusedAt } from "./refused.ts"
import { updateTransaction, type WatchedTransaction } from "./transactions.ts"
import { goOnWithoutNonce } from "./without-nonce.ts"

/**
 * Handles a transaction that after a reorganization was mined without effect, because what it builds on came back
 * later, or whose cancel was mined instead. The same content is sent with a new nonce as soon as it can succeed. If
 * someone else came first on the new fork, it never can, and it ends once that is final.
 */
export async function sendAnew(
  lane: HeldLane,
  mined: WatchedMined,
  place: BlockPlace,
  undone: Effect[],
): Promise<Findings> {
  const { transaction } = mined
  const [to, data] = [transaction.to as Address, transaction.call as Hex]
  const isThere = await reach(() => lane.chain.rpc.getCode({ address: to }))
  const verdict = await tryCall(lane.chain, lane.signer.address, { to, data })
  if (verdict instanceof CallReverted) {
    if (!(await isOverForGood(lane, mined, place, verdict)))
      return waitsUntil(mined, `its call no longer reverts with ${verdict.reason}`)
    await giveUp(lane, mined, place, { lost: undone, reason: verdict.reason })
    return nothing
  }
  if (!isThere) return waitsUntil(mined, `there is a contract at ${to} again`)
  const job = jobFor(lane.jobs, transaction.kind)
  const { read } = lane.context.db
  const lack = await job.lack?.(lane.chain, read, { transaction, effects: undone })
  if (lack) return waitsUntil(mined, lack)
  const hold = await job.hold?.(lane.chain, read, { to, data })
  if (hold) return waitsUntil(mined, hold)
  // It may need more gas than at first.
  const gas = Math.max(transaction.gas, Number(gasFor(verdict)))
  await moveContent(lane, { ...transaction, gas }, place)
  return nothing
}

/** Reports a transaction that cannot succeed now but may later. */
export function waitsUntil({ transaction: { nonce, kind } }: Mined, change: string): Findings {
  return noticed(
    `nonce ${nonce} (${kind}) had succeeded, but has no effect after a reorganization; it is sent again with a new nonce when ${change}`,
  )
}

async function isOverForGood(
  lane: HeldLane,
  { transaction, effects }: WatchedMined,
  place: BlockPlace,
  { reason }: CallReverted,
): Promise<boolean> {
  const job = jobFor(lane.jobs, transaction.kind)
  if (job.refusal(reason) === null || !(await isFinal(lane, place))) return false
  for (const effect of effects) if (await job.mayPass?.(lane.context.db.read, effect, reason)) return false
  // Whoever came first may be in a newer block, which may be undone alone.
  const call = { to: transaction.to as Address, data: transaction.call as Hex }
  return await isRefusedAt(lane, job, call, await lane.chain.headers.finalHeight())
}

type WatchedMined = Mined & { transaction: WatchedTransaction }

async function giveUp(
  lane: HeldLane,
  mined: WatchedMined,
  place: BlockPlace,
  { lost, reason }: { lost: Effect[]; reason: string },
): Promise<void> {
  await inLane(lane, (turn) =>
    updateTransaction(turn, lane.lease, mined.transaction.id, { status: "reverted", ...place }),
  )
  // Others that shared the transaction may have failed, and were told so.
  const done = lost.filter(({ status }) => status === "done")
  tellLost(lane, mined, { actor_ids: done.map(({ actor_id }) => actor_id), reason })
}

/**
 * Logs for the operator that the chain differs from what was reported. The reported result stands, because an
 * outcome is never reported twice.
 */
export function tellLost(
  { context, lease }: HeldLane,
  { transaction: { kind, nonce } }: Mined,
  lost: { actor_ids: string[]; reason: string },
): void {
  context.log.error(
    { lane_id: lease.lane_id, kind, nonce, ...lost },
    "the work was reported as done, but after a reorganization deeper than the confirmation depth somebody else came first: to see whose it is, run: operator explain ID; tell them",
  )
}

/**
 * Moves the content of a transaction whose nonce was used without effect to a new nonce, at current fees, unless its
 * job plans it again. Should a reorganization bring the old bytes back, they achieve what is wanted and nothing else.
 */
export async function moveContent(
  lane: HeldLane,
  transaction: WatchedTransaction,
  place: BlockPlace,
): Promise<void> {
  const fees = firstFees(BigInt(transaction.gas), await lane.market(), lane.limits)
  const content = { ...transaction, ...feeColumns(fees) }
  await inLane(lane, (turn) => goOnWithoutNonce(turn, lane, content, { status: "reverted", ...place }))
}
