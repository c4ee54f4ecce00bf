import { and, eq, isNull } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { apiKeys, organizations, publishableKeys } from "../../db/schema.ts"

/** A key that was found, and since when its organization is suspended. */
export type HeldKey = {
  id: string
  organization_id: string
  expires_at: Date | null
  suspended_at: Date | null
}

/** The key by what is stored of it; null when there is none, or it was revoked or its time is over. */
type FindKey = (queries: Queries, stored: string, at: Date) => Promise<HeldKey | null>

/** By the hash of the key. */
export const findActiveApiKey = findIn(apiKeys, apiKeys.hash)
/** By the key itself, which is no secret. */
export const findActivePublishableKey = findIn(publishableKeys, publishableKeys.key)

type Keys = typeof apiKeys | typeof publishableKeys

function findIn(keys: Keys, column: typeof apiKeys.hash | typeof publishableKeys.key): FindKey {
  const unrevoked = query((db, { stored }: Given<{ stored: string }>) =>
    db
      .select({
        id: keys.id,
        organization_id: keys.organization_id,
        expires_at: keys.expires_at,
        suspended_at: organizations.suspended_at,
      })
      .from<Keys>(keys)
      .innerJoin(organizations, eq(organizations.id, keys.organization_id))
      .where(and(eq(column, stored), isNull(keys.revoked_at))),
  )
  return async (queries, stored, at) => {
    const [key] = await unrevoked(queries, { stored })
    return key && !isOver(key, at) ? key : null
  }
}

/** Whether the time of a key that has an end is over. */
export function isOver({ expires_at }: Pick<HeldKey, "expires_at">, at: Date): boolean {
  return expires_at !== null && expires_at <= at
}
