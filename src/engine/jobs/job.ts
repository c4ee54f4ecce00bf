import type { Address, Hex, TransactionReceipt } from "viem"
import type { EffectFailure } from "../../../machines/failures.ts"
import type { Queries } from "../../db/database.ts"
import type { EffectRow, TransactionRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { InputOf, LaneEffect, OutputOf } from "../actors/effects.ts"
import type { ConnectedChain } from "../chain/chains.ts"

/** How effects of one kind become transactions, and what a transaction's receipt means for them. */
export type Job<Name extends LaneEffect = LaneEffect> = {
  /** Plans the next step for the first waiting effect and those that go with it; `waiting` is oldest first. */
  plan(
    chain: ConnectedChain,
    queries: Queries,
    waiting: [Effect<Name>, ...Effect<Name>[]],
  ): Promise<Plan<Name>>
  /** Returns the failure for a revert that waiting does not fix; null if waiting may. */
  refusal(reason: string): EffectFailure | null
  /** Returns which transaction already did the work, if the chain refuses to do it again; null if there is none. */
  earlier?(chain: ConnectedChain, queries: Queries, effect: Effect<Name>): Promise<Earlier<Name> | null>
  /**
   * Returns whether the revert may go away: because of something not final yet, which a node that is behind lacks, or
   * because another effect of the same call causes it.
   */
  mayPass?(queries: Queries, effect: Effect<Name>, reason: string): Promise<boolean>
  /**
   * Returns why a call that would succeed must not be sent now; null if it may be sent. It may contain work that now has
   * another transaction, or none.
   */
  hold?(chain: ConnectedChain, queries: Queries, call: { to: string; data: string }): Promise<string | null>
  /**
   * Returns what the chain lacks for all of this work, which was undone: its call would succeed without effect. Null if
   * some of it can be done.
   */
  lack?(chain: ConnectedChain, queries: Queries, undone: Planned<Name>): Promise<string | null>
  /** If set, effects whose transaction lost its nonce are planned again instead of sent again unchanged. */
  plansAnew?: true
  /** Judges a receipt at the confirmation depth: one result for each effect, in order. */
  results(chain: ConnectedChain, queries: Queries, mined: Mined<Name>): Promise<JobResult<Name>[]>
  /** Makes the changes beyond the effects' own actors, in the database transaction that applies the results. */
  afterwards?(turn: Turn, mined: Mined<Name>, results: JobResult<Name>[]): Promise<void>
  /** Like `afterwards`, for effects that failed because the chain refuses them. */
  afterRefusal?(turn: Turn, ended: Effect<Name>[]): Promise<void>
  /**
   * Gives back what the plan's `reserve` took, in the database transaction that takes back the nonce of a transaction
   * that was never signed.
   */
  release?(turn: Turn, planned: Planned<Name>): Promise<void>
  /** Records another transaction for a result that was already applied, after a reorganization moved the work there. */
  restate?(turn: Turn, effect: Effect<Name>, transactionHash: string): Promise<void>
  /**
   * Returns the line of an effect. Effects of one line keep their order: one that is delayed delays those behind it.
   */
  lineOf?(effect: Effect<Name>): string
  /** The type of the event that tells an effect's actor that its transaction was sent. */
  submittedEvent?: string
}

/** What an earlier transaction did, and its block. */
type Earlier<Name extends LaneEffect> = { output: OutputOf<Name>; block_number: number }

/** Returns the transaction of a log or receipt as an effect's output, with its block. */
export function doneBy({ transactionHash, blockNumber }: { transactionHash: string; blockNumber: bigint }) {
  return { output: { transaction_hash: transactionHash }, block_number: Number(blockNumber) }
}

/** A job for every effect that machines assign to lanes. */
export type Jobs = { [Name in LaneEffect]: Job<Name> }

/** The kind of a transaction that only uses up its nonce, for no effect. */
export const useUpNonce = "useUpNonce"

const usingUp: Job = {
  plan: async (_chain, _queries, waiting) => ({ do: "wait", effects: waiting }),
  refusal: () => null,
  results: async () => [],
}

/** Returns the job for an effect's `src`, which is also its transaction's `kind`. */
export function jobFor(jobs: Jobs, name: string): Job {
  if (name === useUpNonce) return usingUp
  if (!isLaneEffect(jobs, name)) throw new Error(`there is no job for ${name}`)
  return jobs[name]
}

function isLaneEffect(jobs: Jobs, name: string): name is LaneEffect {
  return Object.hasOwn(jobs, name)
}

/** An effect's row, with its input typed as its machine declares it. */
export type Effect<Name extends LaneEffect = LaneEffect> = Omit<EffectRow, "src" | "input"> & {
  src: Name
  input: InputOf<Name>
}

/** Casts the rows of effects in lane queues: the runtime stored `src` and `input` as the machines declared them. */
export function effectsIn(rows: EffectRow[]): Effect[] {
  return rows as Effect[]
}

type Plan<Name extends LaneEffect = LaneEffect> = Call<Name> | Wait<Name> | Write<Name>

export type Call<Name extends LaneEffect = LaneEffect> = {
  do: "call"
  members: Effect<Name>[]
  to: Address
  data: Hex
  /** The gas limit if the call cannot be simulated because an earlier call to the same contract is still open. */
  gas: bigint
  /** Reserves what the call relies on, in the database transaction that assigns its nonce. */
  reserve?(turn: Turn): Promise<void>
}

/** Effects that must wait for transactions still open. */
export type Wait<Name extends LaneEffect = LaneEffect> = { do: "wait"; effects: Effect<Name>[] }

/** Changes to the database instead of a call, in one database transaction; the rest is planned again afterwards. */
export type Write<Name extends LaneEffect = LaneEffect> = {
  do: "write"
  /** The effects that this closes. If there are none, the write must change what is planned next. */
  taken: Effect<Name>[]
  write(turn: Turn): Promise<void>
  /** A message for the operator's log. */
  warning: [fields: Record<string, unknown>, message: string] | null
}

/** A transaction and its effects. */
export type Planned<Name extends LaneEffect = LaneEffect> = {
  transaction: TransactionRow
  effects: Effect<Name>[]
}

/** A transaction and its effects, with the receipt that decides their results. */
export type Mined<Name extends LaneEffect = LaneEffect> = Planned<Name> & { receipt: TransactionReceipt }

/**
 * `block_number`: null if the receipt's own events show the output; otherwise the block that does, which is read by its
 * number, maybe on another fork than the receipt's. `again`: the transaction achieved nothing, although nothing on chain
 * prevents it, so the effect is planned again.
 */
export type JobResult<Name extends LaneEffect = LaneEffect> =
  | { output: OutputOf<Name>; block_number: number | null }
  | { error: EffectFailure }
  | "again"

/** How many times work is planned that achieves nothing for an unknown reason. */
export const maxPlans = 5

export function isOutput<Name extends LaneEffect>(
  result: JobResult<Name> | undefined,
): result is Extract<JobResult<Name>, { output: unknown }> {
  return result !== undefined && result !== "again" && "output" in result
}
