import { pgTable, text, uuid } from "drizzle-orm/pg-core"
import { instant } from "./columns.ts"

/** The audit log of operators: who did what to what. */
export const operatorActs = pgTable("operator_acts", {
  id: uuid().primaryKey(),
  at: instant().notNull(),
  /** A user on a machine, or the IP address of a browser at the console. */
  actor: text().notNull(),
  act: text().notNull(),
  /** An id, as the operator gave it. */
  subject: text().notNull(),
})
export type OperatorActRow = typeof operatorActs.$inferSelect
