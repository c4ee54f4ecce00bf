import { inArray, or } from "drizzle-orm"
import { sunChipOf } from "../chips/proof.ts"
import { type Context, inTurn } from "../context.ts"
import type { Queries } from "../db/database.ts"
import { chips } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { wrapChipKeys } from "../sun/chip-keys.ts"
import { ChipFileError, type ChipLine } from "./chip-file.ts"
import { type ChipRow, requireOrganization } from "./service.ts"

/** Told again and again how many chips a step is done with. */
export type OnProgress = (step: "checking" | "storing", done: number, total: number) => void

/**
 * Imports the chips of a file for an organization, in two steps. First all of them are compared with what is stored:
 * chips that are stored alike are left as they are, while one that differs, or belongs to another organization,
 * refuses the whole file, without a word on whose it is: throws `ChipFileError` naming every such place. Then the
 * others are stored, some thousands in one database transaction; an import that is cut short goes on there when it is
 * run again. Throws `not_found.resource`.
 */
export async function importChips(
  context: Context,
  organizationId: string,
  lines: ChipLine[],
  onProgress: OnProgress = () => {},
): Promise<{ imported: number; already_imported: number }> {
  const { service_secret } = context.config
  const { id } = await requireOrganization(context.db.read, organizationId)
  const newLines = await linesNotStored(context.db.read, service_secret, id, lines, onProgress)
  let imported = 0
  for (const part of cut(newLines, partSize)) {
    // Wrapping the keys takes its time, in which other processes come to write to a SQLite file.
    const sealed = part.map((line) => seal(service_secret, line))
    await inTurn(context, null, (turn) => storeChips(turn, id, sealed))
    imported += part.length
    onProgress("storing", imported, newLines.length)
  }
  return { imported, already_imported: lines.length - newLines.length }
}

/** How many chips one database transaction stores: what SQLite does in a fraction of a second. */
const partSize = 5_000
/** Ten columns each; SQLite takes 32,766 parameters in one statement, Postgres 65,535. */
const statementSize = 250

type SealedChip = { line: ChipLine; wrapped_keys: string }

function seal(secret: string, line: ChipLine): SealedChip {
  const keys = { metaKey: line.meta_key, fileKey: line.file_key }
  return { line, wrapped_keys: wrapChipKeys(secret, line.chip_id, keys) }
}

async function linesNotStored(
  queries: Queries,
  secret: string,
  organizationId: string,
  lines: ChipLine[],
  onProgress: OnProgress,
): Promise<ChipLine[]> {
  const newLines: ChipLine[] = []
  const problems: string[] = []
  let done = 0
  for (const batch of cut(lines, statementSize)) {
    const rows = await storedLike(queries, batch)
    for (const line of batch) {
      const known = rows.filter(({ chip_id, uid }) => chip_id === line.chip_id || uid === line.uid)
      if (known.length === 0) newLines.push(line)
      else if (!known.every((row) => isAlike(secret, organizationId, row, line)))
        problems.push(
          `${line.place}: chip ${line.chip_id} or its uid is stored already, with other values or for another organization`,
        )
    }
    done += batch.length
    onProgress("checking", done, lines.length)
  }
  if (problems.length > 0) throw new ChipFileError(problems)
  return newLines
}

async function storedLike(queries: Queries, lines: ChipLine[]): Promise<ChipRow[]> {
  const chipIds = lines.map(({ chip_id }) => chip_id)
  const uids = lines.map(({ uid }) => uid)
  return await queries
    .select()
    .from(chips)
    .where(or(inArray(chips.chip_id, chipIds), inArray(chips.uid, uids)))
}

/** Whether importing the line has happened: the counter of a chip in use has moved on since. */
function isAlike(secret: string, organizationId: string, row: ChipRow, line: ChipLine): boolean {
  const isOfSameTag =
    row.organization_id === organizationId &&
    !row.is_test &&
    row.chip_id === line.chip_id &&
    row.uid === line.uid &&
    row.counter >= line.counter
  if (!isOfSameTag) return false
  const { metaKey, fileKey } = sunChipOf(secret, row)
  return Buffer.compare(metaKey, line.meta_key) === 0 && Buffer.compare(fileKey, line.file_key) === 0
}

async function storeChips(turn: Turn, organization_id: string, sealed: SealedChip[]): Promise<void> {
  for (const batch of cut(sealed, statementSize)) {
    const stored = await turn.tx
      .insert(chips)
      .values(
        batch.map(({ line: { chip_id, uid, counter }, wrapped_keys }) => ({
          chip_id,
          organization_id,
          is_test: false,
          uid,
          wrapped_keys,
          key_version: 1,
          counter,
          emitted_counter: counter,
          scan_count: 0,
          created_at: turn.at,
        })),
      )
      .onConflictDoNothing()
      .returning({ chip_id: chips.chip_id })
    if (stored.length < batch.length)
      throw new Error(
        "another import stored some of these chips at the same time: run this one again, it goes on where it stopped",
      )
  }
}

function* cut<T>(all: T[], size: number): Generator<T[]> {
  for (let start = 0; start < all.length; start += size) yield all.slice(start, start + size)
}
