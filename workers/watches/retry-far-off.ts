import { and, eq, exists, gt, isNull, sql } from "drizzle-orm"
import { webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { type Given, query } from "../../src/db/query.ts"
import { retryAll } from "../../src/engine/events/webhook-retries.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { beyondAnyWaitMilliseconds } from "../webhooks/retries.ts"

/**
 * Retries everything that waits for an endpoint where something waits longer than any retry does: a process whose clock
 * was ahead put it off.
 */
export async function retryFarOff(context: Context): Promise<void> {
  const after = new Date(context.clock().getTime() + beyondAnyWaitMilliseconds)
  for (const { id } of await endpointsPutOffBeyond(context.db.read, { after }))
    await inTurn(context, null, (turn) => retryAll(turn, id), "read committed")
}

const endpointsPutOffBeyond = query((db, { after }: Given<{ after: Date }>) => {
  const farOff = db
    .select({ one: sql`1` })
    .from(webhookQueue)
    .where(and(eq(webhookQueue.endpoint_id, webhookEndpoints.id), gt(webhookQueue.due_at, after)))
  const { id, status, retry_from } = webhookEndpoints
  return db
    .select({ id })
    .from(webhookEndpoints)
    .where(and(eq(status, "enabled"), isNull(retry_from), exists(farOff)))
})
