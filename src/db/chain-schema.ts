import { jsonb, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core"
import { absent, count, instant } from "./columns.ts"
import type { Failure } from "./schema.ts"
import { metadataRefreshStatuses } from "./statuses.ts"

// What is kept of chains beside lanes and transactions: how far they were read, and what they had that we had not.

export const chainCursors = pgTable("chain_cursors", {
  chain_id: count().primaryKey(),
  block_number: count().notNull(),
  block_hash: text().notNull(),
  /** How far owners were followed; null where only a release that did not follow them has read the chain. */
  owners_block_number: count().$defaultFn(absent),
  owners_block_hash: text().$defaultFn(absent),
  /** By which block owners were asked for anew; null where they never were. */
  asked_block_number: count().$defaultFn(absent),
  asked_block_hash: text().$defaultFn(absent),
  updated_at: instant().notNull(),
})

/** Blocks up to which a chain was read, ever further apart the older they are. */
export const chainMarks = pgTable(
  "chain_marks",
  {
    chain_id: count().notNull(),
    block_number: count().notNull(),
    block_hash: text().notNull(),
    /** The number of the block that has it forgotten. */
    kept_until: count().notNull(),
  },
  (table) => [primaryKey({ columns: [table.chain_id, table.block_number] })],
)

/** Serials that the chain had and the database had not, with the chips they are bound to. */
export const foundSerials = pgTable(
  "found_serials",
  {
    collection_id: uuid().notNull(),
    serial: count().notNull(),
    chip_id: text().notNull(),
    transaction_hash: text().notNull(),
    found_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.collection_id, table.serial] })],
)

/** Owners of serials that no unit has yet, as after an older back-up was restored. */
export const foundOwners = pgTable(
  "found_owners",
  {
    collection_id: uuid().notNull(),
    serial: count().notNull(),
    owner: text().notNull(),
    block_number: count().notNull(),
    found_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.collection_id, table.serial] })],
)

export const metadataRefreshes = pgTable("metadata_refreshes", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  collection_id: uuid().notNull(),
  status: text({ enum: metadataRefreshStatuses }).notNull(),
  transaction_hash: text().$defaultFn(absent),
  failure: jsonb().$type<Failure>().$defaultFn(absent),
  created_at: instant().notNull(),
  updated_at: instant().notNull(),
})
export type MetadataRefreshRow = typeof metadataRefreshes.$inferSelect
