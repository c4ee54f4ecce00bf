import { and, asc, eq, lte, sql } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type EventRow, events, webhookQueue } from "../../src/db/event-schema.ts"
import { type Given, query } from "../../src/db/query.ts"

/** An event that an endpoint is to be sent now. */
export type DueDelivery = { event: EventRow; line: string; attempts: number; last_error: string | null }

type Asked = { at: Date; limit: number }

/** What is due at an endpoint, oldest first: only the first of each line, as the others wait for it. */
export async function dueDeliveries(
  queries: Queries,
  endpointId: string,
  asked: Asked,
): Promise<DueDelivery[]> {
  return await firstsOfLines(queries, { endpoint_id: endpointId, ...asked })
}

const firstsOfLines = query((db, { endpoint_id, at, limit }: Given<Asked & { endpoint_id: string }>) => {
  // With its limit this is one index look-up each, never a join with all that waits.
  const first = sql`select queued.position from ${webhookQueue} queued where queued.endpoint_id = ${webhookQueue.endpoint_id}
    and queued.line = ${webhookQueue.line} order by queued.position limit 1`
  return db
    .select({
      event: events,
      line: webhookQueue.line,
      attempts: webhookQueue.attempts,
      last_error: webhookQueue.last_error,
    })
    .from(webhookQueue)
    .innerJoin(events, eq(events.id, webhookQueue.event_id))
    .where(
      and(
        eq(webhookQueue.endpoint_id, endpoint_id),
        lte(webhookQueue.due_at, at),
        sql`${webhookQueue.position} = (${first})`,
      ),
    )
    .orderBy(asc(webhookQueue.due_at), asc(webhookQueue.position))
    .limit(limit)
})
