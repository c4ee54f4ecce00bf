import { and, eq, inArray, ne, notExists, type SQL } from "drizzle-orm"
import { alias } from "drizzle-orm/pg-core"
import type { Builder, Queries } from "../../db/database.ts"
import { type OwnershipStatus, ownershipStatusIs } from "../../db/ownership.ts"
import {
  equalUnindexed,
  type GivenPage,
  givenPage,
  keysetAfter,
  newestFirst,
  type Page,
  type PageOf,
  pageOf,
} from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import {
  type ChipRow,
  type CollectionRow,
  chips,
  collections,
  products,
  type UnitRow,
  units,
} from "../../db/schema.ts"
import { ownershipStatuses } from "../../db/statuses.ts"
import type { Turn } from "../../db/turn.ts"
import { startActor } from "../../engine/actors/runtime.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError, fieldError, formError } from "../../platform/errors.ts"
import {
  canonicalChipId,
  canonicalId,
  canonicalImage,
  canonicalRedirect,
  checkAttributes,
  checkMetadata,
} from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { getCollection } from "../collections/service.ts"
import { holdToQuota } from "../quotas/service.ts"
import { organizationOf } from "../settings/service.ts"
import type { CreateUnitBody, UpdateUnitBody } from "./model.ts"

/** A unit with its collection and the chip paired to it now. `is_test`: that chip is a test chip. */
export type UnitView = UnitRow & {
  collection: CollectionOfUnit | null
  chip_id: string | null
  is_test: boolean
}

/** The columns of a collection that are read with its units. Each one makes every tap slower. */
export const collectionColumns = {
  id: collections.id,
  name: collections.name,
  external_id: collections.external_id,
  redirect_url: collections.redirect_url,
  chain_id: collections.chain_id,
  address: collections.address,
  status: collections.status,
}

export type CollectionOfUnit = Pick<CollectionRow, keyof typeof collectionColumns>

export type ListedUnit = Pick<UnitRow, "id" | "external_id" | "name" | "created_at">

/** Registers a unit of a collection. Its token is issued once a chip is paired. */
export async function createUnit(turn: Turn, caller: Caller, body: CreateUnitBody): Promise<UnitView> {
  const fields = editableFields(body)
  const collection = await getCollection(turn.tx, caller, body.collection_id)
  await requireProduct(turn, caller, fields.product_id)
  await holdToQuota(turn, await organizationOf(turn.tx, caller), "units", 1)

  const unit: UnitRow = {
    id: newId(),
    organization_id: caller.organization_id,
    collection_id: collection.id,
    product_id: null,
    external_id: null,
    name: null,
    attributes: null,
    redirect_url: null,
    description: null,
    image_url: null,
    metadata: null,
    ...fields,
    token_status: "pending",
    serial: null,
    claimed: false,
    owner: null,
    ownership_updated_at: null,
    owner_block: null,
    created_at: turn.at,
  }
  const inserted = await insertUnit(turn.tx, unit)
  if (inserted.length === 0) throw new ApiError("unit.already_exists")
  await startActor(turn, {
    id: unit.id,
    machine: "unit-token",
    organization_id: caller.organization_id,
    input: { collection_id: collection.id, lane_id: collection.lane_id },
  })
  return unitViewOf({ unit, collection, chip: null })
}

const insertUnit = query((db, row: Given<UnitRow>) =>
  db.insert(units).values(row).onConflictDoNothing().returning({ id: units.id }),
)

/** Returns one of the caller's own units. Throws `unit.not_found`. */
export async function getUnit(
  queries: Queries,
  caller: Pick<Caller, "organization_id">,
  unitId: string,
): Promise<UnitView> {
  const id = parseId(unitId)
  const [found] = id ? await ownUnit(queries, { id, organization_id: caller.organization_id }) : []
  if (!found) throw new ApiError("unit.not_found")
  return unitViewOf(found)
}

/** Returns a unit of any organization, or null. */
export async function unitOfId(queries: Queries, id: string): Promise<UnitView | null> {
  const [found] = await unitById(queries, { id })
  return found ? unitViewOf(found) : null
}

type Found = {
  unit: UnitRow
  collection: CollectionOfUnit | null
  chip: Pick<ChipRow, "chip_id" | "is_test"> | null
}

/** Returns a unit from the rows of a join. */
export function unitViewOf({ unit, collection, chip }: Found): UnitView {
  return { ...unit, collection, chip_id: chip?.chip_id ?? null, is_test: chip?.is_test ?? false }
}

const unitById = query((db, { id }: Given<{ id: string }>) => selectUnits(db).where(eq(units.id, id)))

const ownUnit = query((db, given: Given<{ id: string; organization_id: string }>) =>
  selectUnits(db).where(and(eq(units.id, given.id), eq(units.organization_id, given.organization_id))),
)

function selectUnits(db: Builder) {
  return db
    .select({
      unit: units,
      collection: collectionColumns,
      chip: { chip_id: chips.chip_id, is_test: chips.is_test },
    })
    .from(units)
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .leftJoin(chips, eq(chips.unit_id, units.id))
}

/** Which units to list, as query strings. */
type UnitFilters = {
  external_id?: string | undefined
  collection_id?: string | undefined
  chip_id?: string | undefined
  token_status?: UnitRow["token_status"] | undefined
  ownership_status?: OwnershipStatus | undefined
}

/** Lists the units that match all filters, newest first. Throws `validation.failed` for a malformed id. */
export async function listUnits(
  queries: Queries,
  caller: Caller,
  { page, ...filters }: UnitFilters & { page: Page },
): Promise<PageOf<ListedUnit>> {
  const { external_id, collection_id, chip_id } = filters
  const asked = {
    organization_id: caller.organization_id,
    external_id,
    collection_id: collection_id === undefined ? undefined : canonicalId(collection_id, "collection_id"),
    chip_id: chip_id === undefined ? undefined : canonicalChipId(chip_id),
    ...givenPage(page),
  }
  const statuses = statusesFor(filters)
  if (statuses === null) return pageOf(await unitsOf(queries, asked), page.limit)
  const found = new Map<string, ListedUnit>()
  // Each status has an index. Units move forward through the statuses, unless a reorganization undoes a claim, so
  // reading them in that order misses no other unit.
  for (const ownership_status of statuses)
    for (const unit of await unitsOf(queries, { ...asked, ownership_status })) found.set(unit.id, unit)
  return pageOf([...found.values()].sort(newerFirst).slice(0, page.limit + 1), page.limit)
}

/** Returns the ownership statuses that the filters allow, in the order that units pass through them; null for all. */
function statusesFor(filters: UnitFilters): OwnershipStatus[] | null {
  const { collection_id, token_status, ownership_status } = filters
  if (!collection_id && !token_status && !ownership_status) return null
  return ownershipStatuses.filter(
    (each) =>
      (!ownership_status || each === ownership_status) &&
      (!token_status || (each === "unissued") === (token_status === "pending")),
  )
}

function newerFirst(one: ListedUnit, other: ListedUnit): number {
  return other.created_at.getTime() - one.created_at.getTime() || (one.id < other.id ? 1 : -1)
}

type Listed = GivenPage & {
  organization_id: string
  external_id: string | undefined
  collection_id: string | undefined
  chip_id: string | undefined
  ownership_status?: OwnershipStatus
}

const unitsOf = query((db, given: Given<Listed>) =>
  db
    .select({
      id: units.id,
      external_id: units.external_id,
      name: units.name,
      created_at: units.created_at,
    })
    .from(units)
    .where(
      and(
        ofOrganization(given),
        given.external_id && eq(units.external_id, given.external_id),
        given.collection_id && eq(units.collection_id, given.collection_id),
        given.chip_id &&
          eq(units.id, db.select({ id: chips.unit_id }).from(chips).where(eq(chips.chip_id, given.chip_id))),
        given.ownership_status && ownershipStatusIs(given.ownership_status),
        keysetAfter(units, given),
      ),
    )
    .orderBy(...newestFirst(units))
    .limit(given.rows),
)

/**
 * Returns the condition on the organization. A collection's index finds fewer rows than the organization's, and the
 * index of external ids includes the organization.
 */
function ofOrganization({ organization_id, collection_id, external_id }: Given<Listed>): SQL {
  return collection_id && !external_id
    ? equalUnindexed(units.organization_id, organization_id)
    : eq(units.organization_id, organization_id)
}

/** Changes only the given fields. Throws `unit.not_found`, `unit.already_exists`, `validation.failed`. */
export async function updateUnit(
  turn: Turn,
  caller: Caller,
  unitId: string,
  body: UpdateUnitBody,
): Promise<UnitView> {
  const fields = editableFields(body)
  if (Object.keys(fields).length === 0) throw formError("must change at least one field")
  const { id } = await getUnit(turn.tx, caller, unitId)
  await requireProduct(turn, caller, fields.product_id)

  const [changed] = await turn.tx
    .update(units)
    .set(fields)
    .where(and(own(caller, id), externalIdIsFree(turn, caller, id, fields.external_id)))
    .returning({ id: units.id })
  if (!changed) throw new ApiError("unit.already_exists")
  return await getUnit(turn.tx, caller, id)
}

/** Returns those of these units that are the caller's, in no particular order. */
export async function findUnits(queries: Queries, caller: Caller, unitIds: string[]): Promise<UnitView[]> {
  const found = await selectUnits(queries).where(
    and(inArray(units.id, unitIds), eq(units.organization_id, caller.organization_id)),
  )
  return found.map(unitViewOf)
}

/** Returns the given fields as stored. Throws `validation.failed` on an invalid field. */
export function editableFields(body: UpdateUnitBody) {
  if (body.attributes !== undefined) checkAttributes(body.attributes)
  if (body.metadata !== undefined) checkMetadata(body.metadata)
  return {
    ...(body.external_id !== undefined && { external_id: body.external_id }),
    ...(body.name !== undefined && { name: body.name }),
    ...(body.attributes !== undefined && { attributes: body.attributes }),
    ...(body.redirect_url !== undefined && { redirect_url: canonicalRedirect(body.redirect_url) }),
    ...(body.product_id !== undefined && {
      product_id: body.product_id && canonicalId(body.product_id, "product_id"),
    }),
    ...(body.description !== undefined && { description: body.description }),
    ...(body.image_url !== undefined && { image_url: canonicalImage(body.image_url) }),
    ...(body.metadata !== undefined && { metadata: body.metadata }),
  }
}

async function requireProduct(
  turn: Turn,
  caller: Caller,
  productId: string | null | undefined,
): Promise<void> {
  if (!productId) return
  const [product] = await turn.tx
    .select({ id: products.id })
    .from(products)
    .where(and(eq(products.id, productId), eq(products.organization_id, caller.organization_id)))
  if (!product) throw fieldError("product_id", "is not a product of the organization")
}

/** Returns a condition that no row meets if another unit of the organization has the external id. */
function externalIdIsFree(
  turn: Turn,
  caller: Caller,
  unitId: string,
  externalId: string | null | undefined,
): SQL | undefined {
  if (!externalId) return undefined
  const others = alias(units, "others")
  const holder = turn.tx
    .select({ id: others.id })
    .from(others)
    .where(
      and(
        eq(others.organization_id, caller.organization_id),
        eq(others.external_id, externalId),
        ne(others.id, unitId),
      ),
    )
  return notExists(holder)
}

function own(caller: Caller, unitId: string) {
  const id = parseId(unitId)
  if (!id) throw new ApiError("unit.not_found")
  return and(eq(units.id, id), eq(units.organization_id, caller.organization_id))
}
