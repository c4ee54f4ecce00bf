import { Type } from "@sinclair/typebox"
import type { Queries } from "../../db/database.ts"
import { eventBody } from "../../engine/events/body.ts"
import { numberEvents } from "../../engine/events/numbering.ts"
import { flag, flagOf, listRoute } from "../../http/list.ts"
import { type Route, readRoute, streamRoute } from "../../http/route.ts"
import type { Caller } from "../../platform/caller.ts"
import { collectionId, described, pathId, unitId } from "../../platform/fields.ts"
import { eventResource, eventType } from "./model.ts"
import { getEvent, listEvents, newestPlace, type Place, positionAfter, positionAfterLast } from "./service.ts"
import { streamEvents } from "./stream.ts"

const filters = {
  type: Type.Optional(described(eventType, "Only events of this type.")),
  unit_id: Type.Optional(described(unitId, "Only events about this unit.")),
  collection_id: Type.Optional(described(collectionId, "Only events about this collection or its units.")),
  is_test: Type.Optional(flag("`true`: only events about units with a test chip; `false`: only others.")),
}

const after = Type.String({
  pattern: "^(0|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$",
  description:
    "The id of the last event that you have: returns the events after it, oldest first. `0` starts with the oldest event kept.",
  "x-message": "must be the id of an event, or 0",
})

export const eventRoutes: Route[] = [
  listRoute({
    operation: "listEvents",
    summary: "Read the feed of events",
    description:
      "All events, newest first; with `after`, oldest first. If you continue after the last event of each page, you miss none and get none twice, even if others are added meanwhile. Events are kept for 90 days unless the operator sets another period.",
    path: "/v1/events",
    credentials: ["api_key"],
    plural: "events",
    entries: "Events, newest first, or with `after` oldest first.",
    item: eventResource,
    filters: { ...filters, after: Type.Optional(after) },
    // Numbers events first, so that callers see what they have just done.
    ensure: async (context, { organization_id }) => void (await numberEvents(context, organization_id)),
    read: (context, caller, asked, page) =>
      listEvents(context.db.read, caller, { ...asked, is_test: flagOf(asked.is_test), page }),
    present: eventBody,
  }),
  streamRoute({
    operation: "streamEvents",
    summary: "Watch the feed of events",
    description:
      "The same feed as a stream of server-sent events: `id`, `event` (the type) and `data` (the event as JSON). It begins after the event in `Last-Event-ID` or `after`, otherwise with the next new event. A comment line is sent every 15 seconds.",
    path: "/v1/events/stream",
    credentials: ["api_key"],
    query: Type.Object({ ...filters, after: Type.Optional(after) }, { additionalProperties: false }),
    response: Type.String({ description: "Server-sent events." }),
    async open(context, caller, { query }, { last_event_id, stopping }) {
      await numberEvents(context, caller.organization_id)
      const { after, ...asked } = query
      const place = await placeToBegin(context.db.read, caller, last_event_id, after)
      const filter = { ...asked, is_test: flagOf(asked.is_test) }
      return streamEvents(context, caller, { ...filter, place, stopping })
    },
  }),
  readRoute({
    operation: "getEvent",
    summary: "Get an event",
    description: "One event, as it was recorded.",
    path: "/v1/events/{event_id}",
    params: { event_id: pathId("The event's id.") },
    credentials: ["api_key"],
    response: eventResource,
    errors: ["event.not_found"],
    async read(context, caller, { params }) {
      return { body: eventBody(await getEvent(context.db.read, caller, params.event_id)) }
    },
  }),
]

async function placeToBegin(
  queries: Queries,
  caller: Caller,
  lastEventId: string | null,
  after: string | undefined,
): Promise<Place> {
  if (lastEventId) return { id: lastEventId, position: await positionAfterLast(queries, caller, lastEventId) }
  if (after === undefined) return await newestPlace(queries, caller)
  return { id: after, position: await positionAfter(queries, caller, after) }
}
