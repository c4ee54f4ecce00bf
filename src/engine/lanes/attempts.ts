import { type Hex, parseTransaction } from "viem"
import type { AttemptRow } from "../../db/schema.ts"
import type { Fees } from "../chain/fees.ts"

/** A `cancel` is an empty transaction that uses up the nonce. */
export type AttemptKind = "first" | "bump" | "cancel"

/** Returns the kind of a stored attempt. */
export function kindOf({ kind, is_cancel }: AttemptRow): AttemptKind {
  return is_cancel ? "cancel" : kind
}

/**
 * Returns a kind as stored: a cancel is marked in its own column, because the previous release knows only two kinds.
 */
export function kindColumns(kind: AttemptKind): Pick<AttemptRow, "kind" | "is_cancel"> {
  return kind === "cancel" ? { kind: "bump", is_cancel: true } : { kind, is_cancel: false }
}

/** Returns the gas limit that an attempt was signed with. */
export function gasOf({ raw }: AttemptRow): bigint {
  return parseTransaction(raw as Hex).gas ?? 0n
}

/** Returns the fees that an attempt was signed with. */
export function feesOf({ max_fee_per_gas, max_priority_fee_per_gas }: AttemptRow): Fees {
  return {
    max_fee_per_gas: BigInt(max_fee_per_gas),
    max_priority_fee_per_gas: BigInt(max_priority_fee_per_gas),
  }
}

/** Returns fees as stored. */
export function feeColumns({ max_fee_per_gas, max_priority_fee_per_gas }: Fees) {
  return {
    max_fee_per_gas: String(max_fee_per_gas),
    max_priority_fee_per_gas: String(max_priority_fee_per_gas),
  }
}

/** Returns whether an attempt was signed with this gas limit and these fees. */
export function isSignedFor(attempt: AttemptRow, gas: bigint, fees: Fees): boolean {
  const { max_fee_per_gas, max_priority_fee_per_gas } = feesOf(attempt)
  return (
    gasOf(attempt) === gas &&
    max_fee_per_gas === fees.max_fee_per_gas &&
    max_priority_fee_per_gas === fees.max_priority_fee_per_gas
  )
}

/** Returns the attempt with the highest fee: whichever of them a pool holds, a more expensive one replaces it. */
export function dearest(attempts: AttemptRow[]): AttemptRow | undefined {
  return attempts.toSorted(byFee).at(-1)
}

/**
 * Compares by order of signing, whatever the clock said. Attempts of older releases have no
 * number; their fees only ever rose.
 */
export function byNumber(one: AttemptRow, other: AttemptRow): number {
  if (one.number !== other.number) return (one.number ?? 0) - (other.number ?? 0)
  return byFee(one, other)
}

function byFee(one: Pick<AttemptRow, "max_fee_per_gas">, other: Pick<AttemptRow, "max_fee_per_gas">): number {
  const difference = BigInt(one.max_fee_per_gas) - BigInt(other.max_fee_per_gas)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}
