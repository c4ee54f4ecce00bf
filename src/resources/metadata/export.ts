import { and, eq, inArray } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { collections, units } from "../../db/schema.ts"
import { ApiError } from "../../platform/errors.ts"
import { parseId } from "../../platform/ids.ts"
import type { PublicCollection, PublicToken } from "./service.ts"

/** Returns any organization's collection and the last serial assigned. Throws `collection.not_found`. */
export async function exportedCollection(
  queries: Queries,
  collectionId: string,
): Promise<{ collection: PublicCollection; last_serial: number }> {
  const id = parseId(collectionId)
  const [found] = id ? await queries.select().from(collections).where(eq(collections.id, id)) : []
  if (!found) throw new ApiError("collection.not_found")
  const { name, description, image_url, symbol, chain_id, address, next_serial } = found
  return {
    collection: { name, description, image_url, symbol, chain_id, address },
    last_serial: next_serial - 1,
  }
}

/** Yields all issued tokens by serial. */
export async function* exportedTokens(
  queries: Queries,
  collectionId: string,
  { collection, last_serial }: { collection: PublicCollection; last_serial: number },
): AsyncGenerator<PublicToken> {
  for (let first = 1; first <= last_serial; first += atOnce) {
    const serials = Array.from(
      { length: Math.min(atOnce, last_serial - first + 1) },
      (_, index) => first + index,
    )
    const { name, description, image_url, metadata, serial } = units
    const rows = await queries
      .select({ name, description, image_url, metadata, serial })
      .from(units)
      .where(and(eq(units.collection_id, collectionId.toLowerCase()), inArray(serial, serials)))
    const known = new Map(rows.map((row) => [row.serial, row]))
    for (const each of serials) {
      const row = known.get(each)
      if (row) yield { ...row, serial: each, collection }
    }
  }
}

const atOnce = 200
