import { and, eq, getTableColumns, inArray, isNotNull, isNull, lt, type SQL } from "drizzle-orm"
import { sendEvent } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import type { Queries } from "../db/database.ts"
import { keysetAfter, newestFirst, type Page, type PageOf, pageBy } from "../db/page.ts"
import { bulkPairings, chips, collections, units } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError } from "../errors.ts"
import { canonicalChipId } from "../fields.ts"
import { newId } from "../ids.ts"
import { holdToQuota } from "../quotas.ts"
import { type UnitView, unitViews } from "../units/service.ts"
import type { PairChipBody, PairChipsInBulkBody } from "./model.ts"
import { checkPairing, checkPairings, type EncodedChip, type Pairing } from "./pairing.ts"
import { provenCounter } from "./proof.ts"
import { createTestChip } from "./test-chip.ts"

export type ChipRow = typeof chips.$inferSelect

/** A chip with the unit it is paired to now, without what is secret of it. */
export type ChipView = Omit<ChipRow, "uid" | "wrapped_keys"> & { unit: UnitView | null }

export type ListedChip = Pick<ChipRow, "chip_id" | "is_test" | "scan_count" | "created_at"> & {
  unit: { id: string; external_id: string | null } | null
}

/**
 * Pairs a fresh test chip, or an encoded chip that proves itself, to a unit and starts the unit's issuance.
 * Throws `validation.failed`, `unit.not_found`, `chip.not_found`, `collection.not_active`,
 * `chip.already_paired`, `quota.exceeded`, `chip.invalid_e_value`, `chip.already_scanned`.
 */
export async function pairChip(
  turn: Turn,
  secret: string,
  caller: Caller,
  body: PairChipBody,
): Promise<ChipView> {
  const pairings = await findPairings(turn, caller, [checkPairing(body)])
  requireActiveCollections(pairings)
  const [chip] = await pairInOrder(turn, secret, caller, pairings, null)
  if (!chip) throw new Error("a pairing answered no chip")
  return chip
}

/**
 * Pairs up to 100 chips to units of one collection, all or none; the units are issued in the order given.
 * Throws what `pairChip` throws, `chip.bulk_mixed_collections`, and `chip.bulk_pending` while an earlier bulk
 * pairing of the collection is still being issued.
 */
export async function pairChipsInBulk(
  turn: Turn,
  secret: string,
  caller: Caller,
  body: PairChipsInBulkBody,
): Promise<ChipView[]> {
  const pairings = await findPairings(turn, caller, checkPairings(body.chips))
  const collectionIds = new Set(pairings.map(({ unit }) => unit.collection_id))
  if (collectionIds.size > 1) throw new ApiError("chip.bulk_mixed_collections")
  const [collectionId] = collectionIds
  if (!collectionId) throw new ApiError("collection.not_active")
  requireActiveCollections(pairings)
  const bulkPairingId = await openBulkPairing(turn, caller, collectionId, pairings.length)
  return await pairInOrder(turn, secret, caller, pairings, bulkPairingId)
}

/** Throws `validation.failed` on `chip_id`, `chip.not_found`. */
export async function getChip(queries: Queries, caller: Caller, chipId: string): Promise<ChipView> {
  const [chip] = await chipViews(queries, own(caller, [canonicalChipId(chipId)]))
  if (!chip) throw new ApiError("chip.not_found")
  return chip
}

export async function listChips(
  queries: Queries,
  caller: Caller,
  { is_test, page }: { is_test?: boolean | undefined; page: Page },
): Promise<PageOf<ListedChip>> {
  const rows = await queries
    .select({
      chip_id: chips.chip_id,
      is_test: chips.is_test,
      scan_count: chips.scan_count,
      created_at: chips.created_at,
      unit: { id: units.id, external_id: units.external_id },
    })
    .from(chips)
    .leftJoin(units, eq(units.id, chips.unit_id))
    .where(
      and(
        eq(chips.organization_id, caller.organization_id),
        is_test === undefined ? undefined : eq(chips.is_test, is_test),
        keysetAfter(keyset, page.after),
      ),
    )
    .orderBy(...newestFirst(keyset))
    .limit(page.limit + 1)
  return pageBy(rows, page.limit, (chip) => chip.chip_id)
}

const keyset = { created_at: chips.created_at, id: chips.chip_id }

/** A pairing with the rows it names. `chip` is the encoded chip; a test chip is yet to be made. */
type FoundPairing = { unit: UnitView; encoded: { chip: ChipRow; message: EncodedChip } | null }

/** Throws `unit.not_found`, `chip.not_found`. */
async function findPairings(turn: Turn, caller: Caller, pairings: Pairing[]): Promise<FoundPairing[]> {
  const unitIds = pairings.map(({ unit_id }) => unit_id)
  const foundUnits = await unitViews(
    turn.tx,
    and(inArray(units.id, unitIds), eq(units.organization_id, caller.organization_id)),
  )
  const unitById = new Map(foundUnits.map((unit) => [unit.id, unit]))
  const chipById = await encodedChips(turn, caller, pairings)
  const unitOf = (pairing: Pairing) => unitById.get(pairing.unit_id)
  if (!pairings.every(unitOf)) throw new ApiError("unit.not_found")
  return pairings.map((pairing) => {
    const unit = unitOf(pairing)
    if (!unit) throw new ApiError("unit.not_found")
    if (!pairing.encoded) return { unit, encoded: null }
    const chip = chipById.get(pairing.encoded.chip_id)
    if (!chip) throw new ApiError("chip.not_found")
    return { unit, encoded: { chip, message: pairing.encoded } }
  })
}

async function encodedChips(turn: Turn, caller: Caller, pairings: Pairing[]): Promise<Map<string, ChipRow>> {
  const chipIds = pairings.flatMap(({ encoded }) => (encoded ? [encoded.chip_id] : []))
  if (chipIds.length === 0) return new Map()
  const rows = await turn.tx.select().from(chips).where(own(caller, chipIds))
  return new Map(rows.map((chip) => [chip.chip_id, chip]))
}

function requireActiveCollections(pairings: FoundPairing[]): void {
  if (pairings.some(({ unit }) => unit.collection?.status !== "active"))
    throw new ApiError("collection.not_active")
}

/** The constraint decides: a collection has one bulk pairing that is not issued yet. */
async function openBulkPairing(
  turn: Turn,
  caller: Caller,
  collectionId: string,
  size: number,
): Promise<string> {
  const [opened] = await turn.tx
    .insert(bulkPairings)
    .values({
      id: newId(),
      organization_id: caller.organization_id,
      collection_id: collectionId,
      size,
      created_at: turn.at,
      issued_at: null,
    })
    .onConflictDoNothing()
    .returning({ id: bulkPairings.id })
  if (!opened) throw new ApiError("chip.bulk_pending")
  return opened.id
}

async function pairInOrder(
  turn: Turn,
  secret: string,
  caller: Caller,
  pairings: FoundPairing[],
  bulkPairingId: string | null,
): Promise<ChipView[]> {
  if (pairings.some(isPairedAlready)) throw new ApiError("chip.already_paired")
  await holdToQuota(turn, caller, "quota_chips", pairings.length, {
    table: chips,
    where: isNotNull(chips.paired_at),
  })

  const chipIds: string[] = []
  for (const { unit, encoded } of pairings) {
    const chip_id = encoded
      ? await pairEncodedChip(turn, secret, unit, encoded.chip, encoded.message)
      : await createTestChip(turn, secret, caller, { unit_id: unit.id, reserved_for: null })
    const event = { type: "PAIRED", chip_id, bulk_pairing_id: bulkPairingId }
    const { accepted } = await sendEvent(turn, unit.id, event)
    // A unit that was issued with a chip before takes another one by a chip replacement only.
    if (!accepted) throw new ApiError("chip.already_paired")
    chipIds.push(chip_id)
  }
  const views = await chipViews(turn.tx, own(caller, chipIds))
  return views.sort((one, other) => chipIds.indexOf(one.chip_id) - chipIds.indexOf(other.chip_id))
}

function isPairedAlready({ unit, encoded }: FoundPairing): boolean {
  if (unit.chip_id !== null) return true
  if (!encoded) return false
  const { unit_id, retired_at, reserved_for } = encoded.chip
  return unit_id !== null || retired_at !== null || reserved_for !== null
}

/** One statement takes the chip and consumes the counter that proved it. */
async function pairEncodedChip(
  turn: Turn,
  secret: string,
  unit: UnitView,
  chip: ChipRow,
  message: EncodedChip,
): Promise<string> {
  const counter = provenCounter(secret, chip, message)
  const [paired] = await turn.tx
    .update(chips)
    .set({ unit_id: unit.id, counter, paired_at: turn.at })
    .where(
      and(
        eq(chips.chip_id, chip.chip_id),
        eq(chips.organization_id, unit.organization_id),
        isNull(chips.unit_id),
        isNull(chips.retired_at),
        isNull(chips.reserved_for),
        lt(chips.counter, counter),
      ),
    )
    .returning({ chip_id: chips.chip_id })
  if (!paired) throw new ApiError(counter > chip.counter ? "chip.already_paired" : "chip.already_scanned")
  return paired.chip_id
}

/** The chips of a condition on `chips`, each with its unit and the unit's collection, in one query. */
async function chipViews(queries: Queries, where: SQL | undefined): Promise<ChipView[]> {
  const rows = await queries
    .select({ chip: shownColumns, unit: units, collection: collections })
    .from(chips)
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .where(where)
  return rows.map(({ chip, unit, collection }) => ({
    ...chip,
    unit: unit && { ...unit, collection, chip_id: chip.chip_id },
  }))
}

const { uid: _uid, wrapped_keys: _wrapped_keys, ...shownColumns } = getTableColumns(chips)

function own(caller: Caller, chipIds: string[]): SQL | undefined {
  return and(inArray(chips.chip_id, chipIds), eq(chips.organization_id, caller.organization_id))
}
