import { eq, type SQL, sql } from "drizzle-orm"
import { chipRefusals } from "../../db/chip-refusal-schema.ts"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { chips, taps } from "../../db/schema.ts"

/** What only a chip's brand may see: reads that were never presented, and rejected values. */
export type ChipSignals = { skipped_count: number; refused_count: number; last_refused_at: Date | null }

/** The same as columns of a query on `chips` that joins `chipRefusals`. */
export const signalColumns = {
  skipped_count: skippedCount().mapWith(Number),
  refused_count: sql<number>`coalesce(${chipRefusals.refused_count}, 0)`.mapWith(Number),
  last_refused_at: chipRefusals.last_refused_at,
}

/** Returns a chip's counts after one more tap. The previous release updates only `scan_count`. */
export function countsAfterTap(skipped: SQL) {
  return {
    summed_skips: sql<number>`${skippedCount()} + ${skipped}`,
    scan_count: sql<number>`${chips.scan_count} + 1`,
    summed_scans: sql<number>`${chips.scan_count} + 1`,
  }
}

function skippedCount(): SQL<number> {
  const { chip_id, scan_count, summed_scans, summed_skips } = chips
  const ofAllTaps = sql`select cast(coalesce(sum(${taps.skipped}), 0) as bigint) from ${taps} where ${taps.chip_id} = ${chip_id}`
  return sql`case when ${summed_scans} = ${scan_count} then ${summed_skips} else (${ofAllTaps}) end`
}

/** The condition on which a query on `chips` joins `chipRefusals`. */
export const refusalsOfChip = eq(chipRefusals.chip_id, chips.chip_id)

/** Returns the signals of an existing chip. */
export async function signalsOf(queries: Queries, chipId: string): Promise<ChipSignals> {
  const [signals] = await signalsOfChip(queries, { chip_id: chipId })
  if (!signals) throw new Error(`there is no chip ${chipId} that could have signals`)
  return signals
}

const signalsOfChip = query((db, given: Given<{ chip_id: string }>) =>
  db
    .select(signalColumns)
    .from(chips)
    .leftJoin(chipRefusals, refusalsOfChip)
    .where(eq(chips.chip_id, given.chip_id)),
)
