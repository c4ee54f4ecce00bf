import { Type } from "@sinclair/typebox"
import { eventTypes } from "../../engine/events/types.ts"
import {
  collectionId,
  createdAt,
  described,
  extensible,
  id,
  nullable,
  oneOf,
  unitId,
} from "../../platform/fields.ts"

export const eventType = oneOf(eventTypes, "What happened. Types are added over time: skip unknown ones.")

export const eventResource = Type.Object(
  {
    id,
    type: extensible(eventType, "KnownEventType"),
    created_at: createdAt,
    unit_id: described(nullable(unitId), "The unit that the event is about, or null."),
    collection_id: described(nullable(collectionId), "The collection that the event is about, or null."),
    is_test: Type.Boolean({
      description:
        "Whether the event is about a unit with a test chip, or is a test event that you asked for.",
    }),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description: "The resource as a GET would have returned it at that moment.",
    }),
  },
  { title: "Event", additionalProperties: false },
)
