import { sql } from "drizzle-orm"
import { bigint, customType, timestamp } from "drizzle-orm/pg-core"

/** SQLite has no boolean: it answers 0 and 1. */
export const flag = customType<{ data: boolean; driverData: unknown }>({
  dataType: () => "boolean",
  fromDriver: (value) => value === true || value === 1,
})
/** SQLite does not know the word `default` that drizzle writes for a value left out. */
export const absent = () => sql`null`
export const zero = () => 0
export const count = () => bigint({ mode: "number" })
export const instant = () => timestamp({ withTimezone: true, precision: 3, mode: "date" })
