import { and, asc, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { keySets, keySetVersions } from "../../db/key-set-schema.ts"
import { type KeySource, keySourceOf } from "../../engine/sun/key-schemes.ts"
import { reseal, SealBroken, type Secret, seal, unseal } from "../../platform/sealing.ts"

/** A version of a key set, ready to derive keys, with its name. */
export type NamedKeySource = KeySource & { key_set_id: string; name: string; master: Uint8Array }

/** Seals a master key, which can only be unsealed for this version of this set. */
export function sealMaster(secret: Secret, keySetId: string, version: number, master: Uint8Array): string {
  return seal(secret, PURPOSE, `${keySetId}.${version}`, Buffer.from(master).toString("hex"))
}

/**
 * Returns a key set's version to derive chip keys from. Versions never change, so they are cached. Throws `SealBroken`.
 */
export async function keySourceFor(
  queries: Queries,
  secret: Secret,
  keySetId: string,
  version: number,
): Promise<NamedKeySource> {
  const name = `${keySetId}.${version}`
  const known = lastSources.get(name)
  if (known && known.secret === secret) return known.source
  const [row] = await queries
    .select(columns)
    .from(keySetVersions)
    .innerJoin(keySets, eq(keySets.id, keySetVersions.key_set_id))
    .where(and(eq(keySetVersions.key_set_id, keySetId), eq(keySetVersions.version, version)))
  const source = row && opened(secret, row)
  if (!source) throw new Error(`key set ${keySetId} has no version ${version} that keys are derived from`)
  const [oldest] = lastSources.keys()
  if (oldest !== undefined && lastSources.size >= MOST_SOURCES) lastSources.delete(oldest)
  lastSources.set(name, { secret, source })
  return source
}

/** Returns all versions of an organization's key sets whose masters can be unsealed, newest last. */
export async function keySourcesOf(
  queries: Queries,
  secret: Secret,
  organizationId: string,
): Promise<NamedKeySource[]> {
  const rows = await queries
    .select(columns)
    .from(keySetVersions)
    .innerJoin(keySets, eq(keySets.id, keySetVersions.key_set_id))
    .where(eq(keySets.organization_id, organizationId))
    .orderBy(asc(keySets.created_at), asc(keySets.id), asc(keySetVersions.version))
  return rows.flatMap((row) => openedUnlessLost(secret, row) ?? [])
}

/** Reseals a master key with the current secret; returns null if it already is. Throws `SealBroken`. */
export function resealMaster(
  secret: Secret,
  keySetId: string,
  version: number,
  sealed: string,
): string | null {
  return reseal(secret, PURPOSE, `${keySetId}.${version}`, sealed)
}

const PURPOSE = "key set master"

const columns = {
  key_set_id: keySets.id,
  name: keySets.name,
  scheme: keySets.scheme,
  version: keySetVersions.version,
  sealed_master: keySetVersions.sealed_master,
}

type VersionRow = {
  key_set_id: string
  name: string
  scheme: (typeof keySets.$inferSelect)["scheme"]
  version: number
  sealed_master: string | null
}

function opened(secret: Secret, row: VersionRow): NamedKeySource | null {
  const { key_set_id, name, scheme, version, sealed_master } = row
  if (scheme === "explicit" || sealed_master === null) return null
  const master = Buffer.from(unseal(secret, PURPOSE, `${key_set_id}.${version}`, sealed_master), "hex")
  return { ...keySourceOf(scheme, master, version), key_set_id, name, master }
}

/** Returns null if the secret is lost, so that the other versions can still be used. */
function openedUnlessLost(secret: Secret, row: VersionRow): NamedKeySource | null {
  try {
    return opened(secret, row)
  } catch (error) {
    if (error instanceof SealBroken) return null
    throw error
  }
}

const lastSources = new Map<string, { secret: Secret; source: NamedKeySource }>()
const MOST_SOURCES = 256
