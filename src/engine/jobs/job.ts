import type { Address, Hex, TransactionReceipt } from "viem"
import type { EffectFailure } from "../../../machines/failures.ts"
import type { Queries } from "../../db/database.ts"
import type { EffectRow, TransactionRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { InputOf, LaneEffect, OutputOf } from "../actors/effects.ts"
import type { ConnectedChain } from "../chain/chains.ts"

/** How effects of one kind become transactions, and what a transaction's receipt means for them. */
export type Job<Name extends LaneEffect = LaneEffect> = {
  /** What comes next of what waits, oldest first: the first effect and whichever others go with it. */
  plan(
    chain: ConnectedChain,
    queries: Queries,
    waiting: [Effect<Name>, ...Effect<Name>[]],
  ): Promise<Plan<Name>>
  /** What it is called when the call reverts with an error that no waiting mends; null where waiting may. */
  refusal(reason: string): EffectFailure | null
  /** What did it before, where the chain refuses to have it done once more; null where nothing did. */
  earlier?(chain: ConnectedChain, queries: Queries, effect: Effect<Name>): Promise<Earlier<Name> | null>
  /**
   * Whether an error may come of what is not final yet, which a node that is behind does not have, or of another effect of
   * the same call.
   */
  mayPass?(queries: Queries, effect: Effect<Name>, reason: string): Promise<boolean>
  /** Why what would succeed must not be sent now; null where nothing speaks against it. */
  hold?(chain: ConnectedChain, queries: Queries, effects: Effect<Name>[]): Promise<string | null>
  /** Whether what lost its nonce before it did anything is looked at once more, and not sent as it is. */
  plansAnew?: true
  /** Judges a receipt at the confirmation depth: a result for each effect, in the order of the effects. */
  results(chain: ConnectedChain, queries: Queries, mined: Mined<Name>): Promise<JobResult<Name>[]>
  /** What the results change besides the effects' own actors, in the same database transaction. */
  afterwards?(turn: Turn, mined: Mined<Name>, results: JobResult<Name>[]): Promise<void>
  /** The same of effects that have ended because the chain refuses to have them sent. */
  afterRefusal?(turn: Turn, ended: Effect<Name>[]): Promise<void>
  /** Shows the transaction that holds a given result now, after a reorganization put it into another one. */
  restate?(turn: Turn, effect: Effect<Name>, transactionHash: string): Promise<void>
  /** Effects of one line keep their order: one that is put off holds up those after it. */
  lineOf?(effect: Effect<Name>): string
  /** The event that an effect's actor is given once the transaction is on its way. */
  submittedEvent?: string
}

/** What an earlier transaction did, and in which block. */
type Earlier<Name extends LaneEffect> = { output: OutputOf<Name>; block_number: number }

/** What the transaction of a log did. */
export function doneBy(log: { transactionHash: string; blockNumber: bigint }) {
  return { output: { transaction_hash: log.transactionHash }, block_number: Number(log.blockNumber) }
}

/** A job for every effect that a machine asks of a lane. */
export type Jobs = { [Name in LaneEffect]: Job<Name> }

/** The kind of a transaction that does nothing but use up its nonce, which no effect asked for. */
export const useUpNonce = "useUpNonce"

const usingUp: Job = {
  plan: async (_chain, _queries, waiting) => ({ do: "wait", effects: waiting }),
  refusal: () => null,
  results: async () => [],
}

/** The job of an effect's `src`, which is also a transaction's `kind`. */
export function jobFor(jobs: Jobs, name: string): Job {
  if (name === useUpNonce) return usingUp
  if (!isLaneEffect(jobs, name)) throw new Error(`no lane knows how to do ${name}`)
  return jobs[name]
}

function isLaneEffect(jobs: Jobs, name: string): name is LaneEffect {
  return Object.hasOwn(jobs, name)
}

/** An effect's row; its input is what its machine gave. */
export type Effect<Name extends LaneEffect = LaneEffect> = Omit<EffectRow, "src" | "input"> & {
  src: Name
  input: InputOf<Name>
}

/** The rows of lanes' effects, whose `src` and `input` the runtime stored as a machine asked for them. */
export function effectsIn(rows: EffectRow[]): Effect[] {
  return rows as Effect[]
}

type Plan<Name extends LaneEffect = LaneEffect> = Call<Name> | Wait<Name> | Write<Name>

export type Call<Name extends LaneEffect = LaneEffect> = {
  do: "call"
  members: Effect<Name>[]
  to: Address
  data: Hex
  /** Enough gas where the call cannot be simulated, because an earlier one to the same contract is on its way. */
  gas: bigint
  /** Takes what the call counts on, in the database transaction that gives it its nonce. */
  reserve?(turn: Turn): Promise<void>
}

/** Effects that must wait for what is on its way. */
export type Wait<Name extends LaneEffect = LaneEffect> = { do: "wait"; effects: Effect<Name>[] }

/** What is written down instead of a call, in one database transaction; then what waits is planned anew. */
export type Write<Name extends LaneEffect = LaneEffect> = {
  do: "write"
  /** The effects that this closes. Without any, it must change what is planned next. */
  taken: Effect<Name>[]
  write(turn: Turn): Promise<void>
  /** A line for the operator's log. */
  warning: [fields: Record<string, unknown>, message: string] | null
}

/** A transaction's effects with the receipt that tells what became of them. */
export type Mined<Name extends LaneEffect = LaneEffect> = {
  transaction: TransactionRow
  effects: Effect<Name>[]
  receipt: TransactionReceipt
}

/** `again`: it achieved nothing, though nothing on chain stands against it, and is to be planned anew. */
export type JobResult<Name extends LaneEffect = LaneEffect> =
  | { output: OutputOf<Name> }
  | { error: EffectFailure }
  | "again"

/** How often anything is planned that achieves nothing for a reason that nobody knows. */
export const maxPlans = 5

export function isOutput<Name extends LaneEffect>(
  result: JobResult<Name> | undefined,
): result is { output: OutputOf<Name> } {
  return result !== undefined && result !== "again" && "output" in result
}
