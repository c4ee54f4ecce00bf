import { type Static, Type } from "@sinclair/typebox"
import { contract, presentContract } from "../collections/model.ts"
import { attributes, chipId, externalId, id, instant, name, nullable, redirectUrl } from "../fields.ts"
import type { ListedUnit, UnitView } from "./service.ts"

const editable = {
  external_id: Type.Optional(nullable(externalId)),
  name: Type.Optional(nullable(name)),
  attributes: Type.Optional(nullable(attributes)),
  redirect_url: Type.Optional(nullable(redirectUrl)),
  product_id: Type.Optional(nullable(id)),
}

export const createUnitBody = Type.Object({ collection_id: id, ...editable }, { additionalProperties: false })
export type CreateUnitBody = Static<typeof createUnitBody>

export const updateUnitBody = Type.Object(editable, { additionalProperties: false, minProperties: 1 })
export type UpdateUnitBody = Static<typeof updateUnitBody>

const token = Type.Object(
  {
    status: Type.Union([Type.Literal("pending"), Type.Literal("active")]),
    serial: nullable(Type.Integer()),
  },
  { additionalProperties: false },
)

const membership = Type.Object(
  { id, name: nullable(Type.String()), external_id: nullable(Type.String()), contract, token },
  { additionalProperties: false },
)

const snapshot = {
  id,
  external_id: nullable(Type.String()),
  name: nullable(Type.String()),
  attributes: nullable(attributes),
  created_at: instant,
  redirect_url: nullable(Type.String()),
  collection: nullable(membership),
}

/** A unit inside a chip. */
export const unitSnapshot = Type.Object(snapshot, { additionalProperties: false })
export type UnitSnapshot = Static<typeof unitSnapshot>

/** A unit at the unit endpoints and in a tap. */
export const unitResource = Type.Object(
  { ...snapshot, product_id: nullable(id), chip_id: nullable(chipId) },
  { additionalProperties: false },
)
export type UnitResource = Static<typeof unitResource>

/** A unit in a list of units. */
export const unitListItem = Type.Object(
  { id, external_id: nullable(Type.String()), name: nullable(Type.String()), created_at: instant },
  { additionalProperties: false },
)
export type UnitListItem = Static<typeof unitListItem>

export function presentUnit(unit: UnitView): UnitResource {
  return { ...presentUnitSnapshot(unit), product_id: unit.product_id, chip_id: unit.chip_id }
}

export function presentUnitSnapshot(unit: UnitView): UnitSnapshot {
  return {
    id: unit.id,
    external_id: unit.external_id,
    name: unit.name,
    attributes: unit.attributes,
    created_at: unit.created_at.toISOString(),
    redirect_url: unit.redirect_url,
    collection: unit.collection && {
      id: unit.collection.id,
      name: unit.collection.name,
      external_id: unit.collection.external_id,
      contract: presentContract(unit.collection),
      token: { status: unit.token_status, serial: unit.serial },
    },
  }
}

export function presentListedUnit(unit: ListedUnit): UnitListItem {
  return {
    id: unit.id,
    external_id: unit.external_id,
    name: unit.name,
    created_at: unit.created_at.toISOString(),
  }
}
