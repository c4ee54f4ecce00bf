import { and, asc, eq, exists, inArray, lt, sql } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { events, webhookDeliveries, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { type Given, query } from "../../src/db/query.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/**
 * Deletes old events and the records of their deliveries, in short steps that block no one. Each step continues after
 * the last one, so that events kept for an endpoint are looked at once and not in every step.
 */
export async function reapEvents(context: Context): Promise<void> {
  const before = keptSince(context)
  const reap = (step: Step) => inTurn(context, null, ({ tx }) => reapSome(tx, { before, ...step }))
  for (let next: Step | null = { after: null }; next; ) next = await reap(next)
}

/** The last event that was looked at. */
type Step = { after: Mark | null }
type Mark = { created_at: Date; id: string }

/** Returns the time before which events are deleted. */
export function keptSince({ clock, config }: Pick<Context, "clock" | "config">): Date {
  return new Date(clock().getTime() - config.events_kept_days * dayMilliseconds)
}

/**
 * Deletes one step's worth. Returns where to continue if there may be more. Events that an enabled
 * endpoint has yet to be sent are kept.
 */
async function reapSome(tx: Queries, { before, after }: Step & { before: Date }): Promise<Step | null> {
  const old = await oldEvents(tx, { before, ...(after && { since: after.created_at, last: after.id }) })
  const ids = old.filter(({ is_awaited }) => !is_awaited).map(({ id }) => id)
  if (ids.length > 0) {
    await tx.delete(webhookQueue).where(inArray(webhookQueue.event_id, ids))
    await tx.delete(events).where(inArray(events.id, ids))
  }
  const noted = await deleteOldNotes(tx, { before })
  if (old.length < atOnce && noted.length < atOnce) return null
  return { after: old.at(-1) ?? after }
}

const atOnce = 500

type Asked = { before: Date; since?: Date; last?: string }

const oldEvents = query((db, { before, since, last }: Given<Asked>) => {
  const { id, created_at } = events
  const awaited = db
    .select({ one: sql`1` })
    .from(webhookQueue)
    .innerJoin(webhookEndpoints, eq(webhookEndpoints.id, webhookQueue.endpoint_id))
    .where(and(eq(webhookQueue.event_id, id), eq(webhookEndpoints.status, "enabled")))
  const mark = since && sql`(${sql.param(since, created_at)}, ${sql.param(last, id)})`
  return db
    .select({ id, created_at, is_awaited: sql<boolean>`${exists(awaited)}` })
    .from(events)
    .where(and(lt(created_at, before), mark && sql`(${created_at}, ${id}) > ${mark}`))
    .orderBy(asc(created_at), asc(id))
    .limit(atOnce)
})

const deleteOldNotes = query((db, { before }: Given<{ before: Date }>) => {
  const old = db
    .select({ id: webhookDeliveries.id })
    .from(webhookDeliveries)
    .where(lt(webhookDeliveries.created_at, before))
    .orderBy(asc(webhookDeliveries.created_at))
    .limit(atOnce)
  return db
    .delete(webhookDeliveries)
    .where(inArray(webhookDeliveries.id, old))
    .returning({ id: webhookDeliveries.id })
})

const dayMilliseconds = 24 * 60 * 60_000
