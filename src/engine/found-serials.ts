import { and, asc, eq, inArray, isNull } from "drizzle-orm"
import { foundSerials } from "../db/chain-schema.ts"
import type { Queries } from "../db/database.ts"
import { units } from "../db/schema.ts"

export type FoundSerial = Pick<typeof foundSerials.$inferSelect, "serial" | "chip_id" | "transaction_hash">

/**
 * The serials of a collection that the chain has for chips and no unit has yet, by chip id, as after an older back-up was
 * restored.
 */
export async function foundSerialsOf(
  queries: Queries,
  collectionId: string,
  chipIds: string[],
): Promise<Map<string, FoundSerial>> {
  const { serial, chip_id, transaction_hash } = foundSerials
  const rows = await queries
    .select({ serial, chip_id, transaction_hash })
    .from(foundSerials)
    .leftJoin(units, and(eq(units.collection_id, collectionId), eq(units.serial, serial)))
    .where(and(eq(foundSerials.collection_id, collectionId), inArray(chip_id, chipIds), isNull(units.id)))
    .orderBy(asc(serial))
  // The lowest one, should the chain have bound a chip twice.
  return new Map(rows.reverse().map((row) => [row.chip_id, row]))
}
