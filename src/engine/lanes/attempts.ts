import { type Hex, parseTransaction } from "viem"
import type { AttemptRow } from "../../db/schema.ts"
import type { Fees } from "../chain/fees.ts"

/** A `cancel` uses up the nonce and does nothing else. */
export type AttemptKind = "first" | "bump" | "cancel"

/** The kind of a stored attempt. */
export function kindOf({ kind, is_cancel }: AttemptRow): AttemptKind {
  return is_cancel ? "cancel" : kind
}

/** A kind as rows have it: a cancel has a column of its own, because the release before knows only two kinds. */
export function kindColumns(kind: AttemptKind): Pick<AttemptRow, "kind" | "is_cancel"> {
  return kind === "cancel" ? { kind: "bump", is_cancel: true } : { kind, is_cancel: false }
}

/** The gas limit that an attempt was signed with. */
export function gasOf({ raw }: AttemptRow): bigint {
  return parseTransaction(raw as Hex).gas ?? 0n
}

/** The price that an attempt was signed with. */
export function feesOf({ max_fee_per_gas, max_priority_fee_per_gas }: AttemptRow): Fees {
  return {
    max_fee_per_gas: BigInt(max_fee_per_gas),
    max_priority_fee_per_gas: BigInt(max_priority_fee_per_gas),
  }
}

/** A price as rows have it. */
export function feeColumns({ max_fee_per_gas, max_priority_fee_per_gas }: Fees) {
  return {
    max_fee_per_gas: String(max_fee_per_gas),
    max_priority_fee_per_gas: String(max_priority_fee_per_gas),
  }
}

/** Whether an attempt was signed with this gas limit and this price. */
export function isSignedFor(attempt: AttemptRow, gas: bigint, fees: Fees): boolean {
  const { max_fee_per_gas, max_priority_fee_per_gas } = feesOf(attempt)
  return (
    gasOf(attempt) === gas &&
    max_fee_per_gas === fees.max_fee_per_gas &&
    max_priority_fee_per_gas === fees.max_priority_fee_per_gas
  )
}

/** Of several attempts the one with the highest price: whichever of them a pool holds, a dearer one replaces it. */
export function dearest(attempts: AttemptRow[]): AttemptRow | undefined {
  return attempts.toSorted(byFee).at(-1)
}

/** In the order they were signed in, whatever the clock said; older releases only ever raised the price. */
export function byNumber(one: AttemptRow, other: AttemptRow): number {
  if (one.number !== other.number) return (one.number ?? 0) - (other.number ?? 0)
  return byFee(one, other)
}

function byFee(one: Pick<AttemptRow, "max_fee_per_gas">, other: Pick<AttemptRow, "max_fee_per_gas">): number {
  const difference = BigInt(one.max_fee_per_gas) - BigInt(other.max_fee_per_gas)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}
