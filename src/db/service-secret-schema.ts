import { pgTable, text } from "drizzle-orm/pg-core"
import { count, instant } from "./columns.ts"

/** Check values that identify the service secrets that data may be sealed with, in order of their first use. */
export const serviceSecrets = pgTable("service_secrets", {
  number: count().primaryKey(),
  check_value: text().notNull(),
  registered_at: instant().notNull(),
})
