import { and, eq, inArray, isNull } from "drizzle-orm"
import { collections, effects } from "../../db/schema.ts"
import { laneQueue } from "../../platform/queues.ts"
import type { ConnectedChain } from "../chain/chains.ts"
import type { Effect } from "../jobs/job.ts"
import { type HeldLane, inLane, type Lane } from "./held-lane.ts"
import { assertLease, type Lease } from "./leases.ts"

/**
 * Returns the waiting effects that belong to this lane under the present keys. Moves the others to their own lanes, as
 * after keys were added or swapped. Open transactions stay; where order matters, the other lane waits for them.
 */
export async function keepOwn(lane: HeldLane, waiting: Effect[]): Promise<Effect[]> {
  const { lane_id } = lane.lease
  const byLane = Map.groupBy(waiting, createLaneOf(lane.chain))
  for (const [laneId, moved] of byLane) if (laneId !== lane_id) await moveTo(lane, lane.lease, laneId, moved)
  return byLane.get(lane_id) ?? []
}

/**
 * Returns a function that names the lane of an effect under the present keys. Many effects share a collection, whose id
 * takes long to hash, so each collection is hashed once.
 */
export function createLaneOf(chain: ConnectedChain): (effect: Effect) => string {
  const ofCollections = new Map<string, string>()
  return ({ input }) => {
    if (!("collection_id" in input)) return chain.ownershipLaneId(input.unit_id)
    const { collection_id } = input
    const laneId = ofCollections.get(collection_id) ?? chain.issuanceLaneId(collection_id)
    ofCollections.set(collection_id, laneId)
    return laneId
  }
}

/** Moves effects without a transaction, and their collections, to another lane. */
export async function moveTo(
  lane: Pick<Lane, "context">,
  lease: Lease,
  laneId: string,
  moved: Effect[],
): Promise<void> {
  const { lane_id } = lease
  const ids = moved.map(({ id }) => id)
  const collectionIds = moved.flatMap(({ input }) => ("collection_id" in input ? [input.collection_id] : []))
  await inLane(lane, async (turn) => {
    await assertLease(turn, lease)
    await turn.tx
      .update(effects)
      .set({ queue: laneQueue(laneId) })
      .where(and(inArray(effects.id, ids), eq(effects.status, "open"), isNull(effects.transaction_id)))
    await turn.tx
      .update(collections)
      .set({ lane_id: laneId })
      .where(and(inArray(collections.id, [...new Set(collectionIds)]), eq(collections.lane_id, lane_id)))
    turn.wake(laneQueue(laneId))
  })
  lane.context.log.info(
    { lane_id, to_lane_id: laneId, effects: ids.length },
    "waiting work was moved to another lane",
  )
}
