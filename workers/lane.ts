import type { ConnectedChain } from "../src/chain/chains.ts"
import {
  adoptNonce,
  haltLane,
  type Lease,
  type LeasedLane,
  releaseLease,
  takeLease,
} from "../src/chain/lanes.ts"
import { reach } from "../src/chain/rpc.ts"
import type { Signer } from "../src/chain/signers.ts"
import { watchedTransactions } from "../src/chain/transactions.ts"
import { type Context, inTurn } from "../src/context.ts"
import type { Turn } from "../src/db/turn.ts"
import { advanceTransaction } from "./advance-transactions.ts"
import { sendWaitingEffects } from "./send-effects.ts"

/** One signer on one chain: who sends, and for whom in this process. */
export type Lane = {
  context: Context
  chain: ConnectedChain
  signer: Signer
  owner: string
  /** The newest block at which everything on its way was looked at. */
  seen_head?: bigint
}

/** A lane that is held, at a block. */
export type HeldLane = Lane & { lease: Lease; head: bigint }

/**
 * One round of a lane: what is on its way is watched, confirmed and sent again; then waiting effects become
 * transactions. May be cut off anywhere and run again: each step finds what the one before it stored.
 */
export async function tickLane(lane: Lane): Promise<void> {
  const leased = await inTurn(lane.context, null, (turn) => takeLease(turn, lane.signer.lane_id, lane.owner))
  if (!leased) return
  const head = await reach(() => lane.chain.rpc.getBlockNumber({ cacheTime: 0 }))
  const held = { ...lane, lease: leased.lease, head }
  await requireKnownNonce(held, leased)

  const watched = await watchedTransactions(lane.context.db.read, leased.lease.lane_id)
  const lowestOpen = watched.find(({ block_hash }) => block_hash === null)
  for (const transaction of watched)
    if (head !== lane.seen_head || transaction.status === "allocated")
      await advanceTransaction(held, transaction, transaction === lowestOpen)
  lane.seen_head = head
  if (leased.lane.status !== "halted") await sendWaitingEffects(held)
}

/** Gives the lane back at the end, so that its next holder need not wait for the lease to run out. */
export async function leaveLane(lane: Lane): Promise<void> {
  await inTurn(lane.context, null, async (turn) => {
    const leased = await takeLease(turn, lane.signer.lane_id, lane.owner)
    if (leased) await releaseLease(turn, leased.lease)
  })
}

/** A nonce that the chain knows and the database does not means that somebody else uses the key: the lane halts. */
async function requireKnownNonce(lane: HeldLane, { lane: row }: LeasedLane): Promise<void> {
  const { address } = lane.signer
  const used = await reach(() => lane.chain.rpc.getTransactionCount({ address, blockTag: "latest" }))
  if (row.next_nonce === null) {
    const pending = await reach(() => lane.chain.rpc.getTransactionCount({ address, blockTag: "pending" }))
    return await inLane(lane, (turn) => adoptNonce(turn, lane.lease, Math.max(used, pending)))
  }
  if (used <= row.next_nonce) return
  const reason = `the chain has ${used} transactions of ${address}, the database knows ${row.next_nonce}: stop whoever else uses the key, then retry the lane`
  if (row.status !== "halted") await inLane(lane, (turn) => haltLane(turn, lane.lease, reason))
  throw new Error(reason)
}

/** One database transaction of a lane's own work, which no request caused. */
export function inLane<T>(lane: Lane, work: (turn: Turn) => Promise<T>): Promise<T> {
  return inTurn(lane.context, null, work)
}
