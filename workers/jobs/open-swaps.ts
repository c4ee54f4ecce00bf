import { and, eq, inArray, ne } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { chipReplacements, effects, transactions } from "../../src/db/schema.ts"

/** A unit, and the chip that a replacement gave it. */
type Swap = { unit_id: string; chip_id: string }

/**
 * Returns the swaps of these units that are done and not final. If a reorganization undoes one, its lane brings it
 * back; until then another chip on chain proves nothing.
 */
export async function openSwaps(queries: Queries, unit_ids: string[]): Promise<Swap[]> {
  return await openSwapsOf(queries, { unit_ids })
}

const openSwapsOf = query((db, { unit_ids }: Given<{ unit_ids: string[] }>) =>
  db
    .select({ unit_id: chipReplacements.unit_id, chip_id: chipReplacements.chip_id })
    .from(chipReplacements)
    .innerJoin(effects, eq(effects.actor_id, chipReplacements.id))
    .innerJoin(transactions, eq(transactions.id, effects.transaction_id))
    .where(
      and(
        inArray(chipReplacements.unit_id, unit_ids),
        eq(effects.status, "done"),
        ne(transactions.status, "final"),
      ),
    ),
)
