import { and, asc, eq, getTableColumns, gt, inArray, isNull } from "drizzle-orm"
import { chipRefusals } from "../../db/chip-refusal-schema.ts"
import { type ChipRow, chips } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { collectGarbage } from "../../platform/memory.ts"
import { partsOf } from "../../platform/parts.ts"
import { isFree } from "../chips/encoded-chip.ts"
import { type ChipSignals, refusalsOfChip, signalColumns } from "../chips/signals.ts"
import { requireOrganization } from "../organizations/service.ts"
import { ChipFileError } from "./records.ts"

/** Yields all chips of an organization by id, with their signals, one page in memory at a time. */
export async function* pagesOfStock(
  context: Context,
  organizationId: string,
): AsyncGenerator<(ChipRow & ChipSignals)[]> {
  for (let after = ""; ; ) {
    const page = await context.db.read
      .select({ ...getTableColumns(chips), ...signalColumns })
      .from(chips)
      .leftJoin(chipRefusals, refusalsOfChip)
      .where(and(eq(chips.organization_id, organizationId), gt(chips.chip_id, after)))
      .orderBy(asc(chips.chip_id))
      .limit(PAGE_CHIPS)
    const last = page.at(-1)
    if (!last) return
    yield page
    collectGarbage()
    after = last.chip_id
  }
}

const PAGE_CHIPS = 500

/**
 * Retires an unpaired chip permanently; doing so again changes nothing. Throws `chip.not_found`, `chip.already_paired`,
 * `chip_replacement.in_progress` or `not_found.resource`.
 */
export async function retireChip(
  turn: Turn,
  input: { organization_id: string; chip_id: string },
): Promise<ChipRow> {
  const organization = await requireOrganization(turn.tx, input.organization_id)
  const ofChip = and(
    eq(chips.chip_id, input.chip_id.toUpperCase()),
    eq(chips.organization_id, organization.id),
  )
  const [retired] = await turn.tx
    .update(chips)
    .set({ retired_at: turn.at })
    .where(and(ofChip, isFree))
    .returning()
  if (retired) return retired
  const [chip] = await turn.tx.select().from(chips).where(ofChip)
  if (!chip) throw new ApiError("chip.not_found")
  if (chip.unit_id)
    throw new ApiError(
      "chip.already_paired",
      `The chip is paired to unit ${chip.unit_id}: give that unit another chip with a chip replacement.`,
    )
  if (chip.reserved_for)
    throw new ApiError(
      "chip_replacement.in_progress",
      `The chip is reserved for chip replacement ${chip.reserved_for}.`,
    )
  return chip
}

/**
 * Moves free chips that were never paired to another organization, all or none, and returns how many were not there
 * yet. A chip keeps its keys, even those derived from a key set of its former organization, and loses its count of
 * rejected values. Throws `not_found.resource`, `validation.failed`, and `ChipFileError` for each chip that cannot be
 * moved, with the same words whether another organization has it or nobody does.
 */
export async function moveChips(
  turn: Turn,
  input: { from: string; to: string; chip_ids: readonly string[] },
): Promise<number> {
  const from = await requireOrganization(turn.tx, input.from)
  const to = await requireOrganization(turn.tx, input.to)
  if (from.id === to.id) throw fieldError("to", "must be another organization than --from")
  let moved = 0
  const problems: string[] = []
  for (const part of partsOf(input.chip_ids, STATEMENT_CHIPS)) {
    const rows = await turn.tx
      .update(chips)
      .set({ organization_id: to.id })
      .where(
        and(
          inArray(chips.chip_id, part),
          eq(chips.organization_id, from.id),
          eq(chips.is_test, false),
          isFree,
          isNull(chips.paired_at),
        ),
      )
      .returning({ chip_id: chips.chip_id })
    moved += rows.length
    await turn.tx.delete(chipRefusals).where(
      inArray(
        chipRefusals.chip_id,
        rows.map(({ chip_id }) => chip_id),
      ),
    )
    if (rows.length < part.length) problems.push(...(await unmoved(turn, part, { from: from.id, to: to.id })))
  }
  if (problems.length > 0) throw new ChipFileError(problems, "Nothing was moved: some chips cannot be moved.")
  return moved
}

const STATEMENT_CHIPS = 500

/** Explains which chips of a part could not be moved and why. */
async function unmoved(
  turn: Turn,
  part: string[],
  { from, to }: { from: string; to: string },
): Promise<string[]> {
  const rows = await turn.tx.select().from(chips).where(inArray(chips.chip_id, part))
  const known = new Map(rows.map((row) => [row.chip_id, row]))
  return part.flatMap((chip_id) => {
    const row = known.get(chip_id)
    if (row?.organization_id === to) return []
    if (row?.organization_id !== from) return [`chip ${chip_id}: the organization of --from has no such chip`]
    if (row.is_test) return [`chip ${chip_id}: is a test chip, which has no hardware to move`]
    if (row.retired_at) return [`chip ${chip_id}: is retired`]
    if (row.reserved_for) return [`chip ${chip_id}: is reserved for a chip replacement`]
    return [`chip ${chip_id}: is or was paired to a unit`]
  })
}
