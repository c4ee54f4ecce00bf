import { and, asc, between, count, eq, gte, isNotNull, isNull, type SQLWrapper, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import {
  type EventRow,
  eventFeeds,
  events,
  type WebhookDeliveryRow,
  type WebhookEndpointRow,
  webhookDeliveries,
  webhookEndpoints,
} from "../../db/event-schema.ts"
import { type Page, type PageOf, pagesOf } from "../../db/page.ts"
import type { Given } from "../../db/query.ts"
import type { Turn } from "../../db/turn.ts"
import { sendEvent, startActor } from "../../engine/actors/runtime.ts"
import { recordEvent } from "../../engine/events/record.ts"
import { newSigningSecret, withNewSecret } from "../../engine/events/signing-secrets.ts"
import { queueAgain } from "../../engine/events/webhook-queue.ts"
import { retryAll, retryLineOf } from "../../engine/events/webhook-retries.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError } from "../../platform/errors.ts"
import { canonicalId } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { replaysQueue } from "../../platform/queues.ts"
import type { Secret } from "../../platform/sealing.ts"
import type { CreateWebhookEndpointBody, UpdateWebhookEndpointBody, WebhookReplay } from "./model.ts"
import { presentWebhookEndpoint } from "./present.ts"

/** An endpoint with a secret in clear text, which is shown only once. */
type EndpointWithSecret = { endpoint: WebhookEndpointRow; secret: string }

const mostEndpoints = 20

/** Creates an endpoint. `url` must come from `checkedUrl`. Throws `quota.exceeded`. */
export async function createWebhookEndpoint(
  turn: Turn,
  serviceSecret: Secret,
  caller: Caller,
  { body, url }: { body: CreateWebhookEndpointBody; url: string },
): Promise<EndpointWithSecret> {
  const [{ there } = { there: 0 }] = await turn.tx
    .select({ there: count() })
    .from(webhookEndpoints)
    .where(ofOrganization(caller))
  if (Number(there) >= mostEndpoints)
    throw new ApiError("quota.exceeded", `An organization has at most ${mostEndpoints} webhook endpoints.`)
  const id = newId()
  const secret = newSigningSecret()
  const [endpoint] = await turn.tx
    .insert(webhookEndpoints)
    .values({
      id,
      organization_id: caller.organization_id,
      url,
      event_types: body.event_types ?? null,
      description: body.description ?? null,
      status: "enabled",
      secrets: withNewSecret(serviceSecret, id, { before: [], added: secret, at: turn.at }),
      created_at: turn.at,
    })
    .returning()
  if (!endpoint) throw new Error("an inserted endpoint was not answered")
  await startActor(turn, {
    id,
    machine: "webhook-endpoint",
    organization_id: caller.organization_id,
    input: {},
  })
  return { endpoint, secret }
}

/** Returns one of the caller's own endpoints. Throws `webhook_endpoint.not_found`. */
export async function getWebhookEndpoint(
  queries: Queries,
  caller: Caller,
  endpointId: string,
): Promise<WebhookEndpointRow> {
  const [endpoint] = await queries.select().from(webhookEndpoints).where(own(caller, endpointId))
  if (!endpoint) throw new ApiError("webhook_endpoint.not_found")
  return endpoint
}

export async function listWebhookEndpoints(
  queries: Queries,
  caller: Caller,
  { page }: { page: Page },
): Promise<PageOf<WebhookEndpointRow>> {
  return await endpointsOf(queries, { organization_id: caller.organization_id }, page)
}

const endpointsOf = pagesOf(webhookEndpoints, ofOrganization)

/**
 * Changes only the given fields. `url` must come from `checkedUrl`; null keeps it. Throws `webhook_endpoint.not_found`.
 */
export async function updateWebhookEndpoint(
  turn: Turn,
  caller: Caller,
  endpointId: string,
  { body, url }: { body: UpdateWebhookEndpointBody; url: string | null },
): Promise<WebhookEndpointRow> {
  const { id, status } = await getWebhookEndpoint(turn.tx, caller, endpointId)
  const changes = {
    ...(url !== null && { url }),
    ...(body.event_types !== undefined && { event_types: body.event_types }),
    ...(body.description !== undefined && { description: body.description }),
  }
  if (Object.keys(changes).length > 0)
    await turn.tx.update(webhookEndpoints).set(changes).where(eq(webhookEndpoints.id, id))
  if (body.status === "paused" && status === "enabled") await sendEvent(turn, id, { type: "PAUSE" })
  if (body.status === "enabled" && status === "paused") await enable(turn, id)
  return await getWebhookEndpoint(turn.tx, caller, id)
}

async function enable(turn: Turn, id: string): Promise<void> {
  await sendEvent(turn, id, { type: "ENABLE" })
  await retryAll(turn, id)
}

/** Deletes an endpoint. Workers purge its queued events and deliveries. Throws `webhook_endpoint.not_found`. */
export async function deleteWebhookEndpoint(turn: Turn, caller: Caller, endpointId: string): Promise<void> {
  const { id } = await getWebhookEndpoint(turn.tx, caller, endpointId)
  await sendEvent(turn, id, { type: "DELETE" })
}

/**
 * Creates a secret for new deliveries; earlier ones also sign for 24 hours. Throws `rate_limit.exceeded` at too many.
 */
export async function rotateWebhookSecret(
  turn: Turn,
  serviceSecret: Secret,
  caller: Caller,
  endpointId: string,
): Promise<EndpointWithSecret> {
  const endpoint = await getWebhookEndpoint(turn.tx, caller, endpointId)
  const secret = newSigningSecret()
  const secrets = withNewSecret(serviceSecret, endpoint.id, {
    before: endpoint.secrets,
    added: secret,
    at: turn.at,
  })
  await turn.tx.update(webhookEndpoints).set({ secrets }).where(eq(webhookEndpoints.id, endpoint.id))
  return { endpoint: { ...endpoint, secrets }, secret }
}

/** Sends a test event to this endpoint alone. Throws `webhook_endpoint.paused`. */
export async function createWebhookTest(turn: Turn, caller: Caller, endpointId: string): Promise<EventRow> {
  const endpoint = await getWebhookEndpoint(turn.tx, caller, endpointId)
  if (endpoint.status === "paused") throw new ApiError("webhook_endpoint.paused")
  return await recordEvent(turn, {
    type: "webhook_endpoint.test",
    organization_id: caller.organization_id,
    unit_id: null,
    collection_id: null,
    is_test: true,
    data: presentWebhookEndpoint(endpoint),
    endpoint_id: endpoint.id,
  })
}

/** Lists the delivery attempts of an endpoint, newest first. */
export async function listWebhookDeliveries(
  queries: Queries,
  caller: Caller,
  endpointId: string,
  { page }: { page: Page },
): Promise<PageOf<WebhookDeliveryRow>> {
  const { id } = await getWebhookEndpoint(queries, caller, endpointId)
  return await deliveriesTo(queries, { endpoint_id: id }, page)
}

const deliveriesTo = pagesOf(webhookDeliveries, (given: Given<{ endpoint_id: string }>) =>
  eq(webhookDeliveries.endpoint_id, given.endpoint_id),
)

/**
 * Sends an event, or all since a time, again, and makes waiting events due now: with `event_id` only those in the same
 * line. Workers queue many events in steps. All events so far must be numbered. Throws `event.not_found`.
 */
export async function createWebhookReplay(
  turn: Turn,
  caller: Caller,
  endpointId: string,
  { event_id, since }: { event_id?: string | undefined; since: Date | undefined },
): Promise<WebhookReplay> {
  const endpoint = await getWebhookEndpoint(turn.tx, caller, endpointId)
  if (event_id !== undefined) await replayEvent(turn, caller, endpoint, event_id)
  if (since) await replaySince(turn, endpoint, since)
  return {
    endpoint_id: endpoint.id,
    created_after: since?.toISOString() ?? null,
    event_id: event_id?.toLowerCase() ?? null,
    created_at: turn.at.toISOString(),
  }
}

async function replayEvent(
  turn: Turn,
  caller: Caller,
  endpoint: WebhookEndpointRow,
  eventId: string,
): Promise<void> {
  const [event] = await turn.tx
    .select()
    .from(events)
    .where(
      and(
        eq(events.id, canonicalId(eventId, "event_id")),
        eq(events.organization_id, caller.organization_id),
      ),
    )
  if (!event?.position) throw new ApiError("event.not_found")
  await queueAgain(turn, endpoint, event.position)
  await retryLineOf(turn, endpoint.id, event.id)
}

async function replaySince(turn: Turn, endpoint: WebhookEndpointRow, since: Date): Promise<void> {
  await retryAll(turn, endpoint.id)
  const [feed] = await turn.tx.select().from(eventFeeds).where(eq(eventFeeds.name, "events"))
  const first = await firstPositionSince(turn.tx, endpoint.organization_id, since)
  if (!feed || first === null) return
  const { replay_from, replay_since } = endpoint
  const isEarlier = replay_since === null || since < replay_since
  await turn.tx
    .update(webhookEndpoints)
    .set({
      replay_from: Math.min(first - 1, replay_from ?? first),
      replay_until: feed.last_position,
      replay_since: isEarlier ? since : replay_since,
    })
    .where(eq(webhookEndpoints.id, endpoint.id))
  turn.wake(replaysQueue)
}

/**
 * Returns the smallest position among an organization's events since a time, or null. The oldest event may have a
 * greater one, because the clocks of machines differ.
 */
async function firstPositionSince(
  queries: Queries,
  organizationId: string,
  since: Date,
): Promise<number | null> {
  const { organization_id, created_at, position } = events
  const ofThem = and(eq(organization_id, organizationId), isNotNull(position))
  const [oldest] = await queries
    .select({ created_at })
    .from(events)
    .where(and(ofThem, gte(created_at, since)))
    .orderBy(asc(created_at))
    .limit(1)
  if (!oldest) return null
  const until = new Date(oldest.created_at.getTime() + clocksDifferMilliseconds)
  // `+ 0` keeps the planner from scanning the feed from its beginning.
  const [first] = await queries
    .select({ position: sql`min(${position} + 0)` })
    .from(events)
    .where(and(ofThem, between(created_at, oldest.created_at, until)))
  return Number(first?.position)
}

const clocksDifferMilliseconds = 60_000

function own(caller: Caller, endpointId: string) {
  const id = parseId(endpointId)
  if (!id) throw new ApiError("webhook_endpoint.not_found")
  return and(eq(webhookEndpoints.id, id), ofOrganization(caller))
}

function ofOrganization({ organization_id }: { organization_id: string | SQLWrapper }) {
  return and(eq(webhookEndpoints.organization_id, organization_id), isNull(webhookEndpoints.deleted_at))
}
