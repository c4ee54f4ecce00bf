import { and, asc, eq, gt, isNull, or } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Page, type PageOf, pagesOf } from "../../db/page.ts"
import type { Given } from "../../db/query.ts"
import { type PublishableKeyRow, publishableKeys } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { Caller } from "../../platform/caller.ts"
import { newCredential } from "../../platform/credentials.ts"
import { ApiError } from "../../platform/errors.ts"
import { newId, parseId } from "../../platform/ids.ts"
import { isOver } from "../credentials/held-key.ts"

/** Lists the organization's active keys, newest first. */
export async function listPublishableKeys(
  queries: Queries,
  caller: Caller,
  { page, at }: { page: Page; at: Date },
): Promise<PageOf<PublishableKeyRow>> {
  const { organization_id } = caller
  return await activeKeys(queries, { organization_id, at }, page)
}

export async function hasPublishableKey(queries: Queries, caller: Caller, at: Date): Promise<boolean> {
  const { organization_id } = caller
  const { rows } = await activeKeys(queries, { organization_id, at }, { limit: 1, after: null })
  return rows.length > 0
}

const activeKeys = pagesOf(publishableKeys, (given: Given<{ organization_id: string; at: Date }>) =>
  and(
    eq(publishableKeys.organization_id, given.organization_id),
    isNull(publishableKeys.revoked_at),
    or(isNull(publishableKeys.expires_at), gt(publishableKeys.expires_at, given.at)),
  ),
)

/** Creates a key for the organization unless it has an active one. */
export async function ensurePublishableKey(turn: Turn, caller: Caller): Promise<void> {
  if (await hasPublishableKey(turn.tx, caller, turn.at)) return
  await issuePublishableKey(turn, caller.organization_id, "Default")
}

/** Creates a key. The organization must exist, and the name must be valid. */
export async function issuePublishableKey(
  turn: Turn,
  organization_id: string,
  name: string,
): Promise<PublishableKeyRow> {
  const [key] = await turn.tx
    .insert(publishableKeys)
    .values({
      id: newId(),
      organization_id,
      key: newCredential("publishable_key").token,
      name,
      mode: "live",
      created_at: turn.at,
    })
    .returning()
  if (!key) throw new Error("the database stored a key and did not return it")
  return key
}

/** Returns all keys of an organization, oldest first, including revoked and expired ones. */
export async function listAllPublishableKeys(
  queries: Queries,
  organizationId: string,
): Promise<PublishableKeyRow[]> {
  return await queries
    .select()
    .from(publishableKeys)
    .where(eq(publishableKeys.organization_id, organizationId))
    .orderBy(asc(publishableKeys.created_at), asc(publishableKeys.id))
}

/**
 * Creates a new key of the same name; the old one stays valid for `overlap_seconds`. Throws `not_found.resource` for a
 * key that is unknown, revoked or expired.
 */
export async function rotatePublishableKey(
  turn: Turn,
  keyId: string,
  overlap_seconds: number,
): Promise<{ issued: PublishableKeyRow; rotated: PublishableKeyRow }> {
  const key = await requirePublishableKey(turn, keyId)
  if (key.revoked_at || isOver(key, turn.at))
    throw new ApiError(
      "not_found.resource",
      `Publishable key ${key.id} is expired or revoked: issue a new one.`,
    )
  const end = new Date(turn.at.getTime() + overlap_seconds * 1_000)
  // A second rotation must not extend the end that the first one set.
  const expires_at = key.expires_at && key.expires_at < end ? key.expires_at : end
  const issued = await issuePublishableKey(turn, key.organization_id, key.name)
  return { issued, rotated: await changeKey(turn, key.id, { expires_at }) }
}

/** Revokes a key. Revoking it again changes nothing. Throws `not_found.resource`. */
export async function revokePublishableKey(turn: Turn, keyId: string): Promise<PublishableKeyRow> {
  const key = await requirePublishableKey(turn, keyId)
  return key.revoked_at ? key : await changeKey(turn, key.id, { revoked_at: turn.at })
}

async function requirePublishableKey(turn: Turn, keyId: string): Promise<PublishableKeyRow> {
  const id = parseId(keyId)
  const [key] = id ? await turn.tx.select().from(publishableKeys).where(eq(publishableKeys.id, id)) : []
  if (key) return key
  throw new ApiError(
    "not_found.resource",
    `There is no publishable key ${keyId}: publishable-keys list shows the ids.`,
  )
}

async function changeKey(
  turn: Turn,
  id: string,
  change: Partial<PublishableKeyRow>,
): Promise<PublishableKeyRow> {
  const [changed] = await turn.tx
    .update(publishableKeys)
    .set(change)
    .where(eq(publishableKeys.id, id))
    .returning()
  if (!changed) throw new Error(`publishable key ${id} is gone`)
  return changed
}
