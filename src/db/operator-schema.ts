import { pgTable, text, uuid } from "drizzle-orm/pg-core"
import { instant } from "./columns.ts"

/** What operators did, each with who it was and what it was done to. */
export const operatorActs = pgTable("operator_acts", {
  id: uuid().primaryKey(),
  at: instant().notNull(),
  /** A user on a machine, or the address of a browser at the console. */
  actor: text().notNull(),
  act: text().notNull(),
  /** An id, as it was given. */
  subject: text().notNull(),
})
export type OperatorActRow = typeof operatorActs.$inferSelect
