import { and, asc, eq, isNull, sql } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { type CollectionRow, effects } from "../../src/db/schema.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"
import { releasedIssuances } from "./issue-batches.ts"
import { heldSerials } from "./take-up-serials.ts"

/** The most single units joined into one transaction; a bulk request has no more either. */
export const maxUnits = 100

/**
 * Returns the units that come next. If a reorganization may bring back an issuance at the next serial, these are its own
 * ones that are left, as there and no others: the contract refuses a batch that has another chip, or that is issued only
 * in part, and units would be told serials that they do not get. None if the first of them is not among those waiting.
 * Must be read after the collection, so that taking back serials in between invalidates this plan.
 */
export async function nextUnits(
  queries: Queries,
  collection: CollectionRow,
  ofCollection: Effect<"issueUnit">[],
): Promise<Effect<"issueUnit">[]> {
  const chipIds = await chipsToComeBack(queries, collection)
  if (chipIds === null) return await withoutOvertaking(queries, nextBatch(ofCollection))
  const units: Effect<"issueUnit">[] = []
  for (const chipId of chipIds) {
    const unit = ofCollection.find(({ input }) => input.chip_id === chipId)
    if (!unit) break
    units.push(unit)
  }
  return units
}

/** Returns the chips that an issuance would issue from the next serial on if it came back; null if there is none. */
async function chipsToComeBack(
  queries: Queries,
  collection: CollectionRow,
): Promise<readonly string[] | null> {
  const issuances = await releasedIssuances(queries, collection)
  const rests = issuances.flatMap(({ first, chip_ids }) => {
    const issued = collection.next_serial - first
    return issued >= 0 && issued < chip_ids.length ? [chip_ids.slice(issued)] : []
  })
  // Where one ends, the next may begin: what goes further might be issued only in part.
  const [shortest] = rests.toSorted((one, other) => one.length - other.length)
  return shortest ?? null
}

/** Returns the first unit with the rest of its bulk request, or with the single units before the next bulk request. */
export function nextBatch(ofCollection: Effect<"issueUnit">[]): Effect<"issueUnit">[] {
  const bulkPairingId = ofCollection[0]?.input.bulk_pairing_id
  const end = ofCollection.findIndex((effect) => effect.input.bulk_pairing_id !== bulkPairingId)
  return ofCollection.slice(0, end === -1 ? undefined : end).slice(0, maxUnits)
}

/**
 * Returns the part of a batch before the first older unit that is missing from it: that unit still waits in another
 * lane, which had the collection before, and has yet to move here.
 */
async function withoutOvertaking(
  queries: Queries,
  batch: Effect<"issueUnit">[],
): Promise<Effect<"issueUnit">[]> {
  const [first] = batch
  if (!first) return []
  const ids = new Set(batch.map(({ id }) => id))
  const oldest = await inLine(queries, { collection_id: first.input.collection_id, limit: batch.length })
  const missing = oldest.find(({ id }) => !ids.has(id))
  return missing ? batch.filter(({ id }) => id < missing.id) : batch
}

const inLine = query((db, { collection_id, limit }: Given<{ collection_id: string; limit: number }>) =>
  db
    .select({ id: effects.id })
    .from(effects)
    .where(
      and(
        sql`${effects.input} ->> 'collection_id' = ${collection_id}`,
        eq(effects.src, "issueUnit"),
        eq(effects.status, "open"),
        isNull(effects.transaction_id),
      ),
    )
    .orderBy(asc(effects.id))
    .limit(limit),
)

/**
 * Returns the part of a batch before the first serial that a unit already has. That happens if its issuance was
 * confirmed before an older one could be read and a reorganization undid both: it is sent again once the
 * issuance that it builds on is there.
 */
export async function beforeHeldSerials(
  queries: Queries,
  { id, next_serial: first }: CollectionRow,
  batch: Effect<"issueUnit">[],
): Promise<Effect<"issueUnit">[]> {
  const serials = batch.map((_effect, index) => first + index)
  const held = await heldSerials(queries, id, serials)
  const end = serials.findIndex((serial) => held.has(serial))
  return end === -1 ? batch : batch.slice(0, end)
}
