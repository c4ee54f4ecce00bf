import { lanes } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { laneQueue } from "../../platform/queues.ts"

/**
 * Says that the database is a back-up that was restored: every lane takes its nonces from the chain behind those that
 * forgotten transactions may have, and nothing new is sent before all of these are used.
 */
export async function noteRestored(turn: Turn): Promise<{ lane_ids: string[] }> {
  const rows = await turn.tx
    .update(lanes)
    .set({ status: "open", reason: null, next_nonce: null, restored_at: turn.at })
    .returning({ id: lanes.id })
  for (const { id } of rows) turn.wake(laneQueue(id))
  return { lane_ids: rows.map(({ id }) => id) }
}
