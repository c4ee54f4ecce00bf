import type { EventRow } from "../../db/event-schema.ts"
import type { EventType } from "./types.ts"

/** Returns an event as the feed, the stream and webhooks show it. */
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
