import { and, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Page, type PageOf, pagesOf } from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import { type CollectionRow, collections, type OrganizationRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { startActor } from "../../engine/actors/runtime.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Chain, Chains } from "../../platform/chain.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { canonicalImage, canonicalRedirect } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { holdToQuota } from "../quotas/service.ts"
import { organizationOf } from "../settings/service.ts"
import type { CreateCollectionBody, UpdateCollectionBody } from "./model.ts"
import { symbolFrom } from "./symbol.ts"

/** Registers a collection and starts the deployment of its contract, whose address is known at once. */
export async function createCollection(
  turn: Turn,
  chains: Chains,
  caller: Caller,
  body: CreateCollectionBody,
): Promise<CollectionRow> {
  const fields = editableFields(body)
  const organization = await organizationOf(turn.tx, caller)
  const chain = chainFor(organization, chains, body.chain_id)
  await holdToQuota(turn, organization, "collections", 1)

  const id = newId()
  const symbol = body.symbol ?? symbolFrom(body.name)
  const lane_id = chain.issuanceLaneId(id)
  const collection: CollectionRow = {
    id,
    organization_id: caller.organization_id,
    external_id: body.external_id ?? null,
    name: body.name,
    symbol,
    chain_id: chain.chain_id,
    address: chain.collectionAddress({ id, name: body.name, symbol }),
    factory_address: chain.factory_address,
    lane_id,
    next_serial: 1,
    status: "deploying",
    redirect_url: null,
    deployed_block: null,
    description: null,
    image_url: null,
    failure: null,
    metadata_refreshed_at: null,
    ...fields,
    created_at: turn.at,
  }
  const inserted = await insertCollection(turn.tx, collection)
  if (inserted.length === 0) throw new ApiError("collection.already_exists")
  await startActor(turn, {
    id,
    machine: "collection-contract",
    organization_id: caller.organization_id,
    input: { collection_id: id, lane_id },
  })
  return collection
}

/** Returns one of the caller's own collections. Throws `collection.not_found`. */
export async function getCollection(
  queries: Queries,
  caller: Caller,
  collectionId: string,
): Promise<CollectionRow> {
  const id = parseId(collectionId)
  const [collection] = id ? await ownCollection(queries, { id, organization_id: caller.organization_id }) : []
  if (!collection) throw new ApiError("collection.not_found")
  return collection
}

const ownCollection = query((db, given: Given<{ id: string; organization_id: string }>) =>
  db
    .select()
    .from(collections)
    .where(and(eq(collections.id, given.id), eq(collections.organization_id, given.organization_id))),
)

const insertCollection = query((db, row: Given<CollectionRow>) =>
  db.insert(collections).values(row).onConflictDoNothing().returning({ id: collections.id }),
)

export async function listCollections(
  queries: Queries,
  caller: Caller,
  { external_id, page }: { external_id?: string | undefined; page: Page },
): Promise<PageOf<CollectionRow>> {
  const { organization_id } = caller
  return await collectionsOf(queries, { organization_id, external_id }, page)
}

type Listed = { organization_id: string; external_id: string | undefined }

const collectionsOf = pagesOf(collections, ({ organization_id, external_id }: Given<Listed>) =>
  and(
    eq(collections.organization_id, organization_id),
    external_id && eq(collections.external_id, external_id),
  ),
)

/** Changes only the given fields. Throws `collection.not_found`, `validation.failed`. */
export async function updateCollection(
  turn: Turn,
  caller: Caller,
  collectionId: string,
  body: UpdateCollectionBody,
): Promise<CollectionRow> {
  const [collection] = await turn.tx
    .update(collections)
    .set(editableFields(body))
    .where(own(caller, collectionId))
    .returning()
  if (!collection) throw new ApiError("collection.not_found")
  return collection
}

/** Returns the given fields as stored. Throws `validation.failed` on an invalid field. */
export function editableFields(body: CreateCollectionBody | UpdateCollectionBody) {
  return {
    ...(body.redirect_url !== undefined && { redirect_url: canonicalRedirect(body.redirect_url) }),
    ...(body.description !== undefined && { description: body.description }),
    ...(body.image_url !== undefined && { image_url: canonicalImage(body.image_url) }),
  }
}

/** Returns the chain that the caller chose, or the organization's default. Throws `validation.failed` on `chain_id`. */
function chainFor(
  { default_chain_id, allowed_chain_ids }: OrganizationRow,
  chains: Chains,
  chosenId: number | undefined,
): Chain {
  const chainId = chosenId ?? default_chain_id
  if (chainId === null) throw fieldError("chain_id", "is required: this organization has no default network")
  if (chosenId !== undefined && !allowed_chain_ids.includes(chosenId))
    throw fieldError(
      "chain_id",
      `must be one of the allowed networks: ${allowed_chain_ids.join(", ") || "none"}`,
    )
  const chain = chains.get(chainId)
  if (!chain) throw fieldError("chain_id", `network ${chainId} is not configured in this service`)
  return chain
}

function own(caller: Caller, collectionId: string) {
  const id = parseId(collectionId)
  if (!id) throw new ApiError("collection.not_found")
  return and(eq(collections.id, id), eq(collections.organization_id, caller.organization_id))
}
