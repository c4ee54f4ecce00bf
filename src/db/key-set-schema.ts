import { pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core"
import { absent, count, flag, instant } from "./columns.ts"

export const keySets = pgTable("key_sets", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  name: text().notNull(),
  scheme: text({ enum: ["an10922", "sdm-backend", "boltcard", "explicit"] }).notNull(),
  created_at: instant().notNull(),
  retired_at: instant().$defaultFn(absent),
})

export const keySetVersions = pgTable(
  "key_set_versions",
  {
    key_set_id: uuid().notNull(),
    version: count().notNull(),
    /** Null for `explicit`, which has no master key. */
    sealed_master: text().$defaultFn(absent),
    created_at: instant().notNull(),
  },
  (table) => [primaryKey({ columns: [table.key_set_id, table.version] })],
)

/** An order of tags, as given to `chips encode`. */
export const manifests = pgTable("manifests", {
  id: uuid().primaryKey(),
  organization_id: uuid().notNull(),
  key_set_id: uuid().notNull(),
  key_version: count().notNull(),
  url_template: text().notNull(),
  mac: flag().notNull(),
  tamper: flag().notNull(),
  size: count().notNull(),
  created_at: instant().notNull(),
})

export const manifestChips = pgTable(
  "manifest_chips",
  {
    manifest_id: uuid().notNull(),
    number: count().notNull(),
    chip_id: text().notNull(),
    /** For a chip that is encoded again: the key version of its taps until then. Null for a new chip. */
    from_version: count().$defaultFn(absent),
  },
  (table) => [primaryKey({ columns: [table.manifest_id, table.number] })],
)
