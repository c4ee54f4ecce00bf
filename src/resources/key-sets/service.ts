import { Value } from "@sinclair/typebox/value"
import { and, asc, eq, inArray, isNull, max } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { keySets, keySetVersions } from "../../db/key-set-schema.ts"
import type { Turn } from "../../db/turn.ts"
import {
  isZeroKey,
  KEY_BYTES,
  type KeyScheme,
  keySchemes,
  MAX_KEY_VERSION,
} from "../../engine/sun/key-schemes.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { name as nameSchema } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import type { Secret } from "../../platform/sealing.ts"
import { keySourcesOf, sealMaster } from "../chips/key-sources.ts"
import { requireOrganization } from "../organizations/service.ts"

// What operators do with the keys of an organization's tags. Master keys never leave the database in clear text.

type KeySetRow = typeof keySets.$inferSelect

/** A key set with its version numbers, oldest first. New tags get the last one. */
export type KeySetView = KeySetRow & { versions: number[] }

/** A version's master key: 16 bytes, or null for the scheme `explicit`, whose chips come with their own keys. */
type Master = Uint8Array | null

/**
 * Creates a key set with one version. Throws `validation.failed` for an unknown scheme, a taken name or an unsuitable
 * master, and `not_found.resource`.
 */
export async function createKeySet(
  turn: Turn,
  secret: Secret,
  input: { organization_id: string; name: string; scheme: string; master: Master; zero_is_allowed: boolean },
): Promise<KeySetView> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  if (!Value.Check(nameSchema, input.name))
    throw fieldError("name", "must have 1 to 256 characters, without control characters")
  const scheme = schemeOf(input.scheme)
  requireMaster(scheme, input.master, input.zero_is_allowed)
  const [row] = await turn.tx
    .insert(keySets)
    .values({ id: newId(), organization_id: organization.id, name: input.name, scheme, created_at: turn.at })
    .onConflictDoNothing()
    .returning()
  if (!row)
    throw fieldError("name", `is already the name of another key set of the organization: ${input.name}`)
  await addVersion(turn, secret, row, 1, input.master)
  return { ...row, versions: [1] }
}

/** Returns an organization's key sets, oldest first, including retired ones. Throws `not_found.resource`. */
export async function listKeySets(queries: Queries, organizationId: string): Promise<KeySetView[]> {
  const organization = await requireOrganization(queries, organizationId)
  const rows = await queries
    .select()
    .from(keySets)
    .where(eq(keySets.organization_id, organization.id))
    .orderBy(asc(keySets.created_at), asc(keySets.id))
  return await withVersions(queries, rows)
}

/**
 * Adds a version for new tags to a set; tags with an earlier one keep working. Rejects an earlier master if the version
 * alone would not change which key decrypts `e`. Throws `not_found.resource`, `validation.failed`.
 */
export async function rotateKeySet(
  turn: Turn,
  secret: Secret,
  input: { key_set_id: string; master: Master; zero_is_allowed: boolean },
): Promise<KeySetView> {
  const row = await requireKeySet(turn.tx, input.key_set_id)
  if (row.retired_at) throw fieldError("key_set_id", "is retired: create another key set")
  if (row.scheme === "explicit")
    throw fieldError(
      "key_set_id",
      "has scheme explicit, which has no master to rotate: import chips with other keys",
    )
  requireMaster(row.scheme, input.master, input.zero_is_allowed)
  await requireOtherValues(turn.tx, secret, row, input.master)
  const [last] = await turn.tx
    .select({ version: max(keySetVersions.version) })
    .from(keySetVersions)
    .where(eq(keySetVersions.key_set_id, row.id))
  const version = (last?.version ?? 0) + 1
  if (version > MAX_KEY_VERSION)
    throw fieldError("key_set_id", `has used all its ${MAX_KEY_VERSION} versions: create another key set`)
  await addVersion(turn, secret, row, version, input.master)
  return await viewOf(turn.tx, row)
}

/**
 * Retires a key set: no new tags are encoded with it, and existing ones keep working. Doing so again changes nothing.
 */
export async function retireKeySet(turn: Turn, keySetId: string): Promise<KeySetView> {
  const row = await requireKeySet(turn.tx, keySetId)
  await turn.tx
    .update(keySets)
    .set({ retired_at: turn.at })
    .where(and(eq(keySets.id, row.id), isNull(keySets.retired_at)))
  return await viewOf(turn.tx, await requireKeySet(turn.tx, keySetId))
}

/** Returns the key set. Throws `not_found.resource`. */
export async function requireKeySet(queries: Queries, keySetId: string): Promise<KeySetRow> {
  const id = parseId(keySetId)
  const [row] = id ? await queries.select().from(keySets).where(eq(keySets.id, id)) : []
  if (!row) throw new ApiError("not_found.resource", `There is no key set ${keySetId}: see key-sets list.`)
  return row
}

async function viewOf(queries: Queries, row: KeySetRow): Promise<KeySetView> {
  const [view] = await withVersions(queries, [row])
  return view ?? { ...row, versions: [] }
}

async function withVersions(queries: Queries, rows: KeySetRow[]): Promise<KeySetView[]> {
  if (rows.length === 0) return []
  const versions = await queries
    .select({ key_set_id: keySetVersions.key_set_id, version: keySetVersions.version })
    .from(keySetVersions)
    .where(
      inArray(
        keySetVersions.key_set_id,
        rows.map(({ id }) => id),
      ),
    )
    .orderBy(asc(keySetVersions.version))
  return rows.map((row) => ({
    ...row,
    versions: versions.filter(({ key_set_id }) => key_set_id === row.id).map(({ version }) => version),
  }))
}

/**
 * Throws if the master is that of an earlier version. The counters of tags that are encoded again start at zero, so
 * with the same key for `e`, old values would be valid again. AN10922 keys depend on the version itself.
 */
async function requireOtherValues(
  queries: Queries,
  secret: Secret,
  { id, organization_id, scheme }: KeySetRow,
  master: Master,
): Promise<void> {
  if (scheme === "an10922" || master === null) return
  const known = await keySourcesOf(queries, secret, organization_id)
  const same = known.find((source) => source.key_set_id === id && Buffer.compare(source.master, master) === 0)
  if (same)
    throw fieldError(
      "master_key",
      `is that of version ${same.version}, whose old values it would make valid again: use another one`,
    )
}

/** Adds a version. A constraint rejects the second of two simultaneous ones. Throws `validation.failed`. */
async function addVersion(
  turn: Turn,
  secret: Secret,
  { id }: KeySetRow,
  version: number,
  master: Master,
): Promise<void> {
  const [added] = await turn.tx
    .insert(keySetVersions)
    .values({
      key_set_id: id,
      version,
      sealed_master: master && sealMaster(secret, id, version, master),
      created_at: turn.at,
    })
    .onConflictDoNothing()
    .returning({ version: keySetVersions.version })
  if (!added)
    throw fieldError("key_set_id", "was rotated by somebody else at the same time: see key-sets list")
}

function schemeOf(text: string): KeyScheme {
  const scheme = keySchemes.find((each) => each === text)
  if (!scheme) throw fieldError("scheme", `must be one of ${keySchemes.join(", ")}`)
  return scheme
}

function requireMaster(scheme: KeyScheme, master: Master, zeroIsAllowed: boolean): void {
  if (scheme === "explicit" && master)
    throw fieldError("master_key", "is not allowed: chips of the scheme explicit bring their own keys")
  if (scheme === "explicit") return
  if (master?.length !== KEY_BYTES) throw fieldError("master_key", "must have 32 hexadecimal digits")
  if (isZeroKey(master) && !zeroIsAllowed)
    throw fieldError("master_key", "is all zeros, the factory key of every tag: use another one")
}
