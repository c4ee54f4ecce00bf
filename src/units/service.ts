import { and, eq, getTableColumns, ne, notExists, type SQL } from "drizzle-orm"
import { alias } from "drizzle-orm/pg-core"
import { startActor } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import { type CollectionRow, getCollection } from "../collections/service.ts"
import type { Queries } from "../db/database.ts"
import { keysetAfter, newestFirst, type Page, type PageOf, pageOf } from "../db/page.ts"
import { chips, collections, products, units } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError, fieldError, formError } from "../errors.ts"
import { canonicalId, canonicalRedirect, checkAttributes } from "../fields.ts"
import { newId, parseId } from "../ids.ts"
import { holdToQuota } from "../quotas.ts"
import type { CreateUnitBody, UpdateUnitBody } from "./model.ts"

export type UnitRow = typeof units.$inferSelect

/** A unit with its collection and the chip that is paired to it now. */
export type UnitView = UnitRow & { collection: CollectionRow | null; chip_id: string | null }

export type ListedUnit = Pick<UnitRow, "id" | "external_id" | "name" | "created_at">

/**
 * Registers a unit of a collection; its token is issued once a chip is paired.
 * Throws `validation.failed` on `attributes`, `redirect_url` or `product_id`, `collection.not_found`,
 * `quota.exceeded`, `unit.already_exists`.
 */
export async function createUnit(turn: Turn, caller: Caller, body: CreateUnitBody): Promise<UnitView> {
  const fields = editableFields(body)
  const collection = await getCollection(turn.tx, caller, body.collection_id)
  await requireProduct(turn, caller, fields.product_id)
  await holdToQuota(turn, caller, "quota_units", 1, { table: units })

  const id = newId()
  const [unit] = await turn.tx
    .insert(units)
    .values({
      id,
      organization_id: caller.organization_id,
      collection_id: collection.id,
      ...fields,
      token_status: "pending",
      serial: null,
      claimed: false,
      created_at: turn.at,
    })
    .onConflictDoNothing()
    .returning()
  if (!unit) throw new ApiError("unit.already_exists")
  await startActor(turn, {
    id,
    machine: "unit-token",
    organization_id: caller.organization_id,
    input: { collection_id: collection.id, lane_id: collection.lane_id },
  })
  return { ...unit, collection, chip_id: null }
}

/** Throws `unit.not_found`. */
export async function getUnit(queries: Queries, caller: Caller, unitId: string): Promise<UnitView> {
  const [unit] = await unitViews(queries, own(caller, unitId))
  if (!unit) throw new ApiError("unit.not_found")
  return unit
}

export async function listUnits(
  queries: Queries,
  caller: Caller,
  { external_id, page }: { external_id?: string | undefined; page: Page },
): Promise<PageOf<ListedUnit>> {
  const rows = await queries
    .select({
      id: units.id,
      external_id: units.external_id,
      name: units.name,
      created_at: units.created_at,
    })
    .from(units)
    .where(
      and(
        eq(units.organization_id, caller.organization_id),
        external_id === undefined ? undefined : eq(units.external_id, external_id),
        keysetAfter(units, page.after),
      ),
    )
    .orderBy(...newestFirst(units))
    .limit(page.limit + 1)
  return pageOf(rows, page.limit)
}

/**
 * Changes the fields that are given and leaves the others.
 * Throws `validation.failed`, `unit.not_found`, `unit.already_exists`.
 */
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

/** The units of a condition on `units`, each with its collection and paired chip, in one query. */
export async function unitViews(queries: Queries, where: SQL | undefined): Promise<UnitView[]> {
  return await queries
    .select({ ...getTableColumns(units), collection: collections, chip_id: chips.chip_id })
    .from(units)
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .leftJoin(chips, eq(chips.unit_id, units.id))
    .where(where)
}

/** The given fields as they are stored. */
function editableFields(body: UpdateUnitBody) {
  if (body.attributes !== undefined) checkAttributes(body.attributes)
  return {
    ...(body.external_id !== undefined && { external_id: body.external_id }),
    ...(body.name !== undefined && { name: body.name }),
    ...(body.attributes !== undefined && { attributes: body.attributes }),
    ...(body.redirect_url !== undefined && { redirect_url: canonicalRedirect(body.redirect_url) }),
    ...(body.product_id !== undefined && {
      product_id: body.product_id && canonicalId(body.product_id, "product_id"),
    }),
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
  if (!product) throw fieldError("product_id", "there is no such product")
}

/** True of no row when another unit of the organization has the external id. */
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
