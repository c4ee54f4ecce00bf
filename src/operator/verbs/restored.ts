import { lanes, organizations } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { laneQueue } from "../../platform/queues.ts"
import { OperatorRefusal } from "./refusal.ts"

/**
 * Says that the database is a back-up that was restored: every lane takes its nonces from the chain behind those that
 * forgotten transactions may have, and nothing new is sent before all of these are used. Throws `OperatorRefusal` where
 * nothing can have been sent. Lanes say nothing of that: whoever opens a database makes those of its keys.
 */
export async function noteRestored(turn: Turn): Promise<{ lane_ids: string[] }> {
  const rows = await turn.tx
    .update(lanes)
    .set({ status: "open", reason: null, next_nonce: null, restored_at: turn.at })
    .returning({ id: lanes.id })
  const [organization] = await turn.tx.select({ id: organizations.id }).from(organizations).limit(1)
  if (rows.length === 0 || !organization)
    throw new OperatorRefusal(
      "not_found.resource",
      `this database has no ${organization ? "lane" : "organization"}, so nothing was ever sent with it: see that DATABASE_URL leads to the one that was restored`,
    )
  for (const { id } of rows) turn.wake(laneQueue(id))
  return { lane_ids: rows.map(({ id }) => id) }
}
