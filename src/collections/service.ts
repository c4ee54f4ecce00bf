import { and, eq } from "drizzle-orm"
import { startActor } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import type { Chain, Chains } from "../chain/chains.ts"
import type { Queries } from "../db/database.ts"
import { keysetAfter, newestFirst, type Page, type PageOf, pageOf } from "../db/page.ts"
import { collections, organizations } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError, fieldError } from "../errors.ts"
import { canonicalRedirect } from "../fields.ts"
import { newId, parseId } from "../ids.ts"
import { holdToQuota } from "../quotas.ts"
import type { CreateCollectionBody, UpdateCollectionBody } from "./model.ts"
import { symbolFrom } from "./symbol.ts"

export type CollectionRow = typeof collections.$inferSelect

/**
 * Registers a collection and starts the deployment of its contract, whose address is known at once.
 * Throws `validation.failed` on `chain_id` or `redirect_url`, `quota.exceeded`, `collection.already_exists`.
 */
export async function createCollection(
  turn: Turn,
  chains: Chains,
  caller: Caller,
  body: CreateCollectionBody,
): Promise<CollectionRow> {
  const redirect_url = canonicalRedirect(body.redirect_url ?? null)
  const chain = await chainFor(turn, chains, caller, body.chain_id)
  await holdToQuota(turn, caller, "quota_collections", 1, { table: collections })

  const id = newId()
  const symbol = body.symbol ?? symbolFrom(body.name)
  const lane_id = chain.issuanceLaneId(id)
  const [collection] = await turn.tx
    .insert(collections)
    .values({
      id,
      organization_id: caller.organization_id,
      external_id: body.external_id ?? null,
      name: body.name,
      symbol,
      chain_id: chain.chain_id,
      address: chain.collectionAddress({ id, name: body.name, symbol }),
      lane_id,
      next_serial: 1,
      status: "deploying",
      redirect_url,
      created_at: turn.at,
    })
    .onConflictDoNothing()
    .returning()
  if (!collection) throw new ApiError("collection.already_exists")
  await startActor(turn, {
    id,
    machine: "collection-contract",
    organization_id: caller.organization_id,
    input: { collection_id: id, lane_id },
  })
  return collection
}

/** Throws `collection.not_found`. */
export async function getCollection(
  queries: Queries,
  caller: Caller,
  collectionId: string,
): Promise<CollectionRow> {
  const [collection] = await queries.select().from(collections).where(own(caller, collectionId))
  if (!collection) throw new ApiError("collection.not_found")
  return collection
}

export async function listCollections(
  queries: Queries,
  caller: Caller,
  { external_id, page }: { external_id?: string | undefined; page: Page },
): Promise<PageOf<CollectionRow>> {
  const rows = await queries
    .select()
    .from(collections)
    .where(
      and(
        eq(collections.organization_id, caller.organization_id),
        external_id === undefined ? undefined : eq(collections.external_id, external_id),
        keysetAfter(collections, page.after),
      ),
    )
    .orderBy(...newestFirst(collections))
    .limit(page.limit + 1)
  return pageOf(rows, page.limit)
}

/** Throws `validation.failed` on `redirect_url`, `collection.not_found`. */
export async function updateCollection(
  turn: Turn,
  caller: Caller,
  collectionId: string,
  body: UpdateCollectionBody,
): Promise<CollectionRow> {
  const [collection] = await turn.tx
    .update(collections)
    .set({ redirect_url: canonicalRedirect(body.redirect_url) })
    .where(own(caller, collectionId))
    .returning()
  if (!collection) throw new ApiError("collection.not_found")
  return collection
}

/** The network the caller chose, or the organization's own; both must be configured here. */
async function chainFor(
  turn: Turn,
  chains: Chains,
  caller: Caller,
  chosenId: number | undefined,
): Promise<Chain> {
  const [organization] = await turn.tx
    .select({ default_id: organizations.default_chain_id, allowed_ids: organizations.allowed_chain_ids })
    .from(organizations)
    .where(eq(organizations.id, caller.organization_id))
  const chainId = chosenId ?? organization?.default_id
  if (!organization || chainId === undefined || chainId === null)
    throw fieldError("chain_id", "is needed: this organization has no default network")
  if (chosenId !== undefined && !organization.allowed_ids.includes(chosenId))
    throw fieldError(
      "chain_id",
      `must be one of the allowed networks: ${organization.allowed_ids.join(", ") || "none"}`,
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
