import { and, asc, eq, isNull } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type ApiKeyRow, apiKeys } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { newCredential } from "../../platform/credentials.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { requireName } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { requireOrganization } from "../organizations/service.ts"

/**
 * Creates an API key. `key` is the secret itself, which cannot be shown again. Throws `not_found.resource`,
 * `validation.failed`.
 */
export async function issueApiKey(
  turn: Turn,
  input: { organization_id: string; name: string | null; expires_at?: Date | null },
): Promise<{ id: string; key: string; row: ApiKeyRow }> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  if (input.name !== null) requireName("name", input.name)
  const expires_at = input.expires_at ?? null
  if (expires_at && expires_at <= turn.at) throw fieldError("expires", "must be in the future")
  const { token, hash, hint } = newCredential("api_key")
  const [row] = await turn.tx
    .insert(apiKeys)
    .values({
      id: newId(),
      organization_id: organization.id,
      name: input.name,
      hash,
      hint,
      created_at: turn.at,
      expires_at,
    })
    .returning()
  if (!row) throw new Error("the database stored an API key and did not return it")
  return { id: row.id, key: token, row }
}

/** Returns all API keys of an organization, oldest first, including revoked ones. Throws `not_found.resource`. */
export async function listApiKeys(queries: Queries, organizationId: string): Promise<ApiKeyRow[]> {
  const organization = await requireOrganization(queries, organizationId)
  return await queries
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.organization_id, organization.id))
    .orderBy(asc(apiKeys.created_at), asc(apiKeys.id))
}

/** Revokes an API key. Revoking it again changes nothing. Throws `not_found.resource`. */
export async function revokeApiKey(turn: Turn, apiKeyId: string): Promise<ApiKeyRow> {
  const id = parseId(apiKeyId)
  if (!id) throw noApiKey(apiKeyId)
  await turn.tx
    .update(apiKeys)
    .set({ revoked_at: turn.at })
    .where(and(eq(apiKeys.id, id), isNull(apiKeys.revoked_at)))
  const [row] = await turn.tx.select().from(apiKeys).where(eq(apiKeys.id, id))
  if (!row) throw noApiKey(apiKeyId)
  return row
}

function noApiKey(apiKeyId: string): ApiError {
  return new ApiError("not_found.resource", `There is no API key ${apiKeyId}: keys list shows the ids.`)
}
