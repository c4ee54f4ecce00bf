import { and, eq, inArray, isNotNull, notExists } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { webhookDeliveries, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { query } from "../../src/db/query.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/**
 * Purges deleted webhook endpoints with everything that belongs to them, one step of each in turn. Returns "more" if
 * something is left. Where other workers were faster, they continue.
 */
export async function reapEndpoints(context: Context): Promise<"more" | undefined> {
  let isMore = false
  for (const { id } of await deletedEndpoints(context.db.read, {}))
    isMore = (await inTurn(context, null, ({ tx }) => reapSome(tx, id), "read committed")) || isMore
  return isMore ? "more" : undefined
}

const deletedEndpoints = query((db) =>
  db.select({ id: webhookEndpoints.id }).from(webhookEndpoints).where(isNotNull(webhookEndpoints.deleted_at)),
)

const rowsAtOnce = 500

/** Returns whether there may be more. */
async function reapSome(tx: Queries, endpointId: string): Promise<boolean> {
  const { event_id } = webhookQueue
  const isWaiting = eq(webhookQueue.endpoint_id, endpointId)
  const isNoted = eq(webhookDeliveries.endpoint_id, endpointId)
  const waiting = tx.select({ event_id }).from(webhookQueue).where(isWaiting).limit(rowsAtOnce)
  const noted = tx
    .select({ id: webhookDeliveries.id })
    .from(webhookDeliveries)
    .where(isNoted)
    .limit(rowsAtOnce)
  const forgotten = await tx
    .delete(webhookQueue)
    .where(and(isWaiting, inArray(event_id, waiting)))
    .returning({ event_id })
  const purged = await tx
    .delete(webhookDeliveries)
    .where(inArray(webhookDeliveries.id, noted))
    .returning({ id: webhookDeliveries.id })
  if (forgotten.length > 0 || purged.length > 0) return true
  await tx
    .delete(webhookEndpoints)
    .where(and(eq(webhookEndpoints.id, endpointId), notExists(waiting), notExists(noted)))
  return false
}
