import { and, eq, isNull } from "drizzle-orm"
import type { Caller } from "../caller.ts"
import { newCredential } from "../credentials.ts"
import type { Queries } from "../db/database.ts"
import { keysetAfter, newestFirst, type Page, type PageOf, pageOf } from "../db/page.ts"
import { publishableKeys } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { newId } from "../ids.ts"

export type PublishableKeyRow = typeof publishableKeys.$inferSelect

/** The organization's active keys. */
export async function listPublishableKeys(
  queries: Queries,
  caller: Caller,
  { page }: { page: Page },
): Promise<PageOf<PublishableKeyRow>> {
  const rows = await queries
    .select()
    .from(publishableKeys)
    .where(and(active(caller), keysetAfter(publishableKeys, page.after)))
    .orderBy(...newestFirst(publishableKeys))
    .limit(page.limit + 1)
  return pageOf(rows, page.limit)
}

export async function hasPublishableKey(queries: Queries, caller: Caller): Promise<boolean> {
  const [key] = await queries
    .select({ id: publishableKeys.id })
    .from(publishableKeys)
    .where(active(caller))
    .limit(1)
  return key !== undefined
}

/** Makes the organization's first key; does nothing when there is an active one. */
export async function ensurePublishableKey(turn: Turn, caller: Caller): Promise<void> {
  if (await hasPublishableKey(turn.tx, caller)) return
  await turn.tx.insert(publishableKeys).values({
    id: newId(),
    organization_id: caller.organization_id,
    key: newCredential("publishable_key").token,
    name: "Default",
    mode: "live",
    created_at: turn.at,
  })
}

function active(caller: Caller) {
  return and(eq(publishableKeys.organization_id, caller.organization_id), isNull(publishableKeys.revoked_at))
}
