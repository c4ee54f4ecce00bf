import { pgTable, text } from "drizzle-orm/pg-core"
import { count, instant } from "./columns.ts"

/** What tells the secrets apart under which something may be sealed, in the order of their first use. */
export const serviceSecrets = pgTable("service_secrets", {
  number: count().primaryKey(),
  check_value: text().notNull(),
  registered_at: instant().notNull(),
})
