import type { Turn } from "../../db/turn.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import type { ConnectedChain } from "../chain/chains.ts"
import type { FeeLimits, FeeMarket } from "../chain/fees.ts"
import type { Signer } from "../chain/signers.ts"
import type { Jobs } from "../jobs/job.ts"
import type { Claimant, Lease, Rival } from "./leases.ts"
import type { Checkpoint } from "./step.ts"

/** A signer on a chain, with what it needs in this process. */
export type Lane = {
  readonly context: Context
  readonly chain: ConnectedChain
  readonly signer: Signer
  readonly claimant: Claimant
  readonly jobs: Jobs
  readonly checkpoint: Checkpoint
  readonly memory: LaneMemory
}

/** What a lane remembers between rounds; losing it only costs a few requests. */
export type LaneMemory = {
  /** The newest block at which all open transactions were looked at. */
  seen_head?: bigint
  /** When the results of transactions that are not final were last judged. */
  judged?: Judged
  /** Set once the providers have confirmed that they serve this chain. */
  is_right_chain?: boolean
  /** The holder of the lease when this process last tried to take it. */
  rival?: Rival
  /** The block at which all nonces were used that transactions lost with a restored back-up may have. */
  all_used?: { number: bigint; hash: string }
  /** The lowest cost that a node refused as too high for one transaction, in wei, and the block at which it did. */
  refused_cost?: { cost: bigint; at: bigint }
}

/** Times by the ids of transactions. */
export type Judged = ReadonlyMap<string, number>

/** A lane while its lease is held, at one block. Immutable within a round: steps return what they find. */
export type HeldLane = Readonly<Omit<Lane, "claimant" | "memory">> & {
  readonly lease: Lease
  readonly head: bigint
  /** The signer's transaction count at the newest block: all nonces below it are used. */
  readonly used_nonces: number
  /** Reads what gas costs at the block, once and only when needed. Throws `ChainUnreachable`. */
  readonly market: () => Promise<FeeMarket>
  /** What may be offered and spent: the chain's settings, or less if its nodes accept only that. */
  readonly limits: FeeLimits
}

/** Runs a database transaction for the lane's own work, which no request caused. */
export function inLane<T>({ context }: Pick<Lane, "context">, work: (turn: Turn) => Promise<T>): Promise<T> {
  return inTurn(context, null, work)
}
