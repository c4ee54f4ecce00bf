import { type EffectFailure, failureOf } from "./failures.ts"

/** What became of a machine's work on chain; at most one of the two is set. */
export type Outcome = { transaction_hash: string | null; failure: EffectFailure | null }

export const noOutcome: Outcome = { transaction_hash: null, failure: null }

/** Assignments of machines that keep an outcome, each the body of an action of this name. */
export const recordTransaction = (
  _: unknown,
  params: { transaction_hash: string } | { outcome: string },
) => ({
  transaction_hash: "transaction_hash" in params ? params.transaction_hash : null,
})

export const recordFailure = (_: unknown, { error }: { error: unknown }) => ({ failure: failureOf(error) })
