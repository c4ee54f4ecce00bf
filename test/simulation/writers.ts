import { integer, pgTable, text } from "drizzle-orm/pg-core"

/** Who wrote transactions for a lane under which epoch of its lease, as triggers of the database saw it. */
export const writers = pgTable("simulation_writers", {
  process: text().notNull(),
  lane_id: text().notNull(),
  epoch: integer().notNull(),
})
