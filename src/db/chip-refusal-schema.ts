import { pgTable, text } from "drizzle-orm/pg-core"
import { count, instant } from "./columns.ts"

/** How many values were refused that are not from the chip. Apart from it: whoever guesses must not hold up its taps. */
export const chipRefusals = pgTable("chip_refusals", {
  chip_id: text().primaryKey(),
  refused_count: count().notNull(),
  last_refused_at: instant().notNull(),
})
