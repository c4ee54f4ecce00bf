import { lanes } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { laneQueue } from "../../platform/queues.ts"
import { OperatorRefusal } from "./refusal.ts"

/**
 * Says that the database is a back-up that was restored: every lane takes its nonces from the chain behind those that
 * forgotten transactions may have, and nothing new is sent before all of these are used. Throws `OperatorRefusal` where
 * there is no lane.
 */
export async function noteRestored(turn: Turn): Promise<{ lane_ids: string[] }> {
  const rows = await turn.tx
    .update(lanes)
    .set({ status: "open", reason: null, next_nonce: null, restored_at: turn.at })
    .returning({ id: lanes.id })
  if (rows.length === 0)
    throw new OperatorRefusal(
      "not_found.resource",
      "no worker has ever run with this database: see that DATABASE_URL leads to the one that was restored",
    )
  for (const { id } of rows) turn.wake(laneQueue(id))
  return { lane_ids: rows.map(({ id }) => id) }
}
