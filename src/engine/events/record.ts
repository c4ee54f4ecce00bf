import { type EventRow, events } from "../../db/event-schema.ts"
import { type Given, query } from "../../db/query.ts"
import type { Turn } from "../../db/turn.ts"
import { newId } from "../../platform/ids.ts"
import { eventsQueue } from "../../platform/queues.ts"
import type { EventType } from "./types.ts"

/** What an event is about, and its data. `endpoint_id`: the only webhook endpoint that it is for; null for all. */
type NewEvent = Pick<
  EventRow,
  "organization_id" | "unit_id" | "collection_id" | "is_test" | "data" | "endpoint_id"
> & { type: EventType }

/** Stores an event, in the database transaction of the change that it reports. */
export async function recordEvent(turn: Turn, event: NewEvent): Promise<EventRow> {
  const row = { ...event, id: newId(), position: null, created_at: turn.at }
  await insertEvent(turn.tx, row)
  turn.wake(eventsQueue)
  return row
}

const insertEvent = query((db, given: Given<EventRow>) => db.insert(events).values(given))
