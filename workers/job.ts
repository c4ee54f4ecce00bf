import type { Address, Hex, TransactionReceipt } from "viem"
import type { EffectFailure } from "../machines/effect.ts"
import type { EffectResult } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import type { TransactionRow } from "../src/chain/transactions.ts"
import type { Queries } from "../src/db/database.ts"
import type { effects } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"

export type Effect = typeof effects.$inferSelect

/** How effects of one kind become transactions, and what a transaction's receipt means for them. */
export type Job = {
  /** The name under which machines invoke it. */
  src: string
  /** Forms the next call from what waits, oldest first: the first effect and whichever others go with it. */
  plan(
    chain: ConnectedChain,
    queries: Queries,
    waiting: [Effect, ...Effect[]],
  ): Promise<Call | Later | Written>
  /** What it is called when the call reverts with an error that no waiting mends; null where waiting may. */
  refusal(reason: string): EffectFailure | null
  /** Judges a receipt at the confirmation depth: a result for each effect, in the order of the effects. */
  results(chain: ConnectedChain, queries: Queries, mined: Mined): Promise<JobResult[]>
  /** What the results change besides the effects' own actors, in the same database transaction. */
  afterwards?(turn: Turn, mined: Mined, results: JobResult[]): Promise<void>
  /** Shows the transaction that holds a given result now, after a reorganization put it into another one. */
  restate?(turn: Turn, effect: Effect, transactionHash: string): Promise<void>
  /** Effects of one line keep their order: one that is put off holds up those after it. */
  lineOf?(effect: Effect): string
  /** The event that an effect's actor is given once the transaction is on its way. */
  submittedEvent?: string
}

export type Call = {
  members: Effect[]
  to: Address
  data: Hex
  /** Enough gas where the call cannot be simulated, because an earlier one to the same contract is on its way. */
  gas: bigint
  /** Takes what the call counts on, in the database transaction that gives it its nonce. */
  reserve?(turn: Turn): Promise<void>
}

/** `again`: it failed only because something before it did, and is to be planned anew. */
export type JobResult = EffectResult | "again"

export function isOutput(
  result: JobResult | undefined,
): result is Extract<EffectResult, { output: unknown }> {
  return result !== undefined && result !== "again" && "output" in result
}

/** Effects that must wait for what is on its way. */
export type Later = { later: Effect[] }

/** What is written down instead of a call, in one database transaction; then what waits is planned anew. */
export type Written = {
  /** The effects that this closes. Without any, it must change what is planned next. */
  taken: Effect[]
  write(turn: Turn): Promise<void>
  /** A line for the operator's log. */
  warning: [fields: Record<string, unknown>, message: string] | null
}

export type Mined = { transaction: TransactionRow; effects: Effect[]; receipt: TransactionReceipt }
