import type { ApiKeyRow } from "../../db/schema.ts"

/** Returns an API key as the operator CLI shows it, without its hash. */
export function presentApiKey(apiKey: ApiKeyRow) {
  return {
    id: apiKey.id,
    organization_id: apiKey.organization_id,
    name: apiKey.name,
    hint: apiKey.hint,
    created_at: apiKey.created_at.toISOString(),
    expires_at: apiKey.expires_at?.toISOString() ?? null,
    revoked_at: apiKey.revoked_at?.toISOString() ?? null,
  }
}
