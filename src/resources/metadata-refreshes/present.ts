import type { MetadataRefreshRow } from "../../db/chain-schema.ts"
import type { MetadataRefreshResource } from "./model.ts"

export function presentMetadataRefresh(refresh: MetadataRefreshRow): MetadataRefreshResource {
  return {
    id: refresh.id,
    collection_id: refresh.collection_id,
    status: refresh.status,
    transaction_hash: refresh.transaction_hash,
    failure: refresh.failure,
    created_at: refresh.created_at.toISOString(),
    updated_at: refresh.updated_at.toISOString(),
  }
}
