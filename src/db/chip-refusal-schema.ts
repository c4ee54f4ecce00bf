import { pgTable, text } from "drizzle-orm/pg-core"
import { count, instant } from "./columns.ts"

/**
 * How many tap values per chip were rejected as not genuine. Separate from `chips`, so that guesses do not lock the row
 * that the chip's taps update.
 */
export const chipRefusals = pgTable("chip_refusals", {
  chip_id: text().primaryKey(),
  refused_count: count().notNull(),
  last_refused_at: instant().notNull(),
})
