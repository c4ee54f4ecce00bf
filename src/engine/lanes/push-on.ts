import type { Address, Hex } from "viem"
import type { AttemptRow, TransactionRow } from "../../db/schema.ts"
import { inCoin } from "../chain/coin.ts"
import { most } from "../chain/extremes.ts"
import { costOf, type FeeLimits, gasFor, isPricedOut } from "../chain/fees.ts"
import { CallReverted, reach } from "../chain/rpc.ts"
import { tryCall } from "../chain/try-call.ts"
import { jobFor, useUpNonce } from "../jobs/job.ts"
import { feesOf, gasOf } from "./attempts.ts"
import { emptyGas, sendAttempt, sendEmpty, sendFirst, sendOffer } from "./broadcast.ts"
import { attempt, type Findings, join, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import type { Looked } from "./look.ts"
import { nextMove } from "./next-move.ts"
import { findUse, type NonceUse } from "./nonce-use.ts"
import { nowhere } from "./nonces.ts"
import { isGivenUp, updateTransaction, type WatchedTransaction } from "./transactions.ts"

/** Blocks without a receipt after which the same bytes are sent again. */
const resendBlocks = 2

/** Sends what is in no block: for the first time, again, or at other fees. */
export async function pushOnTransactions(lane: HeldLane, { seen, lowest_open }: Looked): Promise<Findings> {
  const found: Findings[] = []
  const gap = gapBelow(seen.filter(({ mined }) => mined === null).map(({ transaction }) => transaction))
  for (const { transaction, mined } of seen) {
    const isFirst = transaction.status === "allocated"
    if (mined && !isFirst) continue
    const pushed = await attempt(lane, transaction, async () =>
      isFirst
        ? await sendNew(lane, transaction)
        : await pushOn(lane, await takeOutOfBlock(lane, transaction), {
            is_lowest: transaction === lowest_open,
            is_missed: transaction.nonce < gap,
          }),
    )
    found.push(pushed)
  }
  return join(...found)
}

async function sendNew(lane: HeldLane, transaction: WatchedTransaction): Promise<Findings> {
  if (lane.signer.account) {
    const hold = await holdOf(lane, transaction)
    return hold === null ? await sendFirst(lane, transaction) : await sendEmpty(lane, transaction)
  }
  return noticed(
    `nonce ${transaction.nonce} (${transaction.kind}) was never signed, and the key of ${lane.signer.address} is no longer in SIGNER_KEYS: add it until the lane has nothing open`,
  )
}

/**
 * Returns the highest nonce that a pool refused because an earlier one is missing: all below it are sent again at once.
 */
function gapBelow(unmined: WatchedTransaction[]): number {
  const early = unmined.filter(({ attempts }) => attempts.at(-1)?.last_outcome === "nonce_high")
  return Math.max(-1, ...early.map(({ nonce }) => nonce))
}

/**
 * Marks a transaction that a reorganization removed as in no block. Applied results stand, and the same bytes bring it
 * back, unless they would do harm now.
 */
async function takeOutOfBlock(lane: HeldLane, transaction: WatchedTransaction): Promise<WatchedTransaction> {
  if (transaction.block_hash === null) return transaction
  const { nonce, hash, block_number } = transaction
  lane.context.log.warn(
    { lane_id: lane.lease.lane_id, nonce, hash, block_number },
    "the block of the transaction was replaced: its lane brings it back",
  )
  const status = transaction.status === "mined" ? "sent" : transaction.status
  const change = { status, ...nowhere }
  await inLane(lane, (turn) => updateTransaction(turn, lane.lease, transaction.id, change))
  return { ...transaction, ...change }
}

type Place = { is_lowest: boolean; is_missed: boolean }

/** Sends a transaction that is not mined: the same bytes again, or others if those cannot be mined. */
async function pushOn(
  lane: HeldLane,
  transaction: WatchedTransaction,
  { is_lowest, is_missed }: Place,
): Promise<Findings> {
  if (transaction.attempts.length === 0) return nothing
  const use = await findUse(lane, transaction)
  if (use) return use.is_ours ? withoutReceipt(transaction, use) : await usedByOther(lane, transaction, use)
  const hold = await holdOf(lane, transaction)
  const is_given_up = hold !== null || isGivenUp(transaction)
  const last = lastWanted(transaction, is_given_up)
  const blocksSince = (block: number | null) => (block === null ? Infinity : Number(lane.head) - block)
  const isDue =
    is_missed || transaction.status === "signed" || blocksSince(transaction.sent_block) >= resendBlocks
  if (transaction.nonce < lane.used_nonces || !lane.signer.account) {
    const again = last ?? (transaction.attempts.at(-1) as AttemptRow)
    const stuck = lane.signer.account ? nothing : await needOfKey(lane, transaction)
    return isDue ? join(stuck, await sendAgain(lane, transaction, again, hold)) : stuck
  }

  const planned = await withEnoughGas(lane, transaction)
  const gas = is_given_up ? await gasToGiveUp(lane, last) : BigInt(planned.gas)
  const is_waiting_long =
    is_lowest &&
    blocksSince(last?.first_sent_block ?? Number(lane.head)) >= lane.chain.config.bump_after_blocks
  const open = { attempts: transaction.attempts, is_given_up, gas, is_waiting_long }
  const move = nextMove(open, await lane.market(), limitsFor(lane, transaction, is_given_up))
  if (move.do === "offer") {
    const kind = is_given_up ? "cancel" : "bump"
    const lack = await lackOf(lane, last, costOf(gas, move.fees))
    return lack ?? (await sendOffer(lane, planned, { kind, gas, fees: move.fees }))
  }
  // Where the limits allow no more, the bytes already sent stay in play, and the operator is informed.
  const capped = move.do === "keep" ? atHighestFee(transaction, is_given_up) : nothing
  if (!isDue) return capped
  const lack = await lackOf(lane, last, costOf(gasOf(move.attempt), feesOf(move.attempt)))
  return join(capped, lack ?? (await sendAgain(lane, transaction, move.attempt, hold)))
}

/**
 * Returns what the call waits for because it would do harm before, as a reorganization undid what it builds on; null if
 * it may be sent. Until then an empty transaction is to use up its nonce, and its work is sent with a new one.
 */
async function holdOf(
  { chain, context, jobs }: HeldLane,
  { kind, to, call: data }: TransactionRow,
): Promise<string | null> {
  const { hold } = jobFor(jobs, kind)
  return (await hold?.(chain, context.db.read, { to, data })) ?? null
}

/** Sends signed bytes again, except a call that is held back. */
async function sendAgain(
  lane: HeldLane,
  transaction: WatchedTransaction,
  attempt: AttemptRow,
  hold: string | null,
): Promise<Findings> {
  if (hold === null || attempt.is_cancel) return await sendAttempt(lane, transaction, attempt)
  const { nonce, kind } = transaction
  const { address, account } = lane.signer
  const why = `nonce ${nonce} (${kind}) is not sent again until ${hold}, because it would do harm before`
  if (account) return noticed(why)
  // What the call waits for may itself wait for this nonce.
  return noticed(
    `${why}; the key of ${address}, which could sign an empty transaction in its place, is no longer in SIGNER_KEYS: if this lasts, add it until the lane has nothing open`,
  )
}

/** Reports what only the missing key could do: cancel, or raise the fees. Later nonces wait for it. */
async function needOfKey(lane: HeldLane, transaction: WatchedTransaction): Promise<Findings> {
  if (!isGivenUp(transaction) || lastWanted(transaction, true))
    return await tooCheapForGood(lane, transaction)
  return noticed(
    `nonce ${transaction.nonce} is given up, but the key of ${lane.signer.address}, which has to sign the empty transaction for it, is no longer in SIGNER_KEYS: add it until the lane has nothing open`,
  )
}

async function tooCheapForGood(
  { market, signer }: HeldLane,
  { nonce, kind, attempts }: WatchedTransaction,
): Promise<Findings> {
  const now = await market()
  if (attempts.some((each) => !isPricedOut(feesOf(each), now))) return nothing
  return noticed(
    `nonce ${nonce} (${kind}) was signed with fees that are now too low, and the key of ${signer.address} is no longer in SIGNER_KEYS: add it until the lane has nothing open, or wait for lower fees`,
  )
}

function lastWanted({ attempts }: WatchedTransaction, is_given_up: boolean): AttemptRow | undefined {
  return attempts.findLast(({ is_cancel }) => is_cancel === is_given_up)
}

/** Doubles the highest fee for what only uses up a nonce: it is cheap, and others wait for it. */
function limitsFor({ limits }: HeldLane, transaction: TransactionRow, is_given_up: boolean): FeeLimits {
  if (!onlyUsesUp(transaction, is_given_up)) return limits
  return { ...limits, max_fee_per_gas: 2n * limits.max_fee_per_gas }
}

function onlyUsesUp({ kind }: TransactionRow, is_given_up: boolean): boolean {
  return is_given_up || kind === useUpNonce
}

/**
 * Returns the gas of an empty transaction; twice the last one's if a node found that too low,
 * which an estimate may not show.
 */
async function gasToGiveUp(lane: HeldLane, last: AttemptRow | undefined): Promise<bigint> {
  if (!last) return await emptyGas(lane)
  if (last.last_outcome !== "gas_too_low") return gasOf(last)
  return most(await emptyGas(lane), 2n * gasOf(last))
}

/**
 * Raises the gas limit if a node found it too low, as after costs outside the call have risen: to what the content
 * needs now, or to twice as much if that is unknown because what precedes it is not mined yet.
 */
async function withEnoughGas(lane: HeldLane, transaction: WatchedTransaction): Promise<WatchedTransaction> {
  const last = transaction.attempts.findLast(({ is_cancel }) => !is_cancel)
  const before = BigInt(transaction.gas)
  if (last?.last_outcome !== "gas_too_low" || gasOf(last) !== before) return transaction
  const call = { to: transaction.to as Address, data: transaction.call as Hex }
  const needed = await tryCall(lane.chain, lane.signer.address, call)
  const estimate = needed instanceof CallReverted ? 0n : gasFor(needed)
  const gas = Number(estimate > before ? estimate : 2n * before)
  await inLane(lane, (turn) => updateTransaction(turn, lane.lease, transaction.id, { gas }))
  return { ...transaction, gas }
}

/** Returns why it is not sent: a node said that the account cannot pay, and it has no more money now. */
async function lackOf(lane: HeldLane, last: AttemptRow | undefined, cost: bigint): Promise<Findings | null> {
  if (last?.last_outcome !== "no_funds") return null
  const { address } = lane.signer
  const balance = await reach(() => lane.chain.rpc.getBalance({ address }))
  if (balance >= cost) return null
  const pause = `${address} has ${inCoin(balance, lane.chain.config)}, but its next transaction may cost ${inCoin(cost, lane.chain.config)}: send it more; the lane continues by itself`
  return { ...nothing, pause }
}

/** Reports that it is mined and that no provider has its receipt yet. */
export function withoutReceipt(
  { nonce, kind }: WatchedTransaction,
  { hash }: { hash: string | null },
): Findings {
  return noticed(
    `nonce ${nonce} (${kind}) was used by ${hash}, but no provider has its receipt: it continues once one has; if this lasts, add another provider to rpc_urls in CHAINS`,
  )
}

async function usedByOther(
  lane: HeldLane,
  { id, nonce, kind }: WatchedTransaction,
  { hash }: NonceUse,
): Promise<Findings> {
  const { chain, signer, lease } = lane
  if (kind === useUpNonce) {
    // The transaction that it was to replace was mined after all.
    await inLane(lane, (turn) => updateTransaction(turn, lease, id, { status: "final", ...nowhere }))
    return nothing
  }
  const used = `nonce ${nonce} of ${signer.address} was used by`
  const next = `make sure that nobody else uses the key, then run: operator retry ${lease.lane_id}`
  const halt =
    hash === null
      ? `${used} a transaction that no provider of chain ${chain.chain_id} has any more: if it may be this service's own, put a provider that has all receipts first in rpc_urls in CHAINS; otherwise ${next}`
      : `${used} transaction ${hash}, which this service did not send: ${next}`
  return { ...nothing, halt }
}

function atHighestFee(transaction: TransactionRow, is_given_up: boolean): Findings {
  const { id, nonce } = transaction
  const notice = onlyUsesUp(transaction, is_given_up)
    ? `the empty transaction with nonce ${nonce} is not mined even at the highest fee: wait for lower fees, or raise max_fee_per_gas_gwei in CHAINS`
    : `nonce ${nonce} is not mined even at the highest fee: raise max_fee_per_gas_gwei or max_transaction_cost in CHAINS, wait for lower fees, or give it up with: operator cancel ${id}`
  return noticed(notice)
}
