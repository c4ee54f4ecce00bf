import { type Address, type Hex, keccak256 } from "viem"
import { sendEvent } from "../src/actors/runtime.ts"
import { least, most } from "../src/chain/extremes.ts"
import { ChainUnreachable, isSilence, rawMessage, reach } from "../src/chain/rpc.ts"
import { classifySendError, type SendOutcome } from "../src/chain/send-errors.ts"
import {
  type AttemptKind,
  type AttemptRow,
  effectsOf,
  type Fees,
  kindOf,
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
import type { Step } from "./step.ts"

/** Signs the frozen content, which gives the same bytes every time, stores them, and only then sends them. */
export async function signAndSend(lane: HeldLane, transaction: WatchedTransaction): Promise<void> {
  const fees = {
    max_fee_per_gas: BigInt(transaction.max_fee_per_gas),
    max_priority_fee_per_gas: BigInt(transaction.max_priority_fee_per_gas),
  }
  await sendAttempt(lane, transaction, await sign(lane, transaction, "first", fees))
}

/**
 * Signs the same content, or nothing at all, with higher fees: stored like the first bytes before anybody sees them.
 */
export async function replace(
  lane: HeldLane,
  transaction: WatchedTransaction,
  kind: "bump" | "cancel",
  fees: Fees,
): Promise<void> {
  await sendAttempt(lane, transaction, await sign(lane, transaction, kind, fees))
}

async function sign(
  lane: HeldLane,
  transaction: WatchedTransaction,
  kind: AttemptKind,
  fees: Fees,
): Promise<AttemptRow> {
  const raw = await lane.signer.account.signTransaction({
    type: "eip1559",
    chainId: transaction.chain_id,
    nonce: transaction.nonce,
    ...(kind === "cancel" ? await nothing(lane) : contentOf(transaction)),
    maxFeePerGas: fees.max_fee_per_gas,
    maxPriorityFeePerGas: fees.max_priority_fee_per_gas,
  })
  const attempt = { hash: keccak256(raw), raw, kind, fees }
  lane.checkpoint(stepOf("sign", kind), transaction.kind)
  const stored = await inLane(lane, (turn) => storeAttempt(turn, lane.lease, transaction, attempt))
  lane.checkpoint(stepOf("store", kind), transaction.kind)
  return stored
}

function contentOf({ to, call, gas }: TransactionRow) {
  return { to: to as Address, data: call as Hex, gas: BigInt(gas) }
}

/** A call of the signer to itself; its gas is asked for, since some chains charge more than 21,000. */
async function nothing({ chain, signer: { address } }: HeldLane) {
  const gas = await reach(() => chain.rpc.estimateGas({ account: address, to: address }))
  return { to: address, data: "0x", gas: (gas * 5n) / 4n } as const
}

function stepOf(step: "sign" | "store" | "broadcast", kind: AttemptKind): Step {
  return kind === "first" ? step : `${kind}.${step}`
}

/** Sends stored bytes. What the pool answers is noted; an unclear answer is met by the same bytes next time. */
export async function sendAttempt(
  lane: HeldLane,
  transaction: WatchedTransaction,
  attempt: AttemptRow,
): Promise<void> {
  const since = performance.now()
  const { outcome, failure } = await sendRaw(lane, attempt.raw as Hex)
  lane.checkpoint(stepOf("broadcast", kindOf(attempt)), transaction.kind)
  const isOnItsWay = outcome === "known" || outcome === "nonce_low"
  const judged_at = raisingHelps.includes(outcome) ? Number(lane.head) : null
  await inLane(lane, async (turn) => {
    await noteSend(turn, lane.lease, attempt, { judged_at, last_error: failure })
    if (!isOnItsWay) return
    const isNew = transaction.status === "allocated" || transaction.status === "signed"
    const status = isNew ? "sent" : transaction.status
    await updateTransaction(turn, lane.lease, transaction.id, { status, sent_block: Number(lane.head) })
    if (isNew && !attempt.is_cancel) await tellSubmitted(turn, transaction, attempt.hash)
  })
  lane.checkpoint("mark", transaction.kind)
  traceSend(lane.context, since, transaction, outcome)
  const { nonce } = transaction
  if (outcome === "no_funds")
    lane.pause ??= `${lane.signer.address} cannot pay for its transaction with nonce ${nonce}: send it more, it goes on by itself`
  if (outcome === "refused")
    lane.notices.push(
      `the node refuses nonce ${nonce}, which is sent again: ${failure}; to give it up, run: operator cancel ${transaction.id}`,
    )
  if (["unclear", "no_answer", "rate_limited"].includes(outcome))
    throw new ChainUnreachable(failure ?? "no answer")
}

/** After these a transaction that is not mined waits for a better price, or may. */
const raisingHelps: SendOutcome[] = ["known", "nonce_low", "underpriced", "fee_too_low", "unclear"]

async function sendRaw(lane: HeldLane, raw: Hex): Promise<{ outcome: SendOutcome; failure: string | null }> {
  try {
    await lane.chain.rpc.request({ method: "eth_sendRawTransaction", params: [raw] })
    return { outcome: "known", failure: null }
  } catch (error) {
    const failure = rawMessage(error)
    const outcome = classifySendError(failure)
    return { outcome: outcome === "unclear" && isSilence(error) ? "no_answer" : outcome, failure }
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
 * for a tenth, and never below today's. Null when the cap does not allow it; a cancel is small and asked for, so it
 * may go to twice the cap.
 */
export async function raisedFees(
  lane: HeldLane,
  last: AttemptRow,
  kind: "bump" | "cancel",
): Promise<Fees | null> {
  const now = await feesNow(lane)
  const raised = (fee: string) => (BigInt(fee) * 9n + 7n) / 8n + 1n
  const max_fee_per_gas = most(raised(last.max_fee_per_gas), now.max_fee_per_gas)
  const max_priority_fee_per_gas = most(raised(last.max_priority_fee_per_gas), now.max_priority_fee_per_gas)
  const cap = kind === "cancel" ? 2n * feeCap(lane) : feeCap(lane)
  if (max_fee_per_gas > cap) return null
  return { max_fee_per_gas, max_priority_fee_per_gas: least(max_priority_fee_per_gas, max_fee_per_gas) }
}

function feeCap(lane: HeldLane): bigint {
  return BigInt(Math.round(lane.chain.config.max_fee_per_gas_gwei * 1e9))
}
