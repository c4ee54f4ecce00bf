import { randomBytes } from "node:crypto"
import { and, asc, desc, eq, gt, inArray, isNull, lt, max, or } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { keySetVersions, manifestChips, manifests } from "../../db/key-set-schema.ts"
import { chips } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { type ManifestLine, manifestLine } from "../../engine/sun/encoding/manifest.ts"
import { ndefFile } from "../../engine/sun/encoding/ndef.ts"
import { checkTemplate, type Mirrors, macInputOf, tagAddress } from "../../engine/sun/encoding/tag-address.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { parseId } from "../../platform/ids.ts"
import { collectGarbage } from "../../platform/memory.ts"
import { upperHex } from "../../platform/upper-hex.ts"
import { keySourceFor } from "../chips/key-sources.ts"
import { knownUid, unreadUid } from "../chips/proof.ts"
import { requireKeySet } from "../key-sets/service.ts"
import { requireOrganization } from "../organizations/service.ts"
import { type NamedTag, type WantedTag, wantedTags } from "./wanted-tags.ts"

export type ManifestRow = typeof manifests.$inferSelect

/** An order of tags. The caller generates `id`, so that repeating the call continues the same order. */
type EncodingOrder = {
  id: string
  organization_id: string
  key_set_id: string
  url_template: string
  mirrors: Mirrors
  /** How many new tags of any UID, or which tags. */
  tags: { count: number } | { named: readonly NamedTag[] }
}

/** Called repeatedly with the number of registered chips. */
type OnRegistered = (done: number, total: number) => void

/**
 * Registers the chips of an order, one database transaction per part. If interrupted, the same call continues it. Named
 * chips of the same key set get its newest version; any other known chip or UID rejects the order. Throws
 * `TagConflicts`, `not_found.resource`, `validation.failed`, `TemplateError`.
 */
export async function placeOrder(
  context: Context,
  order: EncodingOrder,
  onRegistered: OnRegistered = () => {},
): Promise<ManifestRow> {
  const manifest = await inTurn(context, null, (turn) => openManifest(turn, order))
  const wanted = await wantedTags(context.db.read, manifest, order.tags)
  let done = await countRegistered(context.db.read, manifest.id)
  while (done < manifest.size) {
    const part = Math.min(PART_CHIPS, manifest.size - done)
    const first = done + 1
    await inTurn(context, null, (turn) => registerPart(turn, manifest, wanted, first, part))
    collectGarbage()
    done += part
    onRegistered(done, manifest.size)
  }
  return manifest
}

/** Yields the manifest lines of an order's registered chips, in order, one page in memory at a time. */
export async function* linesOf(context: Context, manifest: ManifestRow): AsyncGenerator<ManifestLine> {
  const { service_secret } = context.config
  const { url_template, mac, tamper } = manifest
  const { key_set_id, key_version } = manifest
  const sourceOf = (version: number) => keySourceFor(context.db.read, service_secret, key_set_id, version)
  const source = await sourceOf(key_version)
  for (let after = 0; ; ) {
    const page = await context.db.read
      .select({
        number: manifestChips.number,
        from_version: manifestChips.from_version,
        chip_id: chips.chip_id,
        uid: chips.uid,
      })
      .from(manifestChips)
      .innerJoin(chips, eq(chips.chip_id, manifestChips.chip_id))
      .where(and(eq(manifestChips.manifest_id, manifest.id), gt(manifestChips.number, after)))
      .orderBy(asc(manifestChips.number))
      .limit(PAGE_CHIPS)
    const last = page.at(-1)
    if (!last) return
    for (const chip of page) {
      const uid = knownUid(chip)
      const tag = { chip_id: chip.chip_id, uid: uid === null ? null : Buffer.from(uid, "hex") }
      const before = await Promise.all(versionsBetween(chip.from_version, key_version).map(sourceOf))
      yield manifestLine(source, url_template, { mac, tamper }, tag, before)
    }
    collectGarbage()
    after = last.number
  }
}

/** Returns the versions a tag may have: that of its last tap, and those of later orders that no tap has shown yet. */
function versionsBetween(from: number | null, to: number): number[] {
  return from === null ? [] : Array.from({ length: to - from }, (_none, index) => from + index)
}

/** How many chips a database transaction registers, and how many a statement: SQLite takes 32,766 parameters. */
const PART_CHIPS = 1_000
const STATEMENT_CHIPS = 250
const PAGE_CHIPS = 500

/** Records the order, or returns it as first placed. Throws `validation.failed` if the call now has other content. */
async function openManifest(turn: Turn, order: EncodingOrder): Promise<ManifestRow> {
  checkTemplate(order.url_template)
  ndefFile(tagAddress(order.url_template, "0000000000", order.mirrors))
  const organization = await requireOrganization(turn.tx, order.organization_id)
  const keySet = await requireKeySet(turn.tx, order.key_set_id)
  if (keySet.organization_id !== organization.id)
    throw fieldError("key_set_id", "is a key set of another organization")
  const size = "count" in order.tags ? order.tags.count : order.tags.named.length
  const [known] = await turn.tx.select().from(manifests).where(eq(manifests.id, order.id))
  if (known) {
    const isSame =
      known.organization_id === organization.id &&
      known.key_set_id === keySet.id &&
      known.url_template === order.url_template &&
      known.mac === order.mirrors.mac &&
      known.tamper === order.mirrors.tamper &&
      known.size === size
    if (!isSame) throw fieldError("id", "is the id of another order")
    return known
  }
  if (keySet.retired_at) throw fieldError("key_set_id", "is retired: use another key set for new tags")
  if (keySet.scheme === "explicit")
    throw fieldError(
      "key_set_id",
      "has scheme explicit, whose chips bring their keys: chips import takes them",
    )
  if (keySet.scheme !== "an10922" && "count" in order.tags)
    throw fieldError(
      "uids",
      `are required: keys of the scheme ${keySet.scheme} depend on the UIDs of the tags`,
    )
  const [newest] = await turn.tx
    .select({ version: max(keySetVersions.version) })
    .from(keySetVersions)
    .where(eq(keySetVersions.key_set_id, keySet.id))
  const manifest = {
    id: order.id,
    organization_id: organization.id,
    key_set_id: keySet.id,
    key_version: newest?.version ?? 1,
    url_template: order.url_template,
    ...order.mirrors,
    size,
    created_at: turn.at,
  }
  await turn.tx.insert(manifests).values(manifest)
  return manifest
}

/** Returns an organization's orders, newest first. */
export async function listOrders(queries: Queries, organizationId: string): Promise<ManifestRow[]> {
  return await queries
    .select()
    .from(manifests)
    .where(eq(manifests.organization_id, organizationId))
    .orderBy(desc(manifests.created_at), desc(manifests.id))
}

/** Returns an order. Throws `not_found.resource`. */
export async function requireOrder(queries: Queries, text: string): Promise<ManifestRow> {
  const id = parseId(text)
  const [order] = id === null ? [] : await queries.select().from(manifests).where(eq(manifests.id, id))
  if (!order) throw new ApiError("not_found.resource", `There is no order ${text}: chips orders lists them.`)
  return order
}

/** Returns how many chips of an order are registered; 0 if there is no such order. */
export async function countRegistered(queries: Queries, manifestId: string): Promise<number> {
  const [last] = await queries
    .select({ number: max(manifestChips.number) })
    .from(manifestChips)
    .where(eq(manifestChips.manifest_id, manifestId))
  return last?.number ?? 0
}

async function registerPart(
  turn: Turn,
  manifest: ManifestRow,
  wanted: (number: number) => WantedTag,
  first: number,
  count: number,
): Promise<void> {
  for (let start = first; start < first + count; start += STATEMENT_CHIPS) {
    const size = Math.min(STATEMENT_CHIPS, first + count - start)
    const tags = Array.from({ length: size }, (_none, index) => wanted(start + index))
    const fresh = tags.filter(({ again }) => again === null)
    const made = await insertChips(turn, manifest, fresh)
    await orderAnew(turn, manifest, tags)
    const rows = tags.map(({ again }, index) => ({
      manifest_id: manifest.id,
      number: start + index,
      chip_id: again?.chip_id ?? made.shift() ?? "",
      from_version: again?.key_version ?? null,
    }))
    const noted = await turn.tx
      .insert(manifestChips)
      .values(rows)
      .onConflictDoNothing()
      .returning({ number: manifestChips.number })
    if (noted.length < size) throw busyElsewhere()
  }
}

/** Inserts new chips with random ids. A collision among 2^40 ids throws; running the order again draws others. */
async function insertChips(turn: Turn, manifest: ManifestRow, tags: WantedTag[]): Promise<string[]> {
  if (tags.length === 0) return []
  const { organization_id, key_set_id, key_version, mac, tamper } = manifest
  const drawn = tags.map(({ uid }) => ({ uid, chip_id: upperHex(randomBytes(5)) }))
  const stored = await turn.tx
    .insert(chips)
    .values(
      drawn.map(({ uid, chip_id }) => ({
        chip_id,
        organization_id,
        is_test: false,
        uid: uid ?? unreadUid(chip_id),
        wrapped_keys: "",
        key_set_id,
        key_version,
        mac_input: macInputOf({ mac, tamper }),
        has_mac: mac || tamper,
        tamper: tamper ? ("unknown" as const) : null,
        counter: 0,
        emitted_counter: 0,
        scan_count: 0,
        created_at: turn.at,
      })),
    )
    .onConflictDoNothing()
    .returning({ chip_id: chips.chip_id })
  if (stored.length < tags.length) throw busyElsewhere()
  return drawn.map(({ chip_id }) => chip_id)
}

/** Records the new key version of these chips, unless a later one is ordered. It takes effect at its first tap. */
async function orderAnew(turn: Turn, { key_version }: ManifestRow, tags: WantedTag[]): Promise<void> {
  const chipIds = tags.flatMap(({ again }) => again?.chip_id ?? [])
  if (chipIds.length === 0) return
  const isLater = or(isNull(chips.next_key_version), lt(chips.next_key_version, key_version))
  await turn.tx
    .update(chips)
    .set({ next_key_version: key_version })
    .where(and(inArray(chips.chip_id, chipIds), lt(chips.key_version, key_version), isLater))
}

function busyElsewhere(): Error {
  return new Error(
    "some of these chips were stored by somebody else at the same time: run this again, and it continues where it stopped",
  )
}
