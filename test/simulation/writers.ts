import { integer, pgTable, text } from "drizzle-orm/pg-core"

/** Which process wrote transactions for a lane under which epoch of its lease, as recorded by database triggers. */
export const writers = pgTable("simulation_writers", {
  process: text().notNull(),
  lane_id: text().notNull(),
  epoch: integer().notNull(),
})
