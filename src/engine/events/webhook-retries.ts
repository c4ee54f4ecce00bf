import { and, asc, eq, gt, inArray, isNotNull, lte, or, type SQL } from "drizzle-orm"
import { webhookEndpoints, webhookQueue } from "../../db/event-schema.ts"
import { query } from "../../db/query.ts"
import type { Turn } from "../../db/turn.ts"
import { replaysQueue, webhooksQueue } from "../../platform/queues.ts"
import { dueAtOnce } from "./webhook-queue.ts"

/**
 * Makes everything that waits for a later attempt due at once, with attempts counted from the first again. Workers do
 * what exceeds one step; nothing is sent to the endpoint until they are done.
 */
export async function retryAll(turn: Turn, endpointId: string): Promise<void> {
  await turn.tx
    .update(webhookEndpoints)
    .set({ retry_from: beforeAll })
    .where(eq(webhookEndpoints.id, endpointId))
  if (await retryStep(turn, { id: endpointId, retry_from: beforeAll })) turn.wake(replaysQueue)
}

const beforeAll = "00000000-0000-0000-0000-000000000000"

/** Retries one event and the rest of its line, likewise. */
export async function retryLineOf(turn: Turn, endpoint_id: string, eventId: string): Promise<void> {
  const line = turn.tx
    .select({ line: webhookQueue.line })
    .from(webhookQueue)
    .where(and(eq(webhookQueue.endpoint_id, endpoint_id), eq(webhookQueue.event_id, eventId)))
  await retryWaiting(turn, endpoint_id, inArray(webhookQueue.line, line))
  turn.wake(webhooksQueue)
}

/** An endpoint whose waiting events are being made due at once: those after this id. */
type RetryingEndpoint = { id: string; retry_from: string | null }

export const retryingEndpoints = query((db) => {
  const { id, retry_from } = webhookEndpoints
  return db.select({ id, retry_from }).from(webhookEndpoints).where(isNotNull(retry_from))
})

/** Makes a part of them due, unless another worker was faster. Returns whether there may be more. */
export async function retryStep(turn: Turn, { id, retry_from }: RetryingEndpoint): Promise<boolean> {
  const after = retry_from ?? beforeAll
  const isHere = and(eq(webhookQueue.endpoint_id, id), gt(webhookQueue.event_id, after))
  const [last] = await turn.tx
    .select({ event_id: webhookQueue.event_id })
    .from(webhookQueue)
    .where(isHere)
    .orderBy(asc(webhookQueue.event_id))
    .limit(1)
    .offset(rowsAtOnce - 1)
  const taken = await turn.tx
    .update(webhookEndpoints)
    .set({ retry_from: last?.event_id ?? null })
    .where(and(eq(webhookEndpoints.id, id), eq(webhookEndpoints.retry_from, after)))
    .returning({ id: webhookEndpoints.id })
  if (taken.length === 0) return false
  await retryWaiting(
    turn,
    id,
    and(gt(webhookQueue.event_id, after), last && lte(webhookQueue.event_id, last.event_id)),
  )
  if (!last) turn.wake(webhooksQueue)
  return last !== undefined
}

const rowsAtOnce = 500

/** Skips an event due for its first attempt, which may be in progress. */
async function retryWaiting(turn: Turn, endpointId: string, which: SQL | undefined): Promise<void> {
  const isLater = or(gt(webhookQueue.attempts, 0), gt(webhookQueue.due_at, turn.at))
  await turn.tx
    .update(webhookQueue)
    .set({ attempts: 0, due_at: dueAtOnce })
    .where(and(eq(webhookQueue.endpoint_id, endpointId), which, isLater))
}
