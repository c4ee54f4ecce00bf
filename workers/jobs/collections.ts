import { eq, inArray } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { type CollectionRow, collections } from "../../src/db/schema.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"

/** Returns the collection that an effect is for. Throws if there is none. */
export async function collectionOf(
  queries: Queries,
  { src, input }: Effect<"issueUnit"> | Effect<"deployCollection"> | Effect<"refreshMetadata">,
): Promise<CollectionRow> {
  const { collection_id: id } = input
  const [collection] = await collectionOfId(queries, { id })
  if (!collection) throw new Error(`there is no collection ${id} for ${src}`)
  return collection
}

const collectionOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(collections).where(eq(collections.id, id)),
)

/** Selects the addresses of collections, in no particular order. */
export const addressesOf = query((db, { ids }: Given<{ ids: string[] }>) =>
  db
    .select({ id: collections.id, address: collections.address })
    .from(collections)
    .where(inArray(collections.id, ids)),
)
