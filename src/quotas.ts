import { and, count, eq, type SQL } from "drizzle-orm"
import type { PgColumn, PgTable } from "drizzle-orm/pg-core"
import type { Caller } from "./caller.ts"
import { organizations } from "./db/schema.ts"
import type { Turn } from "./db/turn.ts"
import { ApiError } from "./errors.ts"

type Quota = "quota_units" | "quota_collections" | "quota_chips" | "quota_taps_per_month"

/**
 * Refuses with `quota.exceeded` when `adding` more rows of the caller's organization would be more than its
 * quota. Nothing is counted where there is no quota.
 */
export async function holdToQuota(
  turn: Turn,
  caller: Caller,
  quota: Quota,
  adding: number,
  counted: { table: PgTable & { organization_id: PgColumn }; where?: SQL | undefined },
): Promise<void> {
  const [organization] = await turn.tx
    .select({ limit: organizations[quota] })
    .from(organizations)
    .where(eq(organizations.id, caller.organization_id))
  if (!organization || organization.limit === null) return
  const [used] = await turn.tx
    .select({ rows: count() })
    .from(counted.table)
    .where(and(eq(counted.table.organization_id, caller.organization_id), counted.where))
  if ((used?.rows ?? 0) + adding <= organization.limit) return
  throw new ApiError(
    "quota.exceeded",
    `This organization has used its ${quota.replace("quota_", "").replaceAll("_", " ")}: ${organization.limit}. Ask the operator for more.`,
  )
}
