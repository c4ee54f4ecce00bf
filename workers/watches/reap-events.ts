import { and, asc, eq, inArray, lt, notExists, sql } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { events, webhookDeliveries, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { type Given, query } from "../../src/db/query.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/** Deletes old events and what was noted of their deliveries, in steps that hold up nobody. */
export async function reapEvents(context: Context): Promise<void> {
  const before = keptSince(context)
  while (await inTurn(context, null, ({ tx }) => reapSome(tx, before)));
}

/** Events from before are deleted. */
export function keptSince({ clock, config }: Pick<Context, "clock" | "config">): Date {
  return new Date(clock().getTime() - config.events_kept_days * dayMilliseconds)
}

/** Answers whether there may be more. What an enabled endpoint is still to be sent is kept until it was. */
async function reapSome(tx: Queries, before: Date): Promise<boolean> {
  const old = await oldEvents(tx, { before })
  const ids = old.map(({ id }) => id)
  if (ids.length > 0) {
    await tx.delete(webhookQueue).where(inArray(webhookQueue.event_id, ids))
    await tx.delete(events).where(inArray(events.id, ids))
  }
  const noted = await deleteOldNotes(tx, { before })
  return ids.length === atOnce || noted.length === atOnce
}

const atOnce = 500

const oldEvents = query((db, { before }: Given<{ before: Date }>) => {
  const awaited = db
    .select({ one: sql`1` })
    .from(webhookQueue)
    .innerJoin(webhookEndpoints, eq(webhookEndpoints.id, webhookQueue.endpoint_id))
    .where(and(eq(webhookQueue.event_id, events.id), eq(webhookEndpoints.status, "enabled")))
  return db
    .select({ id: events.id })
    .from(events)
    .where(and(lt(events.created_at, before), notExists(awaited)))
    .orderBy(asc(events.created_at))
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
