import { jsonb, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core"
import { absent, count, instant } from "./columns.ts"
import type { Failure } from "./schema.ts"
import { metadataRefreshStatuses } from "./statuses.ts"

// Tables about chains other than lanes and transactions: read positions, and what the chain had but the database
// lacked.

export const chainCursors = pgTable("chain_cursors", {
  chain_id: count().primaryKey(),
  block_number: count().notNull(),
  block_hash: text().notNull(),
  /**
   * How far transfers of ownership were followed; null if only a release that did not follow them has read the chain.
   */
  owners_block_number: count().$defaultFn(absent),
  /** Null from when later blocks were found to be lost until the chain is read again from here on. */
  owners_block_hash: text().$defaultFn(absent),
  /**
   * The block as of which owners were last queried again after a reorganization, or are being queried; null if they
   * never were.
   */
  asked_block_number: count().$defaultFn(absent),
  asked_block_hash: text().$defaultFn(absent),
  updated_at: instant().notNull(),
})

/** Checkpoints of a chain's reading position, sparser the older they are. */
export const chainMarks = pgTable(
  "chain_marks",
  {
    chain_id: count().notNull(),
    block_number: count().notNull(),
    block_hash: text().notNull(),
    /** The mark is dropped once the chain is read beyond this block number. */
    kept_until: count().notNull(),
  },
  (table) => [primaryKey({ columns: [table.chain_id, table.block_number] })],
)

/** Serials found on chain but not in the database, with the chips bound to them. */
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

/** Owners of serials that no unit in the database has yet, for example after an older backup was restored. */
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
