import { and, count, eq, gte, inArray, isNotNull, lte, or, sql } from "drizzle-orm"
import { Outrun, type Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { chips, collections, type OrganizationRow, taps, units } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { usageCounts } from "../../db/usage-schema.ts"
import { ApiError } from "../../platform/errors.ts"

type Quota = (typeof usageCounts.$inferSelect)["quota"]

type Limited = Pick<OrganizationRow, "id" | `quota_${Quota}`>

/**
 * Counts `adding` more towards a quota. Throws `quota.exceeded`. Without a quota nothing is counted; for a new quota,
 * existing things are counted once.
 */
export async function holdToQuota(
  turn: Turn,
  organization: Limited,
  quota: Quota,
  adding: number,
): Promise<void> {
  await hold(turn, organization, quota, { adding, counted: adding })
}

/** Throws as `holdToQuota` would, but counts nothing. */
export async function checkQuota(
  turn: Turn,
  organization: Limited,
  quota: Quota,
  adding: number,
): Promise<void> {
  await hold(turn, organization, quota, { adding, counted: 0 })
}

/** Deletes the counts, so that they are taken anew when next needed. */
export async function forgetUsage(turn: Turn, organizationId: string): Promise<void> {
  await deleteCounts(turn.tx, { organization_id: organizationId })
}

/** How much of each quota is used; null where nothing was counted since the quota was set or, of taps, this month. */
type Usage = Record<Quota, number | null>

/** Returns what organizations have used at a time, by their ids; without those for which nothing was counted. */
export async function usageByOrganization(queries: Queries, at: Date): Promise<ReadonlyMap<string, Usage>> {
  const usage = new Map<string, Usage>()
  const since = [startOf("units", at), startOf("taps_per_month", at)]
  for (const { organization_id, quota, used } of await countsSince(queries, { since }))
    usage.set(organization_id, { ...(usage.get(organization_id) ?? nothingCounted), [quota]: used })
  return usage
}

export const nothingCounted: Usage = { units: null, collections: null, chips: null, taps_per_month: null }

async function hold(
  turn: Turn,
  organization: Limited,
  quota: Quota,
  use: { adding: number; counted: number },
): Promise<void> {
  const limit = organization[`quota_${quota}`]
  if (limit === null) return
  const period = { organization_id: organization.id, quota, since: startOf(quota, turn.at) }
  const most = limit - use.adding
  const [known] = await usageOf(turn.tx, period)
  const used = known?.used ?? (await startCount(turn.tx, period))
  // If rejected before any write, the database transaction conflicts with no other.
  if (used <= most) {
    if ((await addUse(turn.tx, { ...period, counted: use.counted, most })).length > 0) return
    // Others used up the quota after it was read here, or an operator set it anew, which deletes the counts.
    throw new Outrun("the use of a quota was changed at the same time")
  }
  throw new ApiError(
    "quota.exceeded",
    `This organization has reached its quota of ${quota.replaceAll("_", " ")}: ${limit}. Ask the operator for more.`,
  )
}

type Period = { organization_id: string; quota: Quota; since: Date }

function startOf(quota: Quota, at: Date): Date {
  return quota === "taps_per_month"
    ? new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
    : new Date(0)
}

/** Decides in one statement, so that parallel requests cannot use the same remainder of a quota. */
const addUse = query((db, given: Given<Period & { counted: number; most: number }>) =>
  db
    .update(usageCounts)
    .set({ used: sql`${usageCounts.used} + ${given.counted}` })
    .where(and(ofPeriod(given), lte(usageCounts.used, given.most)))
    .returning({ used: usageCounts.used }),
)

/** Counts what exists. Returns the number, although a count that another request has inserted at the same time stands. */
async function startCount(queries: Queries, period: Period): Promise<number> {
  const used = await countOf(queries, period)
  await insertCount(queries, { ...period, used })
  return used
}

const usageOf = query((db, given: Given<Period>) =>
  db.select({ used: usageCounts.used }).from(usageCounts).where(ofPeriod(given)),
)

const countsSince = query((db, { since }: Given<{ since: Date[] }>) =>
  db.select().from(usageCounts).where(inArray(usageCounts.since, since)),
)

const insertCount = query((db, given: Given<Period & { used: number }>) =>
  db.insert(usageCounts).values(given).onConflictDoNothing(),
)

const deleteCounts = query((db, given: Given<{ organization_id: string }>) =>
  db.delete(usageCounts).where(eq(usageCounts.organization_id, given.organization_id)),
)

function ofPeriod({ organization_id, quota, since }: Given<Period>) {
  return and(
    eq(usageCounts.organization_id, organization_id),
    eq(usageCounts.quota, quota),
    eq(usageCounts.since, since),
  )
}

async function countOf(queries: Queries, { organization_id, quota, since }: Period): Promise<number> {
  const [counted] = await (quota === "taps_per_month"
    ? countTaps(queries, { organization_id, since })
    : counts[quota](queries, { organization_id }))
  return counted?.rows ?? 0
}

type Of = { organization_id: string }

const counts = {
  units: query((db, { organization_id }: Given<Of>) =>
    db.select({ rows: count() }).from(units).where(eq(units.organization_id, organization_id)),
  ),
  collections: query((db, { organization_id }: Given<Of>) =>
    db.select({ rows: count() }).from(collections).where(eq(collections.organization_id, organization_id)),
  ),
  /** Chips that have or had a unit, and those reserved for a chip replacement. */
  chips: query((db, { organization_id }: Given<Of>) =>
    db
      .select({ rows: count() })
      .from(chips)
      .where(
        and(
          eq(chips.organization_id, organization_id),
          or(isNotNull(chips.paired_at), isNotNull(chips.reserved_for)),
        ),
      ),
  ),
}

const countTaps = query((db, given: Given<Of & { since: Date }>) =>
  db
    .select({ rows: count() })
    .from(taps)
    .where(
      and(
        eq(taps.organization_id, given.organization_id),
        // Matches every row, but lets the index be used, where `is_test` precedes the time.
        inArray(taps.is_test, [true, false]),
        gte(taps.created_at, given.since),
      ),
    ),
)
