import type { Turn } from "../../db/turn.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import type { ConnectedChain } from "../chain/chains.ts"
import type { FeeLimits, FeeMarket } from "../chain/fees.ts"
import type { Signer } from "../chain/signers.ts"
import type { Jobs } from "../jobs/job.ts"
import type { Claimant, Lease, Rival } from "./leases.ts"
import type { Checkpoint } from "./step.ts"

/** One signer on one chain, with what it needs in this process. */
export type Lane = {
  readonly context: Context
  readonly chain: ConnectedChain
  readonly signer: Signer
  readonly claimant: Claimant
  readonly jobs: Jobs
  readonly checkpoint: Checkpoint
  readonly memory: LaneMemory
}

/** What a lane remembers between rounds; losing it costs a few questions to the chain. */
export type LaneMemory = {
  /** The newest block at which everything on its way was looked at. */
  seen_head?: bigint
  /** Set once the providers have said that they serve this chain. */
  is_right_chain?: boolean
  /** Who held the lane when this process last wanted it. */
  rival?: Rival
  /** The block at which all nonces were used that transactions forgotten by a restored back-up may have. */
  all_used?: { number: bigint; hash: string }
  /** The least that a node found too much for one transaction, in wei, and the block at which it said so. */
  refused_cost?: { cost: bigint; at: bigint }
}

/** A lane while it is held, at one block. It does not change within a round: steps return what they find. */
export type HeldLane = Readonly<Omit<Lane, "claimant" | "memory">> & {
  readonly lease: Lease
  readonly head: bigint
  /** The signer's transaction count at the newest block: the nonces below it are used. */
  readonly used_nonces: number
  /** What gas costs at the block, asked for only when needed. Throws `ChainUnreachable`. */
  readonly market: () => Promise<FeeMarket>
  /** What may be offered and spent: the chain's settings, or less where its nodes accept only that. */
  readonly limits: FeeLimits
}

/** One database transaction of a lane's own work, which no request caused. */
export function inLane<T>({ context }: Pick<Lane, "context">, work: (turn: Turn) => Promise<T>): Promise<T> {
  return inTurn(context, null, work)
}
