import type { CollectionRow } from "../../db/schema.ts"
import type { CollectionResource, Contract } from "./model.ts"

export function presentCollection(collection: CollectionRow): CollectionResource {
  return {
    id: collection.id,
    contract: presentContract(collection),
    name: collection.name,
    external_id: collection.external_id,
    redirect_url: collection.redirect_url,
    symbol: collection.symbol,
    description: collection.description,
    image_url: collection.image_url,
    failure: collection.failure,
    created_at: collection.created_at.toISOString(),
  }
}

export function presentContract(collection: Pick<CollectionRow, keyof Contract>): Contract {
  return { address: collection.address, chain_id: collection.chain_id, status: collection.status }
}
