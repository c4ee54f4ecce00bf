import { and, asc, eq, gt, gte, inArray, isNotNull, isNull, lte, type SQL, sql } from "drizzle-orm"
import type { Builder } from "../../db/database.ts"
import { events, type WebhookEndpointRow, webhookEndpoints, webhookQueue } from "../../db/event-schema.ts"
import { type Given, query } from "../../db/query.ts"
import type { Turn } from "../../db/turn.ts"
import { webhooksQueue } from "../../platform/queues.ts"

/** Positions in the feed, the first exclusive. */
type Span = { after: number; until: number }

/** Queues the events that were just assigned these positions, for every endpoint that asks for them. */
export async function queueForEndpoints(turn: Turn, organizationIds: string[], span: Span): Promise<void> {
  const asking = await askingAmong(turn.tx, { organization_ids: organizationIds })
  await Promise.all(
    asking.map(({ organization_id }) =>
      queueEvents(turn, { organization_id, status: "enabled", at: turn.at, ...span }),
    ),
  )
}

const askingAmong = query((db, { organization_ids }: Given<{ organization_ids: string[] }>) =>
  db
    .selectDistinct({ organization_id: webhookEndpoints.organization_id })
    .from(webhookEndpoints)
    .where(
      and(
        inArray(webhookEndpoints.organization_id, organization_ids),
        eq(webhookEndpoints.status, "enabled"),
      ),
    ),
)

/**
 * Queues events that happened before an endpoint was paused but got a position only now: they wait like everything
 * queued before the pause. The pause itself may not have a position yet.
 */
export async function queueBeforePauses(turn: Turn, organizationIds: string[], span: Span): Promise<void> {
  const asked = { organization_ids: organizationIds, ...span }
  const pauses = [...(await pausesAmong(turn.tx, asked)), ...(await pausesUnnumbered(turn.tx, asked))]
  for (const { organization_id, data, position } of pauses) {
    const until = position === null ? span.until : position - 1
    const endpoint_id = String(data.id)
    await queueEvents(turn, { organization_id, endpoint_id, at: turn.at, after: span.after, until })
  }
}

type OfOrganizations = { organization_ids: string[] }

const pausesAmong = query((db, { after, until, ...of }: Given<Span & OfOrganizations>) =>
  pausesWhere(db, of, and(gt(events.position, after), lte(events.position, until))),
)

const pausesUnnumbered = query((db, of: Given<OfOrganizations>) =>
  pausesWhere(db, of, isNull(events.position)),
)

function pausesWhere(db: Builder, { organization_ids }: Given<OfOrganizations>, isThere: SQL | undefined) {
  const { organization_id, data, position } = events
  const isPause = eq(events.type, "webhook_endpoint.paused")
  return db
    .select({ organization_id, data, position })
    .from(events)
    .where(and(inArray(organization_id, organization_ids), isPause, isThere))
}

/** Queues one event for an endpoint again, whatever its type. */
export async function queueAgain(
  turn: Turn,
  { id, organization_id }: WebhookEndpointRow,
  position: number,
): Promise<void> {
  const span = { after: position - 1, until: position }
  await queueEvents(turn, { organization_id, endpoint_id: id, of_any_type: true, at: turn.at, ...span })
}

type Wanted = Span & {
  organization_id: string
  at: Date
  /** Only this endpoint. */
  endpoint_id?: string
  /** Only endpoints with this status. */
  status?: string
  since?: Date
  /** If set, the types that an endpoint asks for do not matter. */
  of_any_type?: true
}

/** Earlier than any clock's time, so that a process whose clock is ahead does not make the others wait. */
export const dueAtOnce = new Date(0)

/** Leaves events that already wait for an endpoint unchanged. */
async function queueEvents(turn: Turn, wanted: Wanted): Promise<void> {
  const queued = await insertQueued(turn.tx, { ...wanted, due_at: dueAtOnce })
  if (queued.length > 0) turn.wake(webhooksQueue)
}

const lineOf = sql`coalesce(${events.unit_id}, ${events.collection_id}, ${events.id})`

/**
 * A new event is due together with the last one of its line, found without reading the others. So no worker reads
 * it before it can be delivered.
 */
const whenLineIsDue = sql`select waiting.due_at from ${webhookQueue} waiting
  where waiting.endpoint_id = ${webhookEndpoints.id} and waiting.line = ${lineOf}
  order by waiting.position desc limit 1`

const insertQueued = query((db, given: Given<Wanted & { due_at: Date }>) => {
  // In `coalesce` with a time column, Postgres infers the parameter's type; a cast would break it on SQLite.
  const timeOf = (at: unknown) => sql`coalesce(${at}, ${events.created_at})`
  return db
    .insert(webhookQueue)
    .select(
      db
        .select({
          endpoint_id: sql`${webhookEndpoints.id}`.as("endpoint_id"),
          event_id: sql`${events.id}`.as("event_id"),
          line: lineOf.as("line"),
          position: sql`${events.position}`.as("position"),
          attempts: sql`0`.as("attempts"),
          due_at: given.status
            ? sql`coalesce((${whenLineIsDue}), ${timeOf(given.due_at)})`.as("due_at")
            : timeOf(given.due_at).as("due_at"),
          last_error: sql`cast(null as text)`.as("last_error"),
          created_at: timeOf(given.at).as("created_at"),
        })
        .from(events)
        .innerJoin(webhookEndpoints, eq(webhookEndpoints.organization_id, events.organization_id))
        .where(
          and(
            eq(events.organization_id, given.organization_id),
            gt(events.position, given.after),
            lte(events.position, given.until),
            given.endpoint_id && eq(webhookEndpoints.id, given.endpoint_id),
            given.status && eq(webhookEndpoints.status, given.status),
            given.since && gte(events.created_at, given.since),
            given.of_any_type ? undefined : isWanted,
          ),
        ) as never,
    )
    .onConflictDoNothing()
    .returning({ endpoint_id: webhookQueue.endpoint_id })
})

const types = sql`cast(${webhookEndpoints.event_types} as text)`

/** A test event is for one endpoint, whatever types that asks for. */
const isWanted: SQL = sql`case when ${events.endpoint_id} is not null then ${events.endpoint_id} = ${webhookEndpoints.id}
  else ${webhookEndpoints.event_types} is null or replace(${types}, '"' || ${events.type} || '"', '') <> ${types} end`

const rowsAtOnce = 500

/** Selects the endpoints with a replay in progress. */
export const replayingEndpoints = query((db) =>
  db.select().from(webhookEndpoints).where(isNotNull(webhookEndpoints.replay_from)),
)

/**
 * Queues a part of an endpoint's replay, nothing older than `oldest`, unless another worker was faster or a new replay
 * was requested. Returns whether there may be more.
 */
export async function queueReplayStep(
  turn: Turn,
  endpoint: WebhookEndpointRow,
  oldest: Date,
): Promise<boolean> {
  const { id, organization_id, replay_from, replay_until, replay_since } = endpoint
  const span = { after: replay_from ?? 0, until: replay_until ?? 0 }
  const [last] = await turn.tx
    .select({ position: events.position })
    .from(events)
    .where(
      and(
        eq(events.organization_id, organization_id),
        gt(events.position, span.after),
        lte(events.position, span.until),
      ),
    )
    .orderBy(asc(events.position))
    .limit(1)
    .offset(rowsAtOnce - 1)
  const until = last?.position ?? span.until
  const taken = await turn.tx
    .update(webhookEndpoints)
    .set(last ? { replay_from: until } : noReplay)
    .where(
      and(
        eq(webhookEndpoints.id, id),
        eq(webhookEndpoints.replay_from, span.after),
        eq(webhookEndpoints.replay_until, span.until),
        replay_since
          ? eq(webhookEndpoints.replay_since, replay_since)
          : isNull(webhookEndpoints.replay_since),
      ),
    )
    .returning({ id: webhookEndpoints.id })
  if (taken.length === 0) return false
  await queueEvents(turn, {
    ...span,
    until,
    organization_id,
    endpoint_id: id,
    since: latest(replay_since ?? turn.at, oldest),
    at: turn.at,
  })
  return last !== undefined
}

function latest(one: Date, other: Date): Date {
  return one > other ? one : other
}

const noReplay = { replay_from: null, replay_until: null, replay_since: null }
