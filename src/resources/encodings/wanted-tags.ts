import { and, eq, inArray } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { manifestChips, type manifests } from "../../db/key-set-schema.ts"
import { chips } from "../../db/schema.ts"

/** UIDs that no order can take, one sentence for each line. */
export class UidConflicts extends Error {
  override name = "UidConflicts"
  constructor(readonly problems: string[]) {
    super(problems.join("\n"))
  }
}

/** A tag of an order: any, or one of a UID; `again` is the chip that is encoded anew with it, null for a new chip. */
export type WantedTag = { uid: string | null; again: string | null }

/**
 * Which tag an order's chip of a number is for. UIDs that are known are looked at first, all of them: those of this
 * organization's chips of the same key set with an earlier version are encoded anew. Throws `UidConflicts`.
 */
export async function wantedTags(
  queries: Queries,
  manifest: typeof manifests.$inferSelect,
  tags: { count: number } | { uids: readonly string[] },
): Promise<(number: number) => WantedTag> {
  if ("count" in tags) return () => ({ uid: null, again: null })
  const again = new Map<string, string>()
  const problems: string[] = []
  for (let start = 0; start < tags.uids.length; start += LOOK_UP_UIDS) {
    const part = tags.uids.slice(start, start + LOOK_UP_UIDS)
    const rows = new Map((await known(queries, manifest, part)).map((row) => [row.uid, row]))
    for (const [index, uid] of part.entries()) {
      const row = rows.get(uid)
      if (!row || row.number !== null) continue
      const why = refusal(row, manifest)
      if (why) problems.push(`line ${start + index + 1}: the tag with UID ${uid} ${why}`)
      else again.set(uid, row.chip_id)
    }
  }
  if (problems.length > 0) throw new UidConflicts(problems)
  return (number) => {
    const uid = tags.uids[number - 1] ?? null
    return { uid, again: uid === null ? null : (again.get(uid) ?? null) }
  }
}

/** The UIDs of a file: one a line, or the column `uid` of a CSV. Throws `UidConflicts` naming each wrong line. */
export function parseUids(text: string): string[] {
  const rows = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/)
  const header = (rows[0] ?? "").split(",").map((name) => name.trim().toLowerCase())
  const column = Math.max(0, header.indexOf("uid"))
  const problems: string[] = []
  const firstPlaces = new Map<string, number>()
  for (const [index, row] of rows.entries()) {
    if (row.trim() === "" || (index === 0 && header.includes("uid"))) continue
    const uid = (row.split(",")[column] ?? "").trim().replaceAll(":", "").toUpperCase()
    const first = firstPlaces.get(uid)
    if (!/^[0-9A-F]{14}$/.test(uid)) problems.push(`line ${index + 1}: a UID has 14 hexadecimal digits`)
    else if (first) problems.push(`line ${index + 1}: UID ${uid} is that of line ${first}`)
    else firstPlaces.set(uid, index + 1)
  }
  if (problems.length > 0) throw new UidConflicts(problems)
  if (firstPlaces.size === 0) throw new UidConflicts(["the file has no UIDs"])
  return [...firstPlaces.keys()]
}

const LOOK_UP_UIDS = 500

async function known(queries: Queries, manifest: typeof manifests.$inferSelect, uids: readonly string[]) {
  return await queries
    .select({
      chip_id: chips.chip_id,
      uid: chips.uid,
      organization_id: chips.organization_id,
      key_set_id: chips.key_set_id,
      key_version: chips.key_version,
      retired_at: chips.retired_at,
      /** Its place in this very order, which goes on. */
      number: manifestChips.number,
    })
    .from(chips)
    .leftJoin(
      manifestChips,
      and(eq(manifestChips.chip_id, chips.chip_id), eq(manifestChips.manifest_id, manifest.id)),
    )
    .where(inArray(chips.uid, [...uids]))
}

function refusal(
  row: Awaited<ReturnType<typeof known>>[number],
  manifest: typeof manifests.$inferSelect,
): string | null {
  if (row.organization_id !== manifest.organization_id) return "is known already"
  if (row.retired_at) return `is that of chip ${row.chip_id}, which is retired`
  if (row.key_set_id !== manifest.key_set_id)
    return `is that of chip ${row.chip_id}, which has keys of another set`
  if (row.key_version >= manifest.key_version)
    return `is that of chip ${row.chip_id}, which has this key version: rotate the key set to encode it anew`
  return null
}
