import { and, eq, inArray, isNull, type SQL } from "drizzle-orm"
import type { Builder, Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { apiKeys, organizations, publishableKeys } from "../../db/schema.ts"

/** A key, and since when its organization is suspended. */
export type HeldKey = {
  id: string
  organization_id: string
  expires_at: Date | null
  suspended_at: Date | null
}

/** Finds a key by its stored form. Returns null if there is none, or it was revoked or has expired. */
type FindKey = (queries: Queries, stored: string, at: Date) => Promise<HeldKey | null>

/** Finds an API key by its hash. */
export const findActiveApiKey = findIn(apiKeys, apiKeys.hash)
/** Finds a publishable key by itself, since it is not secret. */
export const findActivePublishableKey = findIn(publishableKeys, publishableKeys.key)

type Keys = typeof apiKeys | typeof publishableKeys

function findIn(keys: Keys, column: typeof apiKeys.hash | typeof publishableKeys.key): FindKey {
  const unrevoked = query((db, { stored }: Given<{ stored: string }>) =>
    unrevokedKeys(db, keys, eq(column, stored)),
  )
  return async (queries, stored, at) => {
    const [key] = await unrevoked(queries, { stored })
    return key && !isOver(key, at) ? key : null
  }
}

/** Returns which of these API keys would still be accepted. */
export async function admittedApiKeys(queries: Queries, ids: string[], at: Date): Promise<Set<string>> {
  const unrevoked = await unrevokedApiKeys(queries, { ids })
  const admitted = unrevoked.filter((key) => !isOver(key, at) && key.suspended_at === null)
  return new Set(admitted.map(({ id }) => id))
}

const unrevokedApiKeys = query((db, { ids }: Given<{ ids: string[] }>) =>
  unrevokedKeys(db, apiKeys, inArray(apiKeys.id, ids)),
)

function unrevokedKeys(db: Builder, keys: Keys, asked: SQL) {
  return db
    .select({
      id: keys.id,
      organization_id: keys.organization_id,
      expires_at: keys.expires_at,
      suspended_at: organizations.suspended_at,
    })
    .from<Keys>(keys)
    .innerJoin(organizations, eq(organizations.id, keys.organization_id))
    .where(and(asked, isNull(keys.revoked_at)))
}

/** Returns whether a key has expired. */
export function isOver({ expires_at }: Pick<HeldKey, "expires_at">, at: Date): boolean {
  return expires_at !== null && expires_at <= at
}
