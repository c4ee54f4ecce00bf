import { ownershipStatusOf } from "../../db/ownership.ts"
import { presentContract } from "../collections/present.ts"
import type { UnitListItem, UnitResource, UnitSnapshot } from "./model.ts"
import type { ListedUnit, UnitView } from "./service.ts"

export function presentUnit(unit: UnitView): UnitResource {
  return {
    ...presentUnitSnapshot(unit),
    product_id: unit.product_id,
    chip_id: unit.chip_id,
    description: unit.description,
    image_url: unit.image_url,
    metadata: unit.metadata,
    ownership: {
      status: ownershipStatusOf(unit),
      owner: unit.owner,
      updated_at: unit.ownership_updated_at?.toISOString() ?? null,
    },
  }
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
