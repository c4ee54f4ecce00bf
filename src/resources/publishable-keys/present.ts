import type { PublishableKeyRow } from "../../db/schema.ts"
import type { PublishableKeyResource } from "./model.ts"

export function presentPublishableKey(row: PublishableKeyRow): PublishableKeyResource {
  return {
    id: row.id,
    key: row.key,
    mode: row.mode,
    name: row.name,
    created_at: row.created_at.toISOString(),
  }
}
