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
  /** The resource as its GET showed it at that moment. */
  data: jsonb().$type<Record<string, unknown>>().notNull(),
  /** The one webhook endpoint that it is for; null where it is for all that ask for its type. */
  endpoint_id: uuid().$defaultFn(absent),
  /** Where it stands in the feed; null until it is numbered, which happens after its commit. */
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
  /** The types that it asks for; null for all. */
  event_types: jsonb().$type<string[]>().$defaultFn(absent),
  description: text().$defaultFn(absent),
  status: text({ enum: webhookEndpointStatuses }).notNull(),
  /** Why it was paused, where its organization did not do so itself. */
  failure: jsonb().$type<{ code: string; message: string }>().$defaultFn(absent),
  /** The newest first. */
  secrets: jsonb().$type<SealedSecret[]>().notNull(),
  /** What is queued again: between these positions, the first exclusive, and since then. Null while nothing is. */
  replay_from: count().$defaultFn(absent),
  replay_until: count().$defaultFn(absent),
  replay_since: instant().$defaultFn(absent),
  /** What waits is to be tried at once: all after this event, in the order of their ids. Null once that is done. */
  retry_from: uuid().$defaultFn(absent),
  lease_owner: text().$defaultFn(absent),
  leased_until: instant().$defaultFn(absent),
  created_at: instant().notNull(),
  /** It is there for nobody any more, until what refers to it is purged. */
  deleted_at: instant().$defaultFn(absent),
})
export type WebhookEndpointRow = typeof webhookEndpoints.$inferSelect

/** What is still to be delivered. */
export const webhookQueue = pgTable(
  "webhook_queue",
  {
    endpoint_id: uuid().notNull(),
    event_id: uuid().notNull(),
    /** Events of one line are delivered one after the other: those of a unit, else of a collection, else of one event. */
    line: uuid().notNull(),
    position: count().notNull(),
    attempts: count().notNull(),
    due_at: instant().notNull(),
    last_error: text().$defaultFn(absent),
    created_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.endpoint_id, table.event_id] })],
)

/** Every attempt to deliver, with what came of it. */
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

/** A signing secret that only this service can read; `expires_at` once another one has taken its place. */
export type SealedSecret = { sealed: string; expires_at: string | null }
