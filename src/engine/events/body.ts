import type { EventRow } from "../../db/event-schema.ts"
import type { EventType } from "./types.ts"

/** An event as everybody is shown it: in the feed, in the stream and in webhooks. */
export function eventBody(event: EventRow) {
  return {
    id: event.id,
    type: event.type as EventType,
    created_at: event.created_at.toISOString(),
    unit_id: event.unit_id,
    collection_id: event.collection_id,
    is_test: event.is_test,
    data: event.data,
  }
}
