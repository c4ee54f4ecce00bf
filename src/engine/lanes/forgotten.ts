import { and, eq, inArray, isNotNull } from "drizzle-orm"
import { type Given, query } from "../../db/query.ts"
import { type LaneRow, lanes } from "../../db/schema.ts"
import { ChainUnreachable } from "../chain/rpc.ts"
import { type Findings, nothing } from "./findings.ts"
import { type HeldLane, inLane, type LaneMemory } from "./held-lane.ts"
import { fillHoles } from "./holes.ts"
import { noteOutlived } from "./leases.ts"

/**
 * After a back-up was restored, pools may have transactions of which nothing is known here. The lane has left out every
 * nonce that one of them can have; what no block takes of these is used up by nothing, and nothing new is sent until all
 * are used in a block that is final. So nothing is done again while it may yet be done by what was forgotten.
 */
export async function outliveForgotten(
  lane: HeldLane,
  { next_nonce, restored_at }: LaneRow,
  memory: LaneMemory,
): Promise<Findings> {
  if (restored_at === null) return nothing
  if (next_nonce === null) return { ...nothing, pause: waitsFor(lane.signer) }
  try {
    // Whose key is gone can use up nothing.
    if (lane.signer.account === null || (await areAllUsed(lane, next_nonce, memory))) {
      await inLane(lane, (turn) => noteOutlived(turn, lane.lease, next_nonce))
      return nothing
    }
    const filled = await fillHoles(lane, { nonce: next_nonce, created_at: restored_at })
    return { ...filled, pause: waitsFor(lane.signer) }
  } catch (error) {
    // What is known of the others counts all the same.
    if (!(error instanceof ChainUnreachable)) throw error
    return { ...nothing, pause: waitsFor(lane.signer), failure: error }
  }
}

/** Why nothing new may be sent on the chain: what one lane's forgotten transactions do, another's would do again. */
export async function whyToWaitForForgotten({ context, chain }: HeldLane): Promise<string | null> {
  const withKey = chain.signers.filter(({ account }) => account !== null)
  const ids = withKey.map(({ lane_id }) => lane_id)
  const [restored] = await restoredAmong(context.db.read, { chain_id: chain.chain_id, ids })
  return restored ? waitsFor(restored) : null
}

const restoredAmong = query((db, { chain_id, ids }: Given<{ chain_id: number; ids: string[] }>) =>
  db
    .select({ id: lanes.id, address: lanes.address })
    .from(lanes)
    .where(and(eq(lanes.chain_id, chain_id), inArray(lanes.id, ids), isNotNull(lanes.restored_at)))
    .limit(1),
)

function waitsFor({ address }: { address: string }): string {
  return `a back-up was restored: nothing new is sent before all that ${address} may have sent since is mined, or used up by nothing, and final; it goes on by itself`
}

/** Whether the nonces below were used in a block that is final now and was there ever since. */
async function areAllUsed(lane: HeldLane, below: number, memory: LaneMemory): Promise<boolean> {
  const { head, used_nonces, chain } = lane
  const seen = used_nonces < below ? null : memory.all_used
  if (!seen || (await chain.headers.at(seen.number)).hash !== seen.hash) {
    delete memory.all_used
    if (used_nonces >= below) memory.all_used = { number: head, hash: (await chain.headers.at(head)).hash }
    return false
  }
  return head - seen.number + 1n >= BigInt(chain.config.finality_depth)
}
