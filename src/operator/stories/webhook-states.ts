import { and, asc, count, desc, eq, isNull, min, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { webhookDeliveries, webhookEndpoints, webhookQueue } from "../../db/event-schema.ts"

/** A webhook endpoint, what waits for it, and its last refusals. */
export type WebhookState = {
  id: string
  organization_id: string
  url: string
  status: string
  /** Why it is paused, if not by its organization. */
  failure: { code: string; message: string } | null
  waiting: number
  waiting_since: string | null
  last_refusals: { event_id: string; attempt: number; error: string | null; at: string }[]
}

/** Endpoints of one organization or of all, or a single one; longest waiting first, at most 200. */
export async function webhookStates(
  queries: Queries,
  organizationId: string | null,
  endpointId: string | null = null,
): Promise<WebhookState[]> {
  const backlog = queries
    .select({
      endpoint_id: webhookQueue.endpoint_id,
      waiting: count().as("waiting"),
      since: min(webhookQueue.created_at).as("since"),
    })
    .from(webhookQueue)
    .where(endpointId === null ? undefined : eq(webhookQueue.endpoint_id, endpointId))
    .groupBy(webhookQueue.endpoint_id)
    .as("backlog")
  const rows = await queries
    .select({ endpoint: webhookEndpoints, waiting: backlog.waiting, since: backlog.since })
    .from(webhookEndpoints)
    .leftJoin(backlog, eq(backlog.endpoint_id, webhookEndpoints.id))
    .where(
      and(
        isNull(webhookEndpoints.deleted_at),
        organizationId === null ? undefined : eq(webhookEndpoints.organization_id, organizationId),
        endpointId === null ? undefined : eq(webhookEndpoints.id, endpointId),
      ),
    )
    .orderBy(sql`${backlog.since} is null`, asc(backlog.since), asc(webhookEndpoints.id))
    .limit(mostShown)
  return await Promise.all(
    rows.map(async ({ endpoint: { id, organization_id, url, status, failure }, waiting, since }) => ({
      id,
      organization_id,
      url,
      status,
      failure,
      waiting: Number(waiting ?? 0),
      waiting_since: since?.toISOString() ?? null,
      last_refusals: await lastRefusals(queries, id),
    })),
  )
}

/** An endpoint's status, and who paused it. */
export function statusWords({ status, failure }: WebhookState): string {
  return status === "paused"
    ? `paused by ${failure ? "the service, after ten failed attempts" : "its organization"}`
    : status
}

const mostShown = 200
const latest = 20
const mostRefusals = 3

/** Only among the latest attempts, because reading all would take long. */
async function lastRefusals(queries: Queries, endpointId: string): Promise<WebhookState["last_refusals"]> {
  const rows = await queries
    .select()
    .from(webhookDeliveries)
    .where(eq(webhookDeliveries.endpoint_id, endpointId))
    .orderBy(desc(webhookDeliveries.created_at), desc(webhookDeliveries.id))
    .limit(latest)
  return rows
    .filter(({ status }) => status === "failed")
    .slice(0, mostRefusals)
    .map(({ event_id, attempt, error, created_at }) => ({
      event_id,
      attempt,
      error,
      at: created_at.toISOString(),
    }))
}
