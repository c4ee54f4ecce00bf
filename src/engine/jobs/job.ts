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
  /** The failure for a revert that no waiting mends; null where waiting may. */
  refusal(reason: string): EffectFailure | null
  /** What did the work before, if the chain refuses to do it again; null where nothing did. */
  earlier?(chain: ConnectedChain, queries: Queries, effect: Effect<Name>): Promise<Earlier<Name> | null>
  /**
   * Whether an error may pass, because of what is not final yet, which a node that is behind lacks, or because of
   * another effect of the same call.
   */
  mayPass?(queries: Queries, effect: Effect<Name>, reason: string): Promise<boolean>
  /** Why a call that would succeed must not be sent now; null where it may. */
  hold?(chain: ConnectedChain, queries: Queries, effects: Effect<Name>[]): Promise<string | null>
  /** Set where effects whose transaction lost its nonce are planned anew, not sent as they were. */
  plansAnew?: true
  /** Judges a receipt at the confirmation depth: one result for each effect, in order. */
  results(chain: ConnectedChain, queries: Queries, mined: Mined<Name>): Promise<JobResult<Name>[]>
  /** What the results change besides the effects' own actors, in the same database transaction. */
  afterwards?(turn: Turn, mined: Mined<Name>, results: JobResult<Name>[]): Promise<void>
  /** The same for effects that failed because the chain refuses them. */
  afterRefusal?(turn: Turn, ended: Effect<Name>[]): Promise<void>
  /** Records another transaction for a result that was given, after a reorganization moved it there. */
  restate?(turn: Turn, effect: Effect<Name>, transactionHash: string): Promise<void>
  /** Effects of one line keep their order: one that is put off holds up the rest. */
  lineOf?(effect: Effect<Name>): string
  /** The event that tells an effect's actor that its transaction is on its way. */
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

/** The kind of a transaction that only uses up its nonce, which no effect asked for. */
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

/** An effect's row, with its input typed as its machine declares. */
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
  /** Gas for when the call cannot be simulated, as an earlier one to the same contract is on its way. */
  gas: bigint
  /** Reserves what the call relies on, in the database transaction that gives it its nonce. */
  reserve?(turn: Turn): Promise<void>
}

/** Effects that must wait for what is on its way. */
export type Wait<Name extends LaneEffect = LaneEffect> = { do: "wait"; effects: Effect<Name>[] }

/** What is written instead of a call, in one database transaction; then the rest is planned anew. */
export type Write<Name extends LaneEffect = LaneEffect> = {
  do: "write"
  /** The effects that this closes. With none, it must change what is planned next. */
  taken: Effect<Name>[]
  write(turn: Turn): Promise<void>
  /** A line for the operator's log. */
  warning: [fields: Record<string, unknown>, message: string] | null
}

/** A transaction and its effects, with the receipt that decides them. */
export type Mined<Name extends LaneEffect = LaneEffect> = {
  transaction: TransactionRow
  effects: Effect<Name>[]
  receipt: TransactionReceipt
}

/** `again`: it achieved nothing, though nothing on chain prevents it, and is to be planned anew. */
export type JobResult<Name extends LaneEffect = LaneEffect> =
  | { output: OutputOf<Name> }
  | { error: EffectFailure }
  | "again"

/** How often work is planned that achieves nothing for an unknown reason. */
export const maxPlans = 5

export function isOutput<Name extends LaneEffect>(
  result: JobResult<Name> | undefined,
): result is { output: OutputOf<Name> } {
  return result !== undefined && result !== "again" && "output" in result
}
