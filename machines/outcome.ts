import { type EffectFailure, failureOf } from "./failures.ts"

/** The result of a machine's work on chain; at most one of the two is set. */
export type Outcome = { transaction_hash: string | null; failure: EffectFailure | null }

export const noOutcome: Outcome = { transaction_hash: null, failure: null }

/** Assigners for machines whose context holds an `Outcome`, each for the action of the same name. */
export const recordTransaction = (
  _: unknown,
  params: { transaction_hash: string } | { outcome: string },
) => ({
  transaction_hash: "transaction_hash" in params ? params.transaction_hash : null,
})

export const recordFailure = (_: unknown, { error }: { error: unknown }) => ({ failure: failureOf(error) })

/** Guards against being told the same transaction again. */
export const isOtherTransaction = (
  { context }: { context: Outcome },
  { transaction_hash }: { transaction_hash: string },
) => transaction_hash !== context.transaction_hash
