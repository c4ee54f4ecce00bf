import { type SQL, sql } from "drizzle-orm"
import { type UnitRow, units } from "./schema.ts"
import type { ownershipStatuses } from "./statuses.ts"

export type OwnershipStatus = (typeof ownershipStatuses)[number]

/** Returns whether a unit has a token and, if so, whether the token is in the service's custody. */
export function ownershipStatusOf({
  token_status,
  owner,
}: Pick<UnitRow, "token_status" | "owner">): OwnershipStatus {
  if (token_status === "pending") return "unissued"
  return owner === null ? "custody" : "owned"
}

/** Returns the same rule in SQL, word for word as in the indexes of migrations/0010_shown_tokens_listed.sql. */
export function ownershipStatusIs(status: SQL): SQL {
  const { token_status, owner } = units
  return sql`case when ${token_status} = 'pending' then 'unissued' when ${owner} is null then 'custody' else 'owned' end = ${status}`
}
