import { and, eq, inArray } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { type Given, query } from "../../db/query.ts"
import { transactions } from "../../db/schema.ts"
import { newestConfirmed } from "../chain/headers.ts"
import { unlessForgotten } from "../chain/old-state.ts"
import { CallReverted } from "../chain/rpc.ts"
import type { Job } from "../jobs/job.ts"
import type { HeldLane } from "./held-lane.ts"

/**
 * Whether what a contract refuses now is refused for good: so deep that no reorganization of fewer blocks than the
 * confirmation depth changes that, and by none of its bytes that are out already, which one may put elsewhere.
 */
export async function isRefusedAtDepth(lane: HeldLane, job: Job, call: ContractCall): Promise<boolean> {
  const { to, data } = call
  const sent = await sentBefore(lane.context.db.read, { lane_id: lane.lease.lane_id, to, call: data })
  if (sent.length > 0) return false
  return await isRefusedAt(lane, job, call, await newestConfirmed(lane.chain, lane.head))
}

/** Whether a contract refuses a call for good at a block; a node that has forgotten so old a state stands against nothing. */
export async function isRefusedAt(
  { chain, signer }: HeldLane,
  job: Job,
  { to, data }: ContractCall,
  blockNumber: bigint,
): Promise<boolean> {
  if (blockNumber < 0n) return false
  try {
    const ask = () => chain.rpc.call({ account: signer.address, to, data, blockNumber })
    return (await unlessForgotten(ask)) === null
  } catch (error) {
    if (error instanceof CallReverted) return job.refusal(error.reason) !== null
    throw error
  }
}

type ContractCall = { to: Address; data: Hex }

/** Those whose results were given and that are not final. */
const sentBefore = query((db, { lane_id, to, call }: Given<{ lane_id: string; to: string; call: string }>) =>
  db
    .select({ id: transactions.id })
    .from(transactions)
    .where(
      and(
        eq(transactions.lane_id, lane_id),
        inArray(transactions.status, ["confirmed", "reverted"]),
        eq(transactions.to, to),
        eq(transactions.call, call),
      ),
    )
    .limit(1),
)
