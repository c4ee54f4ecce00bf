import { lanes, organizations } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { laneQueue } from "../../platform/queues.ts"
import { OperatorRefusal } from "./refusal.ts"

/**
 * Notes that the database is a restored back-up: lanes take nonces after those of forgotten transactions, and send
 * nothing new until these are used up. Throws `OperatorRefusal` if nothing can ever have been sent.
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
      `this database has no ${organization ? "lane" : "organization"}, so nothing was ever sent with it: check that DATABASE_URL is that of the restored one`,
    )
  for (const { id } of rows) turn.wake(laneQueue(id))
  return { lane_ids: rows.map(({ id }) => id) }
}
