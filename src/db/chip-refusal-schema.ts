import { pgTable, text } from "drizzle-orm/pg-core"
import { count, instant } from "./columns.ts"

/**
 * How many values that are not from the chip were refused. A table of its own: guessing must not hold up the chip's
 * taps.
 */
export const chipRefusals = pgTable("chip_refusals", {
  chip_id: text().primaryKey(),
  refused_count: count().notNull(),
  last_refused_at: instant().notNull(),
})
