import type { Address, Hex } from "viem"
import type { ConnectedChain } from "../chain/chains.ts"
import { callsIn } from "../chain/desk.ts"
import { newestConfirmed } from "../chain/headers.ts"
import { unlessForgotten } from "../chain/old-state.ts"
import { CallReverted, ChainUnreachable } from "../chain/rpc.ts"
import type { Job } from "../jobs/job.ts"
import { isSentBefore } from "../jobs/sent-before.ts"
import type { HeldLane } from "./held-lane.ts"

/**
 * Returns whether a call that a contract refuses now is refused for good: at the confirmation depth, too, and with no
 * bytes sent that make this call, which a reorganization may move to where they succeed.
 */
export async function isRefusedAtDepth(lane: HeldLane, job: Job, call: ContractCall): Promise<boolean> {
  if (await isSentBefore(lane.context.db.read, lane.chain.chain_id, call)) return false
  const confirmed = await newestConfirmed(lane.chain, lane.head)
  try {
    return await isRefusedAt(lane, job, call, confirmed)
  } catch (error) {
    // A node is behind or cannot read older state: the call is tried again later, and holds up nothing else.
    if (error instanceof ChainUnreachable) return false
    throw error
  }
}

/**
 * Returns whether contracts refuse a call for good at a block. Each call of the desk counts by itself, as the desk
 * reverts with the reason of the last one alone.
 */
export async function isRefusedAt(
  { chain, signer }: HeldLane,
  job: Job,
  call: ContractCall,
  blockNumber: bigint,
): Promise<boolean> {
  if (blockNumber < 0n) return false
  for (const each of callsIn(call)) {
    const account = each.to === call.to ? signer.address : call.to
    if (!(await isOneRefused(chain, job, { ...each, account, blockNumber }))) return false
  }
  return true
}

/** True if the node has pruned the state: nothing then contradicts the refusal at the newest block. */
async function isOneRefused(
  { rpc }: ConnectedChain,
  job: Job,
  question: ContractCall & { account: Address; blockNumber: bigint },
): Promise<boolean> {
  try {
    const isPruned = (await unlessForgotten(() => rpc.call(question))) === null
    return isPruned
  } catch (error) {
    if (error instanceof CallReverted) return job.refusal(error.reason) !== null
    throw error
  }
}

type ContractCall = { to: Address; data: Hex }
