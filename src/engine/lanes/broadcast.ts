import { type Address, type Hex, keccak256 } from "viem"
import type { AttemptRow, TransactionRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { sendEvent } from "../actors/runtime.ts"
import { inCoin } from "../chain/coin.ts"
import { costOf, type Fees, firstFees, gasFor } from "../chain/fees.ts"
import { ChainUnreachable, reach } from "../chain/rpc.ts"
import type { SendVerdict } from "../chain/send-errors.ts"
import { jobFor } from "../jobs/job.ts"
import { type AttemptKind, feesOf, gasOf, isSignedFor, kindOf } from "./attempts.ts"
import { type Findings, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { traceSend } from "./note-step.ts"
import type { Step } from "./step.ts"
import {
  effectsOf,
  noteSend,
  storeAttempt,
  updateTransaction,
  type WatchedTransaction,
} from "./transactions.ts"

/** What is signed besides the content. */
type Offer = { kind: AttemptKind; gas: bigint; fees: Fees }

/** Signs and sends a transaction for the first time, at current fees. */
export async function sendFirst(lane: HeldLane, transaction: WatchedTransaction): Promise<Findings> {
  const gas = BigInt(transaction.gas)
  const fees = firstFees(gas, await lane.market(), lane.limits)
  return await sendOffer(lane, transaction, { kind: "first", gas, fees })
}

/** Signs and sends an empty transaction in place of one that was never signed, at current fees. */
export async function sendEmpty(lane: HeldLane, transaction: WatchedTransaction): Promise<Findings> {
  const gas = await emptyGas(lane)
  const fees = firstFees(gas, await lane.market(), lane.limits)
  return await sendOffer(lane, transaction, { kind: "cancel", gas, fees })
}

/**
 * Signs the transaction's content, or an empty transaction in its place, and stores the bytes before anyone sees them.
 * Bytes already stored for the same offer are sent again instead: a key service signs differently each time.
 */
export async function sendOffer(
  lane: HeldLane,
  transaction: WatchedTransaction,
  offer: Offer,
): Promise<Findings> {
  const { kind, gas, fees } = offer
  const stored = transaction.attempts.find(
    (attempt) => attempt.is_cancel === (kind === "cancel") && isSignedFor(attempt, gas, fees),
  )
  return await sendAttempt(lane, transaction, stored ?? (await sign(lane, transaction, offer)))
}

async function sign(
  lane: HeldLane,
  transaction: WatchedTransaction,
  { kind, gas, fees }: Offer,
): Promise<AttemptRow> {
  const { address, account } = lane.signer
  if (!account) throw new Error(`the key of ${address} is not in SIGNER_KEYS`)
  const content =
    kind === "cancel"
      ? ({ to: address, data: "0x" } as const)
      : { to: transaction.to as Address, data: transaction.call as Hex }
  const raw = await account.signTransaction({
    type: "eip1559",
    chainId: transaction.chain_id,
    nonce: transaction.nonce,
    ...content,
    gas,
    maxFeePerGas: fees.max_fee_per_gas,
    maxPriorityFeePerGas: fees.max_priority_fee_per_gas,
  })
  const attempt = { hash: keccak256(raw), raw, kind, fees }
  lane.checkpoint(stepOf("sign", kind), transaction.kind)
  const stored = await inLane(lane, (turn) => storeAttempt(turn, lane.lease, transaction, attempt))
  lane.checkpoint(stepOf("store", kind), transaction.kind)
  return stored
}

/** Estimates the gas of an empty transaction from the signer to itself; some chains charge more than 21,000. */
export async function emptyGas({ chain, signer: { address } }: HeldLane): Promise<bigint> {
  return gasFor(await reach(() => chain.rpc.estimateGas({ account: address, to: address })))
}

function stepOf(step: "sign" | "store" | "broadcast", kind: AttemptKind): Step {
  return kind === "first" ? step : `${kind}.${step}`
}

/** Sends stored bytes and records the verdict. An unrecognized response changes nothing. */
export async function sendAttempt(
  lane: HeldLane,
  transaction: WatchedTransaction,
  attempt: AttemptRow,
): Promise<Findings> {
  const since = performance.now()
  const verdict = await lane.chain.providers.send(attempt.raw as Hex)
  lane.checkpoint(stepOf("broadcast", kindOf(attempt)), transaction.kind)
  const isOnItsWay = verdict.outcome === "known" || verdict.outcome === "nonce_low"
  await inLane(lane, async (turn) => {
    await noteSend(turn, lane.lease, attempt, verdict, Number(lane.head))
    if (!isOnItsWay) return
    const isNew = transaction.status === "allocated" || transaction.status === "signed"
    const status = isNew ? "sent" : transaction.status
    await updateTransaction(turn, lane.lease, transaction.id, { status, sent_block: Number(lane.head) })
    if (isNew && !attempt.is_cancel) await tellSubmitted(turn, lane, transaction, attempt.hash)
  })
  lane.checkpoint("mark", transaction.kind)
  traceSend(lane.context, since, transaction, verdict.outcome)
  return findingsOf(lane, transaction, attempt, verdict)
}

/** Returns what the verdict means for the round and for the operator. */
function findingsOf(
  { signer, context, chain }: HeldLane,
  { id, nonce }: TransactionRow,
  attempt: AttemptRow,
  { outcome, said }: SendVerdict,
): Findings {
  const cost = costOf(gasOf(attempt), feesOf(attempt))
  const again = (what: string): Findings => {
    context.log.warn(
      { nonce, outcome, error: said },
      "the transaction was not accepted and will be sent again",
    )
    return noticed(`nonce ${nonce} ${what}: ${said ?? "no response"}`)
  }
  switch (outcome) {
    case "known":
    case "nonce_low":
    case "nonce_high":
    case "underpriced":
    case "fee_too_low":
      return nothing
    case "fee_too_high":
      return {
        ...again(`is too expensive for the node at ${inCoin(cost, chain.config)}`),
        refused_cost: cost,
      }
    case "gas_too_low":
      return again("has too low a gas limit for the node, and gets a higher one")
    case "no_funds":
      return {
        ...again("cannot be paid for"),
        pause: `${signer.address} cannot pay the ${inCoin(cost, chain.config)} for nonce ${nonce}: send it more; the lane continues by itself`,
      }
    case "refused":
      return again(
        `is rejected by the node and sent again; to give it up, run: operator cancel ${id}; the node says`,
      )
    case "wait":
      return again("has to wait")
    case "rate_limited":
    case "unclear":
    case "no_answer":
      return {
        ...again("is not accepted yet, and the same bytes are sent again"),
        failure: new ChainUnreachable(said ?? "no response"),
      }
  }
}

/** Sends the job's `submittedEvent`, if it has one, to the actors of a transaction that was sent. */
export async function tellSubmitted(
  turn: Turn,
  lane: HeldLane,
  transaction: TransactionRow,
  hash: string,
): Promise<void> {
  const type = jobFor(lane.jobs, transaction.kind).submittedEvent
  if (!type) return
  for (const effect of await effectsOf(turn.tx, transaction.id))
    await sendEvent(turn, effect.actor_id, { type, transaction_hash: hash })
}
