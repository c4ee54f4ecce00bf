import { pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core"
import { count, instant } from "./columns.ts"

/** How much of a quota an organization has used since a time; for a quota without a period, since the beginning. */
export const usageCounts = pgTable(
  "usage_counts",
  {
    organization_id: uuid().notNull(),
    quota: text({ enum: ["units", "collections", "chips", "taps_per_month"] }).notNull(),
    since: instant().notNull(),
    used: count().notNull(),
  },
  (table) => [primaryKey({ columns: [table.organization_id, table.quota, table.since] })],
)
