import { and, asc, eq, lte, type SQL, sql } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type EventRow, events, webhookQueue } from "../../src/db/event-schema.ts"
import { unindexed } from "../../src/db/page.ts"
import { type Given, query } from "../../src/db/query.ts"

/** An event that is due at an endpoint. */
export type DueDelivery = { event: EventRow; line: string; attempts: number; last_error: string | null }

type Asked = { at: Date; limit: number }

/**
 * Returns what is due at an endpoint, oldest first: only the first event of each line, because the others wait for it.
 */
export async function dueDeliveries(
  queries: Queries,
  endpointId: string,
  asked: Asked,
): Promise<DueDelivery[]> {
  const given = { endpoint_id: endpointId, ...asked }
  const ofFew = await firstsOfFewLines(queries, given)
  return ofFew.length > 0 ? ofFew : await firstsOfLines(queries, given)
}

/**
 * Looks up the first event of each waiting line, without reading the others. Returns none if there
 * are more than `fewLines` lines.
 */
const firstsOfFewLines = query((db, { endpoint_id, at, limit }: Given<Asked & { endpoint_id: string }>) => {
  const line = (than: SQL) => sql`(select queued.line from ${webhookQueue} queued
    where queued.endpoint_id = ${endpoint_id} ${than} order by queued.line limit 1)`
  const event_id = sql`(select queued.event_id from ${webhookQueue} queued
    where queued.endpoint_id = ${endpoint_id} and queued.line = lines.line order by queued.position limit 1)`
  const lines = sql`(with recursive lines(line, number) as (
    select ${line(sql``)}, 1
    union all select ${line(sql`and queued.line > lines.line`)}, lines.number + 1
    from lines where lines.line is not null and lines.number <= ${sql.raw(String(fewLines))}
  ) select ${event_id} as event_id from lines where lines.line is not null
    and not exists (select 1 from lines where lines.line is not null and lines.number > ${sql.raw(String(fewLines))})) firsts`
  return db
    .select(delivery)
    .from(lines)
    .innerJoin(
      webhookQueue,
      // Hides the endpoint's index from the planner, which would otherwise start with everything that waits for it.
      and(
        eq(webhookQueue.event_id, sql`firsts.event_id`),
        eq(unindexed(webhookQueue.endpoint_id), endpoint_id),
      ),
    )
    .innerJoin(events, eq(events.id, webhookQueue.event_id))
    .where(lte(unindexed(webhookQueue.due_at), at))
    .orderBy(asc(webhookQueue.due_at), asc(webhookQueue.position))
    .limit(limit)
})

const fewLines = 1_000

const delivery = {
  event: events,
  line: webhookQueue.line,
  attempts: webhookQueue.attempts,
  last_error: webhookQueue.last_error,
}

const firstsOfLines = query((db, { endpoint_id, at, limit }: Given<Asked & { endpoint_id: string }>) => {
  // The limit makes this one index lookup per row, never a join with everything that waits.
  const first = sql`select queued.position from ${webhookQueue} queued where queued.endpoint_id = ${webhookQueue.endpoint_id}
    and queued.line = ${webhookQueue.line} order by queued.position limit 1`
  return db
    .select(delivery)
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
