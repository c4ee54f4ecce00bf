import { and, eq, inArray, isNull, or, sql } from "drizzle-orm"
import type { PgUpdateSetSource } from "drizzle-orm/pg-core"
import type { Queries } from "../../db/database.ts"
import { type ChipRow, chips } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { ChipKeysUnreadable, unwrapChipKeys, wrapChipKeys } from "../../engine/sun/chip-keys.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { collectGarbage } from "../../platform/memory.ts"
import { partsOf } from "../../platform/parts.ts"
import type { Secret } from "../../platform/sealing.ts"
import { isFree } from "../chips/encoded-chip.ts"
import { unreadUid } from "../chips/proof.ts"
import { requireOrganization } from "../organizations/service.ts"
import type { ChipLine } from "./file.ts"
import { ChipFileError } from "./records.ts"

/** Called repeatedly with the number of chips a step has done. */
type OnProgress = (step: "checking" | "storing", done: number, total: number) => void

/**
 * Imports a file's chips in three passes over `lines`: read all, compare all, then store them in one database
 * transaction per part, so that an interrupted import can be run again to continue. Skips chips that are stored with
 * the same values, replaces unreadable keys and changes unused chips; any other difference rejects the whole file.
 * Throws `ChipFileError`, `not_found.resource`.
 */
export async function importChips(
  context: Context,
  organizationId: string,
  lines: Iterable<ChipLine>,
  onProgress: OnProgress = () => {},
): Promise<{ imported: number; replaced: number; changed: number; already_imported: number }> {
  const { id } = await requireOrganization(context.db.read, organizationId)
  const total = countOf(lines)
  const fresh = await requireAlike(context, id, lines, (done) => onProgress("checking", done, total))
  const done = { imported: 0, replaced: 0, changed: 0, already_imported: 0 }
  for (const part of partsOf(unlessChanged(lines, done), partSize)) {
    const { problems, ...found } = await compared(context, id, part)
    if (problems.length > 0) throw storedMeanwhile()
    await store(context, id, found)
    const { newLines, unreadable, unused } = found
    collectGarbage()
    done.imported += newLines.length
    done.replaced += unreadable.length
    done.changed += unused.length
    done.already_imported += part.length - newLines.length - unreadable.length - unused.length
    if (newLines.length > 0) onProgress("storing", done.imported, fresh)
  }
  return done
}

/** Yields the lines of a file that has passed the check, but may be broken by now if it is still being written. */
function* unlessChanged(
  lines: Iterable<ChipLine>,
  done: { imported: number; replaced: number; changed: number },
): Generator<ChipLine> {
  try {
    yield* lines
  } catch (error) {
    if (!(error instanceof ChipFileError)) throw error
    const stored = done.imported + done.replaced + done.changed
    throw new ChipFileError(
      error.problems,
      `The file was changed after it was checked; ${stored} of its chips were imported: run this again once the file is complete.`,
    )
  }
}

/** How many chips one database transaction stores, which takes SQLite a fraction of a second. */
const partSize = 250
/** Up to 21 columns each; SQLite takes 32,766 parameters in one statement, Postgres 65,535. */
const statementSize = 125

/** Checks that no line conflicts with what is stored, and returns how many are new. Throws `ChipFileError`. */
async function requireAlike(
  context: Context,
  organizationId: string,
  lines: Iterable<ChipLine>,
  onChecked: (done: number) => void,
): Promise<number> {
  const problems: string[] = []
  const holders: Holder[] = []
  const renamed = new Set<string>()
  let checked = 0
  let fresh = 0
  for (const part of partsOf(lines, partSize)) {
    const found = await compared(context, organizationId, part)
    problems.push(...found.problems)
    holders.push(...found.holders)
    for (const chip_id of found.renamed) renamed.add(chip_id)
    fresh += found.newLines.length
    checked += part.length
    collectGarbage()
    onChecked(checked)
  }
  for (const { chip_id, taker } of holders) if (!renamed.has(chip_id)) problems.push(conflict(taker))
  if (problems.length > 0) throw new ChipFileError(problems)
  return fresh
}

type Compared = {
  newLines: ChipLine[]
  unreadable: ChipLine[]
  unused: ChipLine[]
  /** The chips of those among the unused that get another UID. */
  renamed: string[]
  holders: Holder[]
  problems: string[]
}

/** An unused chip that has the UID of a line: the line may take it if the file has another one for that chip. */
type Holder = { chip_id: string; taker: Place }
type Place = Pick<ChipLine, "place" | "chip_id">

/**
 * Sorts a part's lines by what is stored: nothing, keys sealed with a lost secret, other values of an unused chip, or a
 * conflict with a chip.
 */
async function compared(
  { config: { service_secret: secret }, db }: Context,
  organizationId: string,
  part: ChipLine[],
): Promise<Compared> {
  const found: Compared = {
    newLines: [],
    unreadable: [],
    unused: [],
    renamed: [],
    holders: [],
    problems: [],
  }
  for (const batch of partsOf(part, statementSize)) {
    const rows = await storedLike(db.read, batch)
    for (const line of batch) {
      const known = rows.filter(({ chip_id, uid }) => chip_id === line.chip_id || uid === line.uid)
      const row = known.find(({ chip_id }) => chip_id === line.chip_id)
      const holder = known.find(({ chip_id }) => chip_id !== line.chip_id)
      if (known.length === 0) {
        found.newLines.push(line)
        continue
      }
      const likeness = row ? likenessOf(secret, organizationId, row, line) : "different"
      const isTaking =
        holder && likeness === "unused" && isImported(holder, organizationId) && isUnused(holder)
      if (likeness === "different" || (holder && !isTaking)) {
        found.problems.push(conflict(line))
        continue
      }
      if (likeness === "unreadable") found.unreadable.push(line)
      if (likeness === "unused") found.unused.push(line)
      if (likeness === "unused" && row?.uid !== line.uid) found.renamed.push(line.chip_id)
      if (holder) found.holders.push({ chip_id: holder.chip_id, taker: placeOf(line) })
    }
  }
  return found
}

/** Without the rest of the line: a file may have very many. */
function placeOf({ place, chip_id }: ChipLine): Place {
  return { place, chip_id }
}

function conflict({ place, chip_id }: Place): string {
  return `${place}: chip ${chip_id} or its uid is stored already, with other values or for another organization`
}

async function store(
  context: Context,
  organizationId: string,
  { newLines, unreadable, unused, holders }: Omit<Compared, "problems">,
): Promise<void> {
  const { service_secret } = context.config
  // Wrapping keys takes long, so it precedes the database transaction: meanwhile others can write to SQLite.
  const [anew, again, changed] = [newLines, unreadable, unused].map((lines) =>
    lines.map((line) => seal(service_secret, line)),
  )
  if (anew?.length) await inTurn(context, null, (turn) => storeChips(turn, organizationId, anew))
  if (again?.length) await inTurn(context, null, (turn) => replaceKeys(turn, organizationId, again))
  if (changed?.length)
    await inTurn(context, null, (turn) => changeUnused(turn, organizationId, changed, holders))
}

type SealedChip = { line: ChipLine; wrapped_keys: string }

function seal(secret: Secret, line: ChipLine): SealedChip {
  const keys = { metaKey: line.meta_key, fileKey: line.file_key }
  return { line, wrapped_keys: wrapChipKeys(secret, line.chip_id, keys) }
}

async function storedLike(queries: Queries, lines: ChipLine[]): Promise<ChipRow[]> {
  const chipIds = lines.map(({ chip_id }) => chip_id)
  const uids = lines.map(({ uid }) => uid)
  return await queries
    .select()
    .from(chips)
    .where(or(inArray(chips.chip_id, chipIds), inArray(chips.uid, uids)))
}

/** Compares a line with the stored chip, whose counter may have advanced since its import. */
function likenessOf(
  secret: Secret,
  organizationId: string,
  row: ChipRow,
  line: ChipLine,
): "alike" | "different" | "unreadable" | "unused" {
  const isOfSameChip = isImported(row, organizationId) && row.chip_id === line.chip_id
  const isBehind = row.counter < line.counter
  const isOfSameProfile =
    row.mac_input === line.mac_input && row.has_mac === line.has_mac && (row.tamper !== null) === line.tamper
  if (!isOfSameChip || (isBehind && !isUnused(row))) return "different"
  // Either the UID or the keys show that it is the same tag.
  if (row.uid !== line.uid)
    return isUnused(row) && likenessOfKeys(secret, row, line) === "alike" ? "unused" : "different"
  const likeness = isOfSameProfile && !isBehind ? likenessOfKeys(secret, row, line) : "different"
  return likeness === "different" && isUnused(row) ? "unused" : likeness
}

function isImported({ organization_id, is_test, key_set_id }: ChipRow, organizationId: string): boolean {
  return organization_id === organizationId && !is_test && key_set_id === null
}

function likenessOfKeys(secret: Secret, row: ChipRow, line: ChipLine): "alike" | "different" | "unreadable" {
  try {
    const { metaKey, fileKey } = unwrapChipKeys(secret, row.chip_id, row.wrapped_keys)
    const isSame =
      Buffer.compare(metaKey, line.meta_key) === 0 && Buffer.compare(fileKey, line.file_key) === 0
    return isSame ? "alike" : "different"
  } catch (error) {
    if (error instanceof ChipKeysUnreadable) return "unreadable"
    throw error
  }
}

/**
 * Returns whether a chip is free and was never paired or read. Imports store both counters equal, and a read moves one.
 */
function isUnused({ unit_id, reserved_for, retired_at, paired_at, ...chip }: ChipRow): boolean {
  const isUnbound = [unit_id, reserved_for, retired_at, paired_at].every((value) => value === null)
  return isUnbound && chip.counter === chip.emitted_counter
}

/** The same, as a condition on `chips`. */
const hasNoUse = and(isFree, isNull(chips.paired_at), eq(chips.counter, chips.emitted_counter))

/** The column of UIDs is unique, so those who have the UID of another line give it up before any line gets one. */
async function changeUnused(
  { tx }: Turn,
  organization_id: string,
  sealed: SealedChip[],
  holders: Holder[],
): Promise<void> {
  const change = async (chip_id: string, columns: PgUpdateSetSource<typeof chips>) => {
    const changed = await tx
      .update(chips)
      .set(columns)
      .where(and(eq(chips.chip_id, chip_id), eq(chips.organization_id, organization_id), hasNoUse))
      .returning({ chip_id: chips.chip_id })
    if (changed.length === 0)
      throw new Error(`chip ${chip_id} was taken into use meanwhile: run this import again`)
  }
  for (const { chip_id } of holders) await change(chip_id, { uid: unreadUid(chip_id) })
  for (const { line, wrapped_keys } of sealed) {
    const { chip_id, uid, counter, ...profile } = line
    await change(chip_id, { uid, wrapped_keys, ...profileColumns(profile), ...raisedTo(counter) })
  }
}

/** A lower counter would make values valid again that somebody has seen. */
function raisedTo(counter: number) {
  const raised = sql<number>`case when ${chips.counter} < ${counter} then ${counter} else ${chips.counter} end`
  return { counter: raised, emitted_counter: raised }
}

function profileColumns({ mac_input, has_mac, tamper }: Pick<ChipLine, "mac_input" | "has_mac" | "tamper">) {
  return { mac_input, has_mac, tamper: tamper ? ("unknown" as const) : null }
}

async function replaceKeys({ tx }: Turn, organization_id: string, sealed: SealedChip[]): Promise<void> {
  for (const { line, wrapped_keys } of sealed)
    await tx
      .update(chips)
      .set({ wrapped_keys })
      .where(
        and(
          eq(chips.chip_id, line.chip_id),
          eq(chips.uid, line.uid),
          eq(chips.organization_id, organization_id),
        ),
      )
}

async function storeChips(turn: Turn, organization_id: string, sealed: SealedChip[]): Promise<void> {
  for (const batch of partsOf(sealed, statementSize)) {
    const stored = await turn.tx
      .insert(chips)
      .values(
        batch.map(({ line: { chip_id, uid, counter, ...profile }, wrapped_keys }) => ({
          chip_id,
          organization_id,
          is_test: false,
          uid,
          wrapped_keys,
          key_version: 1,
          counter,
          emitted_counter: counter,
          scan_count: 0,
          ...profileColumns(profile),
          created_at: turn.at,
        })),
      )
      .onConflictDoNothing()
      .returning({ chip_id: chips.chip_id })
    if (stored.length < batch.length) throw storedMeanwhile()
  }
}

function storedMeanwhile(): Error {
  return new Error(
    "another import stored some of these chips at the same time: run this one again, it goes on where it stopped",
  )
}

function countOf(lines: Iterable<ChipLine>): number {
  let count = 0
  for (const part of partsOf(lines, partSize)) {
    count += part.length
    collectGarbage()
  }
  return count
}
