import { and, asc, desc, eq, gt, inArray, isNotNull, lt } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type EventRow, events } from "../../db/event-schema.ts"
import { type Page, type PageOf, pageBy, pageOf } from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { canonicalId } from "../../platform/fields.ts"
import { parseId } from "../../platform/ids.ts"

/** Which events to return. */
export type EventFilter = {
  type?: string | undefined
  unit_id?: string | undefined
  collection_id?: string | undefined
  is_test?: boolean | undefined
}

/** Returns one of the caller's own events. Throws `event.not_found`. */
export async function getEvent(queries: Queries, caller: Caller, eventId: string): Promise<EventRow> {
  const id = parseId(eventId)
  const [event] = id
    ? await queries
        .select()
        .from(events)
        .where(and(eq(events.id, id), eq(events.organization_id, caller.organization_id)))
    : []
  if (!event) throw new ApiError("event.not_found")
  return event
}

/**
 * Lists the feed, newest first. With `after`, lists the events after that one, oldest first; all stored ones for `0`. A
 * reader that continues from each page's last event misses and repeats nothing. Throws `validation.failed` on `after`.
 */
export async function listEvents(
  queries: Queries,
  caller: Caller,
  { after, page, ...filter }: EventFilter & { after?: string | undefined; page: Page },
): Promise<PageOf<EventRow>> {
  if (after !== undefined) {
    // A later page of the same list continues from the last event of the previous one.
    const from = page.after
      ? await positionOfEvent(queries, caller, page.after.id, "cursor")
      : await positionAfter(queries, caller, after)
    const rows = await eventsAfter(queries, caller, { ...filter, position: from, limit: page.limit + 1 })
    return pageOf(rows, page.limit)
  }
  // By position and not by id: meanwhile the event may have been deleted, and older ones kept for an endpoint.
  const before = page.after ? Number(page.after.id) : undefined
  const rows = await newestEvents(queries, { ...wanted(caller, filter), before, limit: page.limit + 1 })
  return pageBy(rows, page.limit, ({ position }) => `${position}`)
}

const newestEvents = query((db, { before, limit, ...given }: Given<Wanted & Newest>) =>
  db
    .select()
    .from(events)
    .where(and(isWanted(given), isNotNull(events.position), before && lt(events.position, before)))
    .orderBy(desc(events.position))
    .limit(limit),
)

type Newest = { before: number | undefined; limit: number }

/** Returns the events after a position, oldest first. */
export async function eventsAfter(
  queries: Queries,
  caller: Caller,
  { position, limit, ...filter }: EventFilter & Next,
): Promise<EventRow[]> {
  return await nextEvents(queries, { ...wanted(caller, filter), position, limit })
}

type Next = { position: number; limit: number }

const nextEvents = query((db, { position, limit, ...given }: Given<Wanted & Next>) =>
  db
    .select()
    .from(events)
    .where(and(isWanted(given), gt(events.position, position)))
    .orderBy(asc(events.position))
    .limit(limit),
)

/** Returns which of some organizations have events after a position. */
export async function organizationsWithEventsAfter(
  queries: Queries,
  organizationIds: string[],
  position: number,
): Promise<Set<string>> {
  const isOne = and(inArray(events.organization_id, organizationIds), gt(events.position, position))
  const rows = await queries.selectDistinct({ id: events.organization_id }).from(events).where(isOne)
  return new Set(rows.map(({ id }) => id))
}

/** Returns the position of the event `after`; 0 for `0`. Throws `validation.failed` on `after`. */
export async function positionAfter(queries: Queries, caller: Caller, after: string): Promise<number> {
  return after === "0" ? 0 : await positionOfEvent(queries, caller, canonicalId(after, "after"), "after")
}

/** Returns the position of a `Last-Event-ID`. Throws `validation.failed` on `after`, with the header's name. */
export async function positionAfterLast(
  queries: Queries,
  caller: Caller,
  lastEventId: string,
): Promise<number> {
  if (lastEventId === "0") return 0
  const id = parseId(lastEventId)
  const [event] = id ? await placeOf(queries, { id, organization_id: caller.organization_id }) : []
  if (!event?.position)
    throw fieldError(
      "after",
      "the header Last-Event-ID names an event that is not kept: start again with 0 and skip the events that you know",
    )
  return event.position
}

/** A place in the feed: after this event, or at the beginning, whose id is `0`. */
export type Place = { id: string; position: number }

/** Returns the place after the organization's newest event. */
export async function newestPlace(queries: Queries, caller: Caller): Promise<Place> {
  const [newest] = await queries
    .select({ id: events.id, position: events.position })
    .from(events)
    .where(and(eq(events.organization_id, caller.organization_id), isNotNull(events.position)))
    .orderBy(desc(events.position))
    .limit(1)
  return { id: newest?.id ?? "0", position: newest?.position ?? 0 }
}

async function positionOfEvent(queries: Queries, caller: Caller, id: string, field: string): Promise<number> {
  const [event] = await placeOf(queries, { id, organization_id: caller.organization_id })
  if (!event?.position)
    throw fieldError(
      field,
      "names an event that is not kept: start again with after=0 and skip the events that you know",
    )
  return event.position
}

const placeOf = query((db, { id, organization_id }: Given<{ id: string; organization_id: string }>) =>
  db
    .select({ position: events.position })
    .from(events)
    .where(and(eq(events.id, id), eq(events.organization_id, organization_id))),
)

type Wanted = EventFilter & { organization_id: string }

function wanted(caller: Caller, { type, unit_id, collection_id, is_test }: EventFilter): Wanted {
  return {
    organization_id: caller.organization_id,
    type,
    unit_id: unit_id === undefined ? undefined : canonicalId(unit_id, "unit_id"),
    collection_id: collection_id === undefined ? undefined : canonicalId(collection_id, "collection_id"),
    is_test,
  }
}

function isWanted({ organization_id, type, unit_id, collection_id, is_test }: Given<Wanted>) {
  return and(
    eq(events.organization_id, organization_id),
    type && eq(events.type, type),
    unit_id && eq(events.unit_id, unit_id),
    collection_id && eq(events.collection_id, collection_id),
    is_test && eq(events.is_test, is_test),
  )
}
