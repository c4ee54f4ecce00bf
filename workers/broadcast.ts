import { type Address, type Hex, keccak256 } from "viem"
import { sendEvent } from "../src/actors/runtime.ts"
import { ChainUnreachable, rawMessage, reach } from "../src/chain/rpc.ts"
import { classifySendError } from "../src/chain/send-errors.ts"
import {
  type AttemptRow,
  effectsOf,
  type Fees,
  noteSend,
  storeAttempt,
  type TransactionRow,
  updateTransaction,
  type WatchedTransaction,
} from "../src/chain/transactions.ts"
import type { Turn } from "../src/db/turn.ts"
import { jobFor } from "./jobs.ts"
import { type HeldLane, inLane } from "./lane.ts"
import { traceSend } from "./note-step.ts"

/** Signs the frozen content, which gives the same bytes every time, stores them, and only then sends them. */
export async function signAndSend(lane: HeldLane, transaction: WatchedTransaction): Promise<void> {
  const fees = {
    max_fee_per_gas: BigInt(transaction.max_fee_per_gas),
    max_priority_fee_per_gas: BigInt(transaction.max_priority_fee_per_gas),
  }
  await sendAttempt(lane, transaction, await sign(lane, transaction, "first", fees))
}

/** Signs the same content with higher fees: stored like the first bytes before anybody sees them. */
export async function bump(lane: HeldLane, transaction: WatchedTransaction, fees: Fees): Promise<void> {
  await sendAttempt(lane, transaction, await sign(lane, transaction, "bump", fees))
}

async function sign(
  lane: HeldLane,
  transaction: WatchedTransaction,
  kind: "first" | "bump",
  fees: Fees,
): Promise<AttemptRow> {
  const raw = await lane.signer.account.signTransaction({
    type: "eip1559",
    chainId: transaction.chain_id,
    nonce: transaction.nonce,
    to: transaction.to as Address,
    data: transaction.call as Hex,
    gas: BigInt(transaction.gas),
    maxFeePerGas: fees.max_fee_per_gas,
    maxPriorityFeePerGas: fees.max_priority_fee_per_gas,
  })
  const attempt = { hash: keccak256(raw), raw, kind, fees }
  lane.checkpoint(kind === "bump" ? "bump.sign" : "sign", transaction.kind)
  const stored = await inLane(lane, (turn) => storeAttempt(turn, lane.lease, transaction, attempt))
  lane.checkpoint(kind === "bump" ? "bump.store" : "store", transaction.kind)
  return stored
}

/** Sends stored bytes. What the pool answers is noted; an unclear answer is met by the same bytes next time. */
export async function sendAttempt(
  lane: HeldLane,
  transaction: WatchedTransaction,
  attempt: AttemptRow,
): Promise<void> {
  const since = performance.now()
  const failure = await sendRaw(lane, attempt.raw as Hex)
  lane.checkpoint(attempt.kind === "bump" ? "bump.broadcast" : "broadcast", transaction.kind)
  const outcome = failure === null ? "known" : classifySendError(failure)
  const isOnItsWay = outcome === "known" || outcome === "nonce_low"
  await inLane(lane, async (turn) => {
    await noteSend(turn, lane.lease, attempt, { head: Number(lane.head), last_error: failure })
    if (!isOnItsWay) return
    const isNew = transaction.status === "allocated" || transaction.status === "signed"
    const status = isNew ? "sent" : transaction.status
    await updateTransaction(turn, lane.lease, transaction.id, { status, sent_block: Number(lane.head) })
    if (isNew) await tellSubmitted(turn, transaction, attempt.hash)
  })
  lane.checkpoint("mark", transaction.kind)
  traceSend(lane.context, since, transaction, outcome)
  const { nonce } = transaction
  if (outcome === "no_funds")
    lane.pause ??= `${lane.signer.address} cannot pay for its transaction with nonce ${nonce}: send it more, it goes on by itself`
  if (outcome === "refused")
    lane.notices.push(`the node refuses nonce ${nonce}, which is sent again: ${failure}`)
  if (outcome === "unclear" || outcome === "rate_limited") throw new ChainUnreachable(failure ?? "no answer")
}

async function sendRaw(lane: HeldLane, raw: Hex): Promise<string | null> {
  try {
    await lane.chain.rpc.request({ method: "eth_sendRawTransaction", params: [raw] })
    return null
  } catch (error) {
    return rawMessage(error)
  }
}

/** Tells those who want to know that their transaction is on its way. */
export async function tellSubmitted(turn: Turn, transaction: TransactionRow, hash: string): Promise<void> {
  const type = jobFor(transaction.kind).submittedEvent
  if (!type) return
  for (const effect of await effectsOf(turn.tx, transaction.id))
    await sendEvent(turn, effect.actor_id, { type, transaction_hash: hash })
}

/** Twice the base fee and the tip, so that a few full blocks do not price a transaction out; never above the cap. */
export async function feesNow(lane: HeldLane): Promise<Fees> {
  const { maxFeePerGas, maxPriorityFeePerGas } = await reach(() => lane.chain.rpc.estimateFeesPerGas())
  const cap = feeCap(lane)
  const max_fee_per_gas = least(maxFeePerGas, cap)
  return { max_fee_per_gas, max_priority_fee_per_gas: least(maxPriorityFeePerGas, max_fee_per_gas) }
}

/**
 * Fees that a pool takes for a replacement: an eighth above the last ones on both fields, where public pools ask
 * for a tenth, and never below today's. Null when the cap does not allow it.
 */
export async function bumpedFees(lane: HeldLane, last: AttemptRow): Promise<Fees | null> {
  const now = await feesNow(lane)
  const raised = (fee: string) => (BigInt(fee) * 9n + 7n) / 8n + 1n
  const max_fee_per_gas = most(raised(last.max_fee_per_gas), now.max_fee_per_gas)
  const max_priority_fee_per_gas = most(raised(last.max_priority_fee_per_gas), now.max_priority_fee_per_gas)
  if (max_fee_per_gas > feeCap(lane)) return null
  return { max_fee_per_gas, max_priority_fee_per_gas: least(max_priority_fee_per_gas, max_fee_per_gas) }
}

function feeCap(lane: HeldLane): bigint {
  return BigInt(Math.round(lane.chain.config.max_fee_per_gas_gwei * 1e9))
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function most(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
