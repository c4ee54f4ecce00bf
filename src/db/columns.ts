import { sql } from "drizzle-orm"
import { bigint, customType, timestamp } from "drizzle-orm/pg-core"

/** SQLite has no boolean type and returns 0 or 1. */
export const flag = customType<{ data: boolean; driverData: unknown }>({
  dataType: () => "boolean",
  fromDriver: (value) => value === true || value === 1,
})
/** Drizzle writes `default` for an omitted value, which SQLite does not accept. */
export const absent = () => sql`null`
export const zero = () => 0
export const count = () => bigint({ mode: "number" })
export const instant = () => timestamp({ withTimezone: true, precision: 3, mode: "date" })
