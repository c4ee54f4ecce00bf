import { and, eq, inArray } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { manifestChips, type manifests } from "../../db/key-set-schema.ts"
import { chips } from "../../db/schema.ts"
import { partsOf } from "../../platform/parts.ts"
import { knownUid } from "../chips/proof.ts"

/** Tags that cannot be ordered, one sentence per line. */
export class TagConflicts extends Error {
  override name = "TagConflicts"
  constructor(readonly problems: string[]) {
    super(problems.join("\n"))
  }
}

/** An existing tag: its UID (14 upper-case hex digits), the id of its chip (10 digits), or both. Lines count from 1. */
export type NamedTag = { line: number; uid: string | null; chip_id: string | null }

/** A tag of an order, of any UID if `uid` is null; `again` is the chip to be encoded again, null for a new one. */
export type WantedTag = { uid: string | null; again: { chip_id: string; key_version: number } | null }

/**
 * Returns a function from a number of an order to its tag. Named chips of this organization and key set with an earlier
 * version are encoded again, each once, even if one line has its id and another its UID. Throws `TagConflicts`.
 */
export async function wantedTags(
  queries: Queries,
  manifest: typeof manifests.$inferSelect,
  tags: { count: number } | { named: readonly NamedTag[] },
): Promise<(number: number) => WantedTag> {
  if ("count" in tags) return () => ({ uid: null, again: null })
  const wanted: WantedTag[] = []
  const problems: string[] = []
  const firstLines = new Map<string, number>()
  for (const part of partsOf(tags.named, LOOK_UP_TAGS)) {
    const find = await finderOf(queries, manifest, part)
    for (const tag of part) {
      const row = find(tag)
      const first = row && firstLines.get(row.chip_id)
      const why = first ? `is the chip of line ${first}` : refusal(tag, row, manifest)
      if (why) problems.push(`line ${tag.line}: ${nameOf(tag)} ${why}`)
      if (row && !first) firstLines.set(row.chip_id, tag.line)
      const isAgain = row && row.number === null
      wanted.push({ uid: tag.uid, again: isAgain ? row : null })
    }
  }
  if (problems.length > 0) throw new TagConflicts(problems)
  return (number) => wanted[number - 1] ?? { uid: null, again: null }
}

/**
 * Parses the tags of a file: one UID per line, or a CSV with columns `uid`, `chip_id` (chips to be encoded again) or
 * both, as `chips export` writes it. Throws `TagConflicts` with each wrong line.
 */
export function parseTags(text: string): NamedTag[] {
  const rows = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/)
  const header = (rows[0] ?? "").split(",").map((name) => name.trim().toLowerCase())
  const hasHeader = header.includes("uid") || header.includes("chip_id")
  const columns = { uid: hasHeader ? header.indexOf("uid") : 0, chip_id: header.indexOf("chip_id") }
  const found: NamedTag[] = []
  const problems: string[] = []
  const firstPlaces = new Map<string, number>()
  for (const [index, row] of rows.entries()) {
    if (row.trim() === "" || (index === 0 && hasHeader)) continue
    const cells = row.split(",").map((cell) => cell.trim().replaceAll(":", "").toUpperCase())
    const place = index + 1
    const tag = { line: place, uid: cells[columns.uid] || null, chip_id: cells[columns.chip_id] || null }
    const first = [tag.chip_id, tag.uid].map((name) => name && firstPlaces.get(name)).find(Boolean)
    const why = shapeProblem(tag)
    if (why) problems.push(`line ${place}: ${why}`)
    else if (first) problems.push(`line ${place}: ${nameOf(tag)} is that of line ${first}`)
    else found.push(tag)
    for (const name of [tag.chip_id, tag.uid])
      if (name && !firstPlaces.has(name)) firstPlaces.set(name, place)
  }
  if (problems.length > 0) throw new TagConflicts(problems)
  if (found.length === 0) throw new TagConflicts(["the file has no tags"])
  return found
}

const LOOK_UP_TAGS = 500

function shapeProblem({ uid, chip_id }: NamedTag): string | null {
  if (chip_id !== null && !/^[0-9A-F]{10}$/.test(chip_id)) return "a chip id has 10 hexadecimal digits"
  if (uid === null && chip_id !== null) return null
  if (uid !== null && /^(?!04)[0-9A-F]{12}04$/.test(uid))
    return "a UID begins with 04: the bytes of this one are in reverse order"
  return uid !== null && /^[0-9A-F]{14}$/.test(uid) ? null : "a UID has 14 hexadecimal digits"
}

function nameOf({ uid, chip_id }: NamedTag): string {
  return chip_id === null ? `the tag with UID ${uid}` : `chip ${chip_id}`
}

type KnownChip = Awaited<ReturnType<typeof known>>[number]

/** Returns a function that finds a tag's stored chip: the one it names, else the one with its UID. */
async function finderOf(
  queries: Queries,
  manifest: typeof manifests.$inferSelect,
  tags: readonly NamedTag[],
): Promise<(tag: NamedTag) => KnownChip | undefined> {
  const named = tags.flatMap(({ chip_id }) => chip_id ?? [])
  const uids = tags.flatMap(({ uid, chip_id }) => (uid !== null && chip_id === null ? uid : []))
  const byId = await known(queries, manifest, "chip_id", named)
  const byUid = await known(queries, manifest, "uid", uids)
  const chipsById = new Map(byId.map((row) => [row.chip_id, row]))
  const chipsByUid = new Map(byUid.map((row) => [row.uid, row]))
  return ({ uid, chip_id }) => (chip_id === null ? chipsByUid.get(uid ?? "") : chipsById.get(chip_id))
}

async function known(
  queries: Queries,
  manifest: typeof manifests.$inferSelect,
  name: "chip_id" | "uid",
  values: string[],
) {
  if (values.length === 0) return []
  return await queries
    .select({
      chip_id: chips.chip_id,
      uid: chips.uid,
      organization_id: chips.organization_id,
      key_set_id: chips.key_set_id,
      key_version: chips.key_version,
      has_mac: chips.has_mac,
      tamper: chips.tamper,
      retired_at: chips.retired_at,
      /** Its number in this same order, if that is being continued. */
      number: manifestChips.number,
    })
    .from(chips)
    .leftJoin(
      manifestChips,
      and(eq(manifestChips.chip_id, chips.chip_id), eq(manifestChips.manifest_id, manifest.id)),
    )
    .where(inArray(chips[name], values))
}

function refusal(
  tag: NamedTag,
  row: KnownChip | undefined,
  manifest: typeof manifests.$inferSelect,
): string | null {
  const isOurs = row?.organization_id === manifest.organization_id
  if (tag.chip_id !== null && !isOurs) return "is not a chip of this organization"
  if (!row || row.number !== null) return null
  if (!isOurs) return "is already known"
  const chip = tag.chip_id === null ? `is that of chip ${row.chip_id}, which ` : ""
  const uid = knownUid(row)
  if (tag.uid !== null && uid !== null && uid !== tag.uid) return `has another UID: ${uid}`
  if (row.retired_at) return `${chip}is retired`
  if (row.key_set_id !== manifest.key_set_id) return `${chip}has keys of another set`
  if (row.key_version > manifest.key_version)
    return `${chip}has version ${row.key_version} of its keys, and this order goes on with version ${manifest.key_version}: order those that are left anew, into another folder`
  if (row.key_version === manifest.key_version)
    return `${chip}has this key version: rotate the key set to encode it anew`
  if (row.has_mac !== (manifest.mac || manifest.tamper) || (row.tamper !== null) !== manifest.tamper)
    return `${chip}was ordered with other mirrors: give --mac and --tamper as then`
  return null
}
