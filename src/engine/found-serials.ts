import { and, asc, eq, inArray, isNotNull, isNull, ne, or } from "drizzle-orm"
import { foundSerials } from "../db/chain-schema.ts"
import type { Queries } from "../db/database.ts"
import { type Given, query } from "../db/query.ts"
import { transactionAttempts, transactions, units } from "../db/schema.ts"

export type FoundSerial = Pick<typeof foundSerials.$inferSelect, "serial" | "chip_id" | "transaction_hash">

/**
 * Returns, by chip id, serials that the chain has issued for these chips but no unit has, as after a restored back-up.
 */
export async function foundSerialsOf(
  queries: Queries,
  collectionId: string,
  chipIds: string[],
): Promise<Map<string, FoundSerial>> {
  const rows = await serialsWithoutUnit(queries, { collection_id: collectionId, chip_ids: chipIds })
  // If the chain bound a chip to several serials, the lowest one wins.
  return new Map(rows.reverse().map((row) => [row.chip_id, row]))
}

type Asked = { collection_id: string; chip_ids: string[] }

const serialsWithoutUnit = query((db, { collection_id, chip_ids }: Given<Asked>) => {
  const { serial, chip_id, transaction_hash } = foundSerials
  return db
    .select({ serial, chip_id, transaction_hash })
    .from(foundSerials)
    .leftJoin(units, and(eq(units.collection_id, collection_id), eq(units.serial, serial)))
    .where(and(eq(foundSerials.collection_id, collection_id), inArray(chip_id, chip_ids), isNull(units.id)))
    .orderBy(asc(serial))
})

/**
 * Returns the ids of the lanes' own transactions among these, by hash. Lanes issue their content again if a
 * reorganization undoes it; other transactions may have been lost, as with a restored back-up.
 */
export async function ownIssuances(
  queries: Queries,
  hashes: readonly string[],
): Promise<Map<string, string>> {
  const rows = await issuancesOfHashes(queries, { hashes: [...hashes] })
  return new Map(rows.map((row) => [row.hash, row.id]))
}

const issuancesOfHashes = query((db, { hashes }: Given<{ hashes: string[] }>) => {
  const { id, kind, status, block_hash } = transactions
  const isWatched = or(ne(status, "final"), isNotNull(block_hash))
  return db
    .select({ hash: transactionAttempts.hash, id })
    .from(transactionAttempts)
    .innerJoin(transactions, eq(id, transactionAttempts.transaction_id))
    .where(and(inArray(transactionAttempts.hash, hashes), eq(kind, "issueUnit"), isWatched))
})
