import { jsonb, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core"
import { absent, count, flag, instant } from "./columns.ts"
import { webhookDeliveryStatuses, webhookEndpointStatuses } from "./statuses.ts"

export const events = pgTable("events", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  type: text().notNull(),
  unit_id: uuid().$defaultFn(absent),
  collection_id: uuid().$defaultFn(absent),
  is_test: flag().notNull(),
  /** The resource as its GET returned it at that moment. */
  data: jsonb().$type<Record<string, unknown>>().notNull(),
  /** The only webhook endpoint to deliver to; null delivers to every endpoint that subscribes to the type. */
  endpoint_id: uuid().$defaultFn(absent),
  /** Position in the feed; null until numbered, which happens after the event is committed. */
  position: count().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type EventRow = typeof events.$inferSelect

export const eventFeeds = pgTable("event_feeds", {
  name: text().primaryKey(),
  last_position: count().notNull(),
})

export const webhookEndpoints = pgTable("webhook_endpoints", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  url: text().notNull(),
  /** The event types it subscribes to; null for all. */
  event_types: jsonb().$type<string[]>().$defaultFn(absent),
  description: text().$defaultFn(absent),
  status: text({ enum: webhookEndpointStatuses }).notNull(),
  /** Why the service paused it; null if the organization did. */
  failure: jsonb().$type<{ code: string; message: string }>().$defaultFn(absent),
  /** Newest first. */
  secrets: jsonb().$type<SealedSecret[]>().notNull(),
  /** The replay in progress: positions after `replay_from` up to `replay_until`, created since `replay_since`. */
  replay_from: count().$defaultFn(absent),
  replay_until: count().$defaultFn(absent),
  replay_since: instant().$defaultFn(absent),
  /** The progress of "retry all": queued events with a greater id are still to be made due. Null when done. */
  retry_from: uuid().$defaultFn(absent),
  lease_owner: text().$defaultFn(absent),
  leased_until: instant().$defaultFn(absent),
  created_at: instant().notNull(),
  /** Deleted for every reader; the row stays until rows that reference it are purged. */
  deleted_at: instant().$defaultFn(absent),
})
export type WebhookEndpointRow = typeof webhookEndpoints.$inferSelect

/** Events still to be delivered. */
export const webhookQueue = pgTable(
  "webhook_queue",
  {
    endpoint_id: uuid().notNull(),
    event_id: uuid().notNull(),
    /** Events of one line are delivered in order. A line is a unit, else a collection, else a single event. */
    line: uuid().notNull(),
    position: count().notNull(),
    attempts: count().notNull(),
    due_at: instant().notNull(),
    last_error: text().$defaultFn(absent),
    created_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.endpoint_id, table.event_id] })],
)

/** Every delivery attempt and its result. */
export const webhookDeliveries = pgTable("webhook_deliveries", {
  id: uuid().primaryKey(),
  endpoint_id: uuid().notNull(),
  event_id: uuid().notNull(),
  attempt: count().notNull(),
  status: text({ enum: webhookDeliveryStatuses }).notNull(),
  response_status: count().$defaultFn(absent),
  error: text().$defaultFn(absent),
  milliseconds: count().notNull(),
  created_at: instant().notNull(),
})
export type WebhookDeliveryRow = typeof webhookDeliveries.$inferSelect

/** A signing secret, encrypted by this service; `expires_at` is set once another secret has replaced it. */
export type SealedSecret = { sealed: string; expires_at: string | null }
