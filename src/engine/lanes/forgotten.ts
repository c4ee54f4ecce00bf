import { and, eq, isNotNull } from "drizzle-orm"
import { type Given, query } from "../../db/query.ts"
import { type LaneRow, lanes } from "../../db/schema.ts"
import { ChainUnreachable } from "../chain/rpc.ts"
import { hasKeyOf } from "../chain/signers.ts"
import { type Findings, nothing } from "./findings.ts"
import { type HeldLane, inLane, type LaneMemory } from "./held-lane.ts"
import { fillHoles } from "./holes.ts"
import { adoptAgain, noteOutlived } from "./leases.ts"
import { pendingNonces } from "./nonces.ts"

/**
 * After a back-up is restored, pools may hold transactions that the database does not have. The lane has skipped every
 * nonce that they can have. It fills those that no block uses with empty transactions, and sends nothing new until all
 * of them are used in a final block and the pools hold no others; so nothing is done twice. A lane without its key
 * cannot fill any: it waits until the pools have held none of its transactions for as many blocks.
 */
export async function outliveForgotten(
  lane: HeldLane,
  { next_nonce, restored_at }: LaneRow,
  memory: LaneMemory,
): Promise<Findings> {
  if (restored_at === null) return nothing
  const { account, address } = lane.signer
  const pause = account === null ? waitsForPools(address) : waitsFor(address)
  if (next_nonce === null) return { ...nothing, pause }
  try {
    const below = account === null ? await firstFree(lane) : next_nonce
    if (await areAllUsed(lane, below, memory)) {
      // Providers that were behind when nonces were skipped may not have shown all of them.
      if (account !== null && (await firstFree(lane)) > next_nonce) {
        await inLane(lane, (turn) => adoptAgain(turn, lane.lease, next_nonce))
        return { ...nothing, pause }
      }
      await inLane(lane, (turn) => noteOutlived(turn, lane.lease, next_nonce))
      return nothing
    }
    if (account === null) return { ...nothing, pause }
    const filled = await fillHoles(lane, { nonce: next_nonce, created_at: restored_at })
    return { ...filled, pause }
  } catch (error) {
    // The pause holds even if the chain is unreachable.
    if (!(error instanceof ChainUnreachable)) throw error
    return { ...nothing, pause, failure: error }
  }
}

/** Returns the nonce after all that the pools hold. */
async function firstFree(lane: HeldLane): Promise<number> {
  return Math.max(0, ...(await pendingNonces(lane)))
}

/**
 * Returns why nothing new may be sent on the chain: forgotten transactions of one lane might do the same
 * work as new ones of another lane.
 */
export async function whyToWaitForForgotten({ context, chain }: HeldLane): Promise<string | null> {
  const [restored] = await restoredOn(context.db.read, { chain_id: chain.chain_id })
  if (!restored) return null
  return hasKeyOf(chain, restored.id) ? waitsFor(restored.address) : waitsForPools(restored.address)
}

const restoredOn = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db
    .select({ id: lanes.id, address: lanes.address })
    .from(lanes)
    .where(and(eq(lanes.chain_id, chain_id), isNotNull(lanes.restored_at)))
    .limit(1),
)

function waitsFor(address: string): string {
  return `a backup was restored: nothing new is sent until every nonce that ${address} may have used since the backup is final on chain, if need be by an empty transaction; it continues by itself`
}

function waitsForPools(address: string): string {
  return `a backup was restored: nothing new is sent until the pools have had no pending transaction of ${address}, whose key is not in SIGNER_KEYS, for as many blocks as the finality depth; it continues by itself, sooner with the key`
}

/**
 * Returns whether all nonces below `below` were used by a block that is now final and has stayed in the chain since.
 */
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
