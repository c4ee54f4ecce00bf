import { and, eq, gt, isNull, lte, or } from "drizzle-orm"
import { getAddress } from "viem"
import { type MetadataRefreshRow, metadataRefreshes } from "../../db/chain-schema.ts"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { collections } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { startActor } from "../../engine/actors/runtime.ts"
import { ChainUnreachable } from "../../engine/chain/rpc.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Context } from "../../platform/context.ts"
import { within } from "../../platform/deadline.ts"
import { ApiError, TooSoon } from "../../platform/errors.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import { getCollection } from "../collections/service.ts"

/**
 * Checks that the contract can announce changes, before the database transaction that records the refresh. Throws
 * `collection.not_active`, `metadata_refresh.unsupported` or `Unavailable`.
 */
export async function prepareMetadataRefresh(
  { db, chains }: Context,
  caller: Caller,
  collectionId: string,
): Promise<void> {
  const { status, chain_id, address } = await getCollection(db.read, caller, collectionId)
  if (status !== "active") throw new ApiError("collection.not_active")
  const chain = chains.get(chain_id)
  if (!chain) throw new Unavailable(`chain ${chain_id} is not configured`)
  const silent = () => new Unavailable(`chain ${chain_id} did not answer in time`)
  const asked = within(chain.announcesMetadata(getAddress(address)), chainPatienceMilliseconds, silent)
  const isAble = await asked.catch((error) => {
    throw error instanceof ChainUnreachable ? silent() : error
  })
  if (!isAble) throw new ApiError("metadata_refresh.unsupported")
}

const chainPatienceMilliseconds = 3_000

/** Records a refresh and starts it, at most once a minute per collection. Throws `rate_limit.exceeded`. */
export async function createMetadataRefresh(
  turn: Turn,
  caller: Caller,
  collectionId: string,
): Promise<MetadataRefreshRow> {
  const {
    id: collection_id,
    lane_id,
    metadata_refreshed_at,
  } = await getCollection(turn.tx, caller, collectionId)
  const [taken] = await takeItsTurn(turn.tx, {
    id: collection_id,
    metadata_refreshed_at: turn.at,
    before: new Date(turn.at.getTime() - pauseMilliseconds),
    after: new Date(turn.at.getTime() + pauseMilliseconds),
  })
  if (!taken) {
    const since = turn.at.getTime() - (metadata_refreshed_at ?? turn.at).getTime()
    throw new TooSoon(
      "rate_limit.exceeded",
      "The metadata of a collection can be refreshed at most once a minute.",
      pauseMilliseconds - since,
    )
  }

  const refresh: MetadataRefreshRow = {
    id: newId(),
    organization_id: caller.organization_id,
    collection_id,
    status: "prepared",
    transaction_hash: null,
    failure: null,
    created_at: turn.at,
    updated_at: turn.at,
  }
  await turn.tx.insert(metadataRefreshes).values(refresh)
  await startActor(turn, {
    id: refresh.id,
    machine: "metadata-refresh",
    organization_id: caller.organization_id,
    input: { lane_id, collection_id },
  })
  return refresh
}

const pauseMilliseconds = 60_000

type Wanted = { id: string; metadata_refreshed_at: Date; before: Date; after: Date }

/**
 * Takes the collection's next refresh in one statement. Ignores times that are too far ahead, which are from before the
 * clock was set back.
 */
const takeItsTurn = query((db, { id, metadata_refreshed_at, before, after }: Given<Wanted>) =>
  db
    .update(collections)
    .set({ metadata_refreshed_at })
    .where(
      and(
        eq(collections.id, id),
        or(
          isNull(collections.metadata_refreshed_at),
          lte(collections.metadata_refreshed_at, before),
          gt(collections.metadata_refreshed_at, after),
        ),
      ),
    )
    .returning({ id: collections.id }),
)

/** Returns one of the caller's own refreshes. Throws `metadata_refresh.not_found`. */
export async function getMetadataRefresh(
  queries: Queries,
  caller: Caller,
  { collection_id, refresh_id }: { collection_id: string; refresh_id: string },
): Promise<MetadataRefreshRow> {
  const collection = await getCollection(queries, caller, collection_id)
  const id = parseId(refresh_id)
  const [refresh] = id ? await refreshOf(queries, { id, collection_id: collection.id }) : []
  if (!refresh) throw new ApiError("metadata_refresh.not_found")
  return refresh
}

const refreshOf = query((db, { id, collection_id }: Given<{ id: string; collection_id: string }>) =>
  db
    .select()
    .from(metadataRefreshes)
    .where(and(eq(metadataRefreshes.id, id), eq(metadataRefreshes.collection_id, collection_id))),
)
