import { jsonb, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core"
import { absent, count, flag, instant, zero } from "./columns.ts"
import * as statuses from "./statuses.ts"

export const organizations = pgTable("organizations", {
  id: uuid().primaryKey(),
  name: text().notNull(),
  default_chain_id: count().$defaultFn(absent),
  allowed_chain_ids: jsonb().$type<number[]>().notNull(),
  default_redirect_url: text().$defaultFn(absent),
  cors_origins: jsonb().$type<string[]>().notNull(),
  quota_units: count().$defaultFn(absent),
  quota_collections: count().$defaultFn(absent),
  quota_chips: count().$defaultFn(absent),
  quota_taps_per_month: count().$defaultFn(absent),
  identity: jsonb().$type<IdentitySettings>().$defaultFn(absent),
  /** Its credentials are rejected from this time on. */
  suspended_at: instant().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type OrganizationRow = typeof organizations.$inferSelect

export const apiKeys = pgTable("api_keys", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  name: text().$defaultFn(absent),
  hash: text().notNull(),
  hint: text().notNull(),
  created_at: instant().notNull(),
  expires_at: instant().$defaultFn(absent),
  revoked_at: instant().$defaultFn(absent),
})
export type ApiKeyRow = typeof apiKeys.$inferSelect

export const publishableKeys = pgTable("publishable_keys", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  key: text().notNull(),
  name: text().notNull(),
  mode: text({ enum: statuses.publishableKeyModes }).notNull(),
  created_at: instant().notNull(),
  /** Set when a rotation replaces the key. */
  expires_at: instant().$defaultFn(absent),
  revoked_at: instant().$defaultFn(absent),
})
export type PublishableKeyRow = typeof publishableKeys.$inferSelect

export const products = pgTable("products", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  external_id: text().$defaultFn(absent),
  name: text().notNull(),
  redirect_url: text().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type ProductRow = typeof products.$inferSelect

export const lanes = pgTable("lanes", {
  id: text().primaryKey(),
  chain_id: count().notNull(),
  address: text().notNull(),
  purpose: text({ enum: ["issuance", "ownership", "all"] }).notNull(),
  next_nonce: count().$defaultFn(absent),
  status: text({ enum: ["open", "paused", "halted"] }).notNull(),
  reason: text().$defaultFn(absent),
  lease_owner: text().$defaultFn(absent),
  lease_epoch: count().notNull(),
  leased_until: instant().$defaultFn(absent),
  /** The newest block seen at the finality depth. */
  final_block_number: count().$defaultFn(absent),
  final_block_hash: text().$defaultFn(absent),
  /** When a backup was restored; null once no transaction that the backup lacks can still be mined. */
  restored_at: instant().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type LaneRow = typeof lanes.$inferSelect

export const collections = pgTable("collections", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  external_id: text().$defaultFn(absent),
  name: text().notNull(),
  symbol: text().notNull(),
  chain_id: count().notNull(),
  address: text().notNull(),
  /** The factory that `address` was computed for; null for rows older than this column. */
  factory_address: text().$defaultFn(absent),
  lane_id: text().notNull(),
  next_serial: count().notNull(),
  status: text({ enum: statuses.collectionStatuses }).notNull(),
  redirect_url: text().$defaultFn(absent),
  /** The block to read the contract's logs from; null if unknown. */
  deployed_block: count().$defaultFn(absent),
  description: text().$defaultFn(absent),
  image_url: text().$defaultFn(absent),
  failure: jsonb().$type<Failure>().$defaultFn(absent),
  metadata_refreshed_at: instant().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type CollectionRow = typeof collections.$inferSelect

export const units = pgTable("units", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  collection_id: uuid().$defaultFn(absent),
  product_id: uuid().$defaultFn(absent),
  external_id: text().$defaultFn(absent),
  name: text().$defaultFn(absent),
  attributes: jsonb().$type<Record<string, unknown>>().$defaultFn(absent),
  redirect_url: text().$defaultFn(absent),
  token_status: text({ enum: statuses.tokenStatuses }).notNull(),
  serial: count().$defaultFn(absent),
  claimed: flag().notNull(),
  /** Public token metadata, together with `name`. */
  description: text().$defaultFn(absent),
  image_url: text().$defaultFn(absent),
  metadata: jsonb().$type<PublicMetadata>().$defaultFn(absent),
  /** The token's holder at the confirmation depth; null while it is in the service's custody. */
  owner: text().$defaultFn(absent),
  ownership_updated_at: instant().$defaultFn(absent),
  /** The block that `owner` was read from; null while it comes only from the result of a claim or transfer. */
  owner_block: count().$defaultFn(absent),
  created_at: instant().notNull(),
})
export type UnitRow = typeof units.$inferSelect

export const chips = pgTable("chips", {
  chip_id: text().primaryKey(),
  organization_id: uuid().notNull(),
  is_test: flag().notNull(),
  uid: text().notNull(),
  wrapped_keys: text().notNull(),
  key_version: count().notNull(),
  counter: count().notNull(),
  emitted_counter: count().notNull(),
  scan_count: count().notNull(),
  /** Counters skipped in its first `summed_scans` taps: in all, unless the previous release recorded the latest. */
  summed_skips: count().notNull().$defaultFn(zero),
  summed_scans: count().notNull().$defaultFn(zero),
  unit_id: uuid().$defaultFn(absent),
  reserved_for: uuid().$defaultFn(absent),
  paired_at: instant().$defaultFn(absent),
  retired_at: instant().$defaultFn(absent),
  /** The key set that its keys derive from; null if it came with its own, in `wrapped_keys`. */
  key_set_id: uuid().$defaultFn(absent),
  /** The key version it is being re-encoded with; the first tap under that version makes it `key_version`. */
  next_key_version: count().$defaultFn(absent),
  /** The part of the URL that the MAC `c` covers, with `{e}` and `{enc}` in place of the values. */
  mac_input: text()
    .notNull()
    .$defaultFn(() => ""),
  /** Whether its tag is expected to send the MAC `c`. */
  has_mac: flag()
    .notNull()
    .$defaultFn(() => false),
  /** The last status of its tamper wire, where opened is final; null if its tag mirrors none. */
  tamper: text({ enum: ["sealed", "opened", "unknown"] }).$defaultFn(absent),
  created_at: instant().notNull(),
})
export type ChipRow = typeof chips.$inferSelect

export const bulkPairings = pgTable("bulk_pairings", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  collection_id: uuid().notNull(),
  size: count().notNull(),
  created_at: instant().notNull(),
  issued_at: instant().$defaultFn(absent),
})

export const taps = pgTable("taps", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  chip_id: text().notNull(),
  unit_id: uuid().notNull(),
  is_test: flag().notNull(),
  key_version: count().notNull(),
  counter: count().notNull(),
  skipped: count().notNull(),
  created_at: instant().notNull(),
})
export type TapRow = typeof taps.$inferSelect

export const sessionTokens = pgTable("session_tokens", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  tap_id: uuid().notNull(),
  chip_id: text().notNull(),
  unit_id: uuid().notNull(),
  hash: text().notNull(),
  status: text({ enum: statuses.sessionTokenStatuses }).notNull(),
  expires_at: instant().notNull(),
  created_at: instant().notNull(),
})
export type SessionTokenRow = typeof sessionTokens.$inferSelect

export const claims = pgTable("claims", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  unit_id: uuid().notNull(),
  /** The session that requested it; null if an API key did, and in claims older than this column. */
  session_token_id: uuid().$defaultFn(absent),
  status: text({ enum: statuses.claimStatuses }).notNull(),
  execution: text({ enum: statuses.claimExecutions }).notNull(),
  recipient: text().notNull(),
  customer_id: text().$defaultFn(absent),
  transaction: jsonb().$type<TransactionPayload>().$defaultFn(absent),
  authorization_digest: text().$defaultFn(absent),
  transaction_hash: text().$defaultFn(absent),
  failure: jsonb().$type<Failure>().$defaultFn(absent),
  expires_at: instant().$defaultFn(absent),
  created_at: instant().notNull(),
  updated_at: instant().notNull(),
})
export type ClaimRow = typeof claims.$inferSelect

export const transfers = pgTable("transfers", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  unit_id: uuid().notNull(),
  /** The session that requested it; null if an API key did, and in transfers older than this column. */
  session_token_id: uuid().$defaultFn(absent),
  status: text({ enum: statuses.transferStatuses }).notNull(),
  sender: text().notNull(),
  recipient: text().notNull(),
  customer_id: text().$defaultFn(absent),
  transaction: jsonb().$type<TransactionPayload>().notNull(),
  authorization_digest: text().notNull(),
  transaction_hash: text().$defaultFn(absent),
  failure: jsonb().$type<Failure>().$defaultFn(absent),
  expires_at: instant().notNull(),
  created_at: instant().notNull(),
  updated_at: instant().notNull(),
})
export type TransferRow = typeof transfers.$inferSelect

export const chipReplacements = pgTable("chip_replacements", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  unit_id: uuid().notNull(),
  status: text({ enum: statuses.chipReplacementStatuses }).notNull(),
  previous_chip_id: text().notNull(),
  chip_id: text().notNull(),
  transaction_hash: text().$defaultFn(absent),
  failure: jsonb().$type<Failure>().$defaultFn(absent),
  created_at: instant().notNull(),
  updated_at: instant().notNull(),
})
export type ChipReplacementRow = typeof chipReplacements.$inferSelect

export const identityTokenUses = pgTable(
  "identity_token_uses",
  {
    organization_id: uuid().notNull(),
    jti: text().notNull(),
    expires_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.organization_id, table.jti] })],
)

export const idempotencyKeys = pgTable(
  "idempotency_keys",
  {
    scope: text().notNull(),
    key: text().notNull(),
    operation: text().notNull(),
    fingerprint: text().notNull(),
    response_status: count().$defaultFn(absent),
    response_location: text().$defaultFn(absent),
    sealed_body: text().$defaultFn(absent),
    created_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.scope, table.key] })],
)

export const actors = pgTable("actors", {
  id: uuid().primaryKey(),
  machine: text().notNull(),
  machine_version: count().notNull(),
  organization_id: uuid().$defaultFn(absent),
  snapshot: jsonb().$type<unknown>().notNull(),
  /** The top-level state, which the API shows. */
  status: text().notNull(),
  /** The full state, such as `pending.issuing`. */
  state: text().notNull(),
  version: count().notNull(),
  created_at: instant().notNull(),
  updated_at: instant().notNull(),
})
export type ActorRow = typeof actors.$inferSelect

export const actorTimers = pgTable(
  "actor_timers",
  {
    actor_id: uuid().notNull(),
    send_id: text().notNull(),
    event: jsonb().$type<JournalEvent>().notNull(),
    due_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.actor_id, table.send_id] })],
)

export const actorEvents = pgTable(
  "actor_events",
  {
    actor_id: uuid().notNull(),
    number: count().notNull(),
    event: jsonb().$type<JournalEvent>().notNull(),
    from_state: text().$defaultFn(absent),
    to_state: text().notNull(),
    request_id: text().$defaultFn(absent),
    at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.actor_id, table.number] })],
)

export const transactions = pgTable("transactions", {
  id: uuid().primaryKey(),
  lane_id: text().notNull(),
  chain_id: count().notNull(),
  kind: text().notNull(),
  nonce: count().notNull(),
  to: text().notNull(),
  call: text().notNull(),
  gas: count().notNull(),
  max_fee_per_gas: text().notNull(),
  max_priority_fee_per_gas: text().notNull(),
  status: text({ enum: statuses.transactionStatuses }).notNull(),
  hash: text().$defaultFn(absent),
  block_number: count().$defaultFn(absent),
  block_hash: text().$defaultFn(absent),
  sent_block: count().$defaultFn(absent),
  /** When an operator gave up its nonce. */
  cancel_requested_at: instant().$defaultFn(absent),
  created_at: instant().notNull(),
  updated_at: instant().notNull(),
})
export type TransactionRow = typeof transactions.$inferSelect

export const transactionAttempts = pgTable("transaction_attempts", {
  hash: text().primaryKey(),
  transaction_id: uuid().notNull(),
  kind: text({ enum: ["first", "bump"] }).notNull(),
  raw: text().notNull(),
  max_fee_per_gas: text().notNull(),
  max_priority_fee_per_gas: text().notNull(),
  /** Its number among the transaction's attempts, from 1; null in rows written by older releases. */
  number: count().$defaultFn(absent),
  /** The chain's head when a pool first reported having it; null if none has. */
  first_sent_block: count().$defaultFn(absent),
  send_count: count().notNull(),
  last_error: text().$defaultFn(absent),
  /** How `last_error` was classified; null before the first response. */
  last_outcome: text({ enum: statuses.sendOutcomes }).$defaultFn(absent),
  /** It uses up the nonce without any effect. */
  is_cancel: flag()
    .notNull()
    .$defaultFn(() => false),
  created_at: instant().notNull(),
})
export type AttemptRow = typeof transactionAttempts.$inferSelect

export const effects = pgTable("effects", {
  id: uuid().primaryKey(),
  actor_id: uuid().notNull(),
  /** The organization it counts for; null if the previous release created it. */
  organization_id: uuid().$defaultFn(absent),
  invoke_id: text().notNull(),
  src: text().notNull(),
  input: jsonb().$type<Record<string, unknown>>().notNull(),
  status: text({ enum: ["open", "done", "failed", "cancelled"] }).notNull(),
  queue: text().notNull(),
  transaction_id: uuid().$defaultFn(absent),
  attempts: count().notNull(),
  due_at: instant().notNull(),
  last_error: text().$defaultFn(absent),
  /** The request that caused it, directly or through earlier steps. */
  request_id: text().$defaultFn(absent),
  created_at: instant().notNull(),
  closed_at: instant().$defaultFn(absent),
})
export type EffectRow = typeof effects.$inferSelect

/** Ready for `eth_sendTransaction`; only `from` can submit it. */
export type TransactionPayload = { chain_id: number; from: string; to: string; data: string; value: "0x0" }

/** What a brand publishes about a unit: names with plain values. */
export type PublicMetadata = Record<string, string | number | boolean>

/** Why something failed permanently, in words an integrator can act on. */
export type Failure = { code: string; message: string }

/** An event as stored in the journal. */
export type JournalEvent = { type: string; [key: string]: unknown }

/** How the organization's own sign-in identifies its customers. */
export type IdentitySettings = { issuer: string; audience: string; jwks_url?: string; public_key?: string }
