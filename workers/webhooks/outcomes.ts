import { and, eq, gt } from "drizzle-orm"
import {
  type WebhookDeliveryRow,
  webhookDeliveries,
  webhookEndpoints,
  webhookQueue,
} from "../../src/db/event-schema.ts"
import { unindexed } from "../../src/db/page.ts"
import { type Given, query } from "../../src/db/query.ts"
import type { Turn } from "../../src/db/turn.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import { dueAtOnce } from "../../src/engine/events/webhook-queue.ts"
import { newId } from "../../src/platform/ids.ts"
import type { DueDelivery } from "./due.ts"
import { nextAttemptAt } from "./retries.ts"
import type { Answer } from "./send.ts"

/** An attempt that is over. */
export type Attempted = { delivery: DueDelivery; answer: Answer }

/**
 * Records attempts at one endpoint: delivered events leave the queue; a failed event holds up its line until its next
 * attempt; the last failed attempt pauses the endpoint.
 */
export async function recordOutcomes(turn: Turn, endpointId: string, attempted: Attempted[]): Promise<void> {
  const [endpoint] = await knownEndpoint(turn.tx, { id: endpointId })
  // The endpoint was deleted in the meantime.
  if (!endpoint) return
  await Promise.all(attempted.map((each) => noteAttempt(turn, endpointId, each)))
  for (const { delivery, answer } of attempted)
    if (answer.error !== null) await putOff(turn, endpointId, delivery, answer.error)
}

async function noteAttempt(turn: Turn, endpoint_id: string, { delivery, answer }: Attempted): Promise<void> {
  const { error, response_status, milliseconds } = answer
  const event_id = delivery.event.id
  const noted = insertDelivery(turn.tx, {
    id: newId(),
    endpoint_id,
    event_id,
    attempt: delivery.attempts + 1,
    status: error === null ? "delivered" : "failed",
    response_status,
    error,
    milliseconds,
    created_at: turn.at,
  })
  if (error !== null) return void (await noted)
  const { line } = delivery
  await Promise.all([
    noted,
    leaveQueue(turn.tx, { endpoint_id, event_id }),
    makeLineDue(turn.tx, { endpoint_id, line, at: turn.at, due_at: dueAtOnce }),
  ])
}

/** Makes events due that were put off behind an earlier attempt, which has succeeded since. */
const makeLineDue = query(
  (
    db,
    { endpoint_id, line, at, due_at }: Given<{ endpoint_id: string; line: string; at: Date; due_at: Date }>,
  ) =>
    db
      .update(webhookQueue)
      .set({ due_at })
      .where(
        and(
          eq(webhookQueue.endpoint_id, endpoint_id),
          eq(webhookQueue.line, line),
          // Through the index on `due_at` the planner would read everything that waits for the endpoint.
          gt(unindexed(webhookQueue.due_at), at),
        ),
      ),
)

const knownEndpoint = query((db, { id }: Given<{ id: string }>) =>
  db.select({ id: webhookEndpoints.id }).from(webhookEndpoints).where(eq(webhookEndpoints.id, id)),
)

const insertDelivery = query((db, given: Given<WebhookDeliveryRow>) =>
  db.insert(webhookDeliveries).values(given),
)

const leaveQueue = query((db, given: Given<{ endpoint_id: string; event_id: string }>) =>
  db
    .delete(webhookQueue)
    .where(and(eq(webhookQueue.endpoint_id, given.endpoint_id), eq(webhookQueue.event_id, given.event_id))),
)

/** Counts a failed attempt once, even if another worker made one at the same time. */
async function putOff(turn: Turn, endpointId: string, delivery: DueDelivery, error: string): Promise<void> {
  const { event, line, attempts } = delivery
  const due_at = nextAttemptAt(turn.at, attempts + 1, Math.random())
  const [counted] = await turn.tx
    .update(webhookQueue)
    .set({ attempts: attempts + 1, last_error: error })
    .where(
      and(
        eq(webhookQueue.endpoint_id, endpointId),
        eq(webhookQueue.event_id, event.id),
        eq(webhookQueue.attempts, attempts),
      ),
    )
    .returning({ event_id: webhookQueue.event_id })
  if (!counted) return
  if (due_at === null) {
    await sendEvent(turn, endpointId, { type: "GAVE_UP", last_error: error })
    return
  }
  // The whole line waits with it, so that no worker reads events that cannot be sent yet.
  await turn.tx
    .update(webhookQueue)
    .set({ due_at })
    .where(and(eq(webhookQueue.endpoint_id, endpointId), eq(webhookQueue.line, line)))
}
