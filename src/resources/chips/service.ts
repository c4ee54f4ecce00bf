import { and, eq, getTableColumns, inArray, type SQL } from "drizzle-orm"
import { chipRefusals } from "../../db/chip-refusal-schema.ts"
import type { Builder, Queries } from "../../db/database.ts"
import {
  type GivenPage,
  givenPage,
  keysetAfter,
  newestFirst,
  type Page,
  type PageOf,
  pageBy,
} from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import { bulkPairings, type ChipRow, chips, collections, type UnitRow, units } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { sendEvent } from "../../engine/actors/runtime.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { canonicalChipId } from "../../platform/fields.ts"
import { newId } from "../../platform/ids.ts"
import type { Secret } from "../../platform/sealing.ts"
import { holdToQuota } from "../quotas/service.ts"
import { organizationOf } from "../settings/service.ts"
import {
  type CollectionOfUnit,
  collectionColumns,
  findUnits,
  type UnitView,
  unitViewOf,
} from "../units/service.ts"
import { isSaidEncoded, type NamedChip, requireFree, saidEncoded, takeEncodedChip } from "./encoded-chip.ts"
import type { PairChipBody, PairChipsInBulkBody } from "./model.ts"
import { type Pairing, pairingOf } from "./pairing.ts"
import { type ChipSignals, refusalsOfChip, signalColumns } from "./signals.ts"
import { type ChipPlace, createTestChip } from "./test-chip.ts"

/** A chip, without its secrets, and the unit it is paired to now. */
export type ChipView = Omit<ChipRow, "uid" | "wrapped_keys"> & { unit: UnitView | null }

/** The same, with signals that only its brand may see. */
export type ObservedChip = ChipView & ChipSignals

export type ListedChip = Pick<
  ChipRow,
  "chip_id" | "is_test" | "scan_count" | "tamper" | "retired_at" | "created_at"
> &
  ChipSignals & { unit: { id: string; external_id: string | null } | null }

/**
 * Pairs a new test chip, or an encoded chip that proves itself, to a unit and starts the unit's issuance.
 * `checkPairing` must have accepted the body.
 */
export async function pairChip(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  body: PairChipBody,
): Promise<ChipView> {
  const pairings = await findPairings(turn, caller, [{ ...pairingOf(body), index: null }])
  if (mistakenEntries(pairings).length > 0) throw fieldError("is_test", saidEncoded)
  requireActiveCollections(pairings)
  const [chip] = await pairInOrder(turn, secret, caller, { pairings, bulk_pairing_id: null })
  if (!chip) throw new Error("a pairing answered no chip")
  return chip
}

/**
 * Pairs up to 100 chips to units of one collection, all or none. The units are issued in the given order.
 * `checkPairings` must have accepted the body.
 */
export async function pairChipsInBulk(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  body: PairChipsInBulkBody,
): Promise<ChipView[]> {
  const pairings = await findPairings(
    turn,
    caller,
    body.chips.map((chip, index) => ({ ...pairingOf(chip), index })),
  )
  const mistaken = mistakenEntries(pairings).map((index) => `[${index}].is_test: ${saidEncoded}`)
  if (mistaken.length > 0)
    throw new ApiError("validation.failed", undefined, { formErrors: [], fieldErrors: { chips: mistaken } })
  const collectionIds = new Set(pairings.map(({ unit }) => unit.collection_id))
  if (collectionIds.size > 1) throw new ApiError("chip.bulk_mixed_collections")
  const [collectionId] = collectionIds
  if (!collectionId) throw new ApiError("collection.not_active")
  requireActiveCollections(pairings)
  const bulk_pairing_id = await openBulkPairing(turn, caller, collectionId, pairings.length)
  return await pairInOrder(turn, secret, caller, { pairings, bulk_pairing_id })
}

/** Returns one of the caller's own chips; `unit` is null if it is not paired. Throws `chip.not_found`. */
export async function getChip(
  queries: Queries,
  caller: Pick<Caller, "organization_id">,
  chipId: string,
): Promise<ObservedChip> {
  const { organization_id } = caller
  const [found] = await ownChip(queries, { chip_id: canonicalChipId(chipId), organization_id })
  if (!found) throw new ApiError("chip.not_found")
  return viewOf(found)
}

/** Returns the chip that is paired to a unit, or null. */
export async function chipOfUnit(queries: Queries, unitId: string): Promise<ObservedChip | null> {
  const [found] = await chipByUnit(queries, { unit_id: unitId })
  return found ? viewOf(found) : null
}

const chipByUnit = query((db, given: Given<{ unit_id: string }>) =>
  selectChips(db).where(eq(chips.unit_id, given.unit_id)),
)

const ownChip = query((db, given: Given<{ chip_id: string; organization_id: string }>) =>
  selectChips(db).where(
    and(eq(chips.chip_id, given.chip_id), eq(chips.organization_id, given.organization_id)),
  ),
)

function selectChips(db: Builder) {
  return db
    .select({ chip: { ...shownColumns, ...signalColumns }, unit: units, collection: collectionColumns })
    .from(chips)
    .leftJoin(chipRefusals, refusalsOfChip)
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(collections, eq(collections.id, units.collection_id))
}

type Found<Chip> = { chip: Chip; unit: UnitRow | null; collection: CollectionOfUnit | null }

function viewOf<Chip extends Omit<ChipView, "unit">>({ chip, unit, collection }: Found<Chip>) {
  return { ...chip, unit: unit && unitViewOf({ unit, collection, chip }) }
}

export async function listChips(
  queries: Queries,
  caller: Caller,
  { is_test, page }: { is_test?: boolean | undefined; page: Page },
): Promise<PageOf<ListedChip>> {
  const { organization_id } = caller
  const rows = await chipsOf(queries, { organization_id, is_test, ...givenPage(page) })
  return pageBy(rows, page.limit, (chip) => chip.chip_id)
}

type Listed = GivenPage & { organization_id: string; is_test: boolean | undefined }

const keyset = { created_at: chips.created_at, id: chips.chip_id }

const chipsOf = query((db, given: Given<Listed>) =>
  db
    .select({
      chip_id: chips.chip_id,
      is_test: chips.is_test,
      scan_count: chips.scan_count,
      tamper: chips.tamper,
      retired_at: chips.retired_at,
      created_at: chips.created_at,
      ...signalColumns,
      unit: { id: units.id, external_id: units.external_id },
    })
    .from(chips)
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(chipRefusals, refusalsOfChip)
    .where(
      and(
        eq(chips.organization_id, given.organization_id),
        given.is_test && eq(chips.is_test, given.is_test),
        keysetAfter(keyset, given),
      ),
    )
    .orderBy(...newestFirst(keyset))
    .limit(given.rows),
)

/** A pairing with its index in a bulk request, null outside one. */
type Indexed<Of> = Of & { index: number | null }

/** A pairing with its rows; `encoded` is null for a test chip to be made. */
type FoundPairing = Indexed<{ unit: UnitView; encoded: NamedChip | null }>

/** Returns the rows that pairings name, all the caller's own. Throws `unit.not_found` or `chip.not_found`. */
async function findPairings(
  turn: Turn,
  caller: Caller,
  pairings: Indexed<Pairing>[],
): Promise<FoundPairing[]> {
  const unitIds = pairings.map(({ unit_id }) => unit_id)
  const foundUnits = await findUnits(turn.tx, caller, unitIds)
  const unitById = new Map(foundUnits.map((unit) => [unit.id, unit]))
  const chipById = await encodedChips(turn, caller, pairings)
  const withUnits = pairings.map((pairing) => {
    const unit = unitById.get(pairing.unit_id)
    if (!unit) throw at(pairing, new ApiError("unit.not_found"))
    return { ...pairing, unit }
  })
  return withUnits.map(({ index, unit, encoded }) => {
    if (!encoded) return { index, unit, encoded }
    const chip = chipById.get(encoded.chip_id)
    if (!chip) throw at({ index }, new ApiError("chip.not_found"))
    return { index, unit, encoded: { chip, message: encoded } }
  })
}

/** Returns the error; in a bulk request, its message says which entry it is about. */
function at({ index }: Indexed<object>, error: unknown): unknown {
  if (index !== null && error instanceof ApiError) error.message = `chips[${index}]: ${error.message}`
  return error
}

async function encodedChips(turn: Turn, caller: Caller, pairings: Pairing[]): Promise<Map<string, ChipRow>> {
  const chipIds = pairings.flatMap(({ encoded }) => (encoded ? [encoded.chip_id] : []))
  if (chipIds.length === 0) return new Map()
  const rows = await turn.tx.select().from(chips).where(own(caller, chipIds))
  return new Map(rows.map((chip) => [chip.chip_id, chip]))
}

/** Returns the indexes of the pairings that declare a test chip as encoded. */
function mistakenEntries(pairings: FoundPairing[]): number[] {
  return pairings.flatMap(({ encoded }, index) => (encoded && isSaidEncoded(encoded) ? [index] : []))
}

function requireActiveCollections(pairings: FoundPairing[]): void {
  if (pairings.some(({ unit }) => unit.collection?.status !== "active"))
    throw new ApiError("collection.not_active")
}

/**
 * Opens a bulk pairing. A constraint allows a collection only one that is not issued yet. Throws `chip.bulk_pending`.
 */
async function openBulkPairing(
  turn: Turn,
  caller: Caller,
  collectionId: string,
  size: number,
): Promise<string> {
  const [opened] = await insertBulkPairing(turn.tx, {
    id: newId(),
    organization_id: caller.organization_id,
    collection_id: collectionId,
    size,
    created_at: turn.at,
    issued_at: null,
  })
  if (!opened) throw new ApiError("chip.bulk_pending")
  return opened.id
}

const insertBulkPairing = query((db, row: Given<typeof bulkPairings.$inferSelect>) =>
  db.insert(bulkPairings).values(row).onConflictDoNothing().returning({ id: bulkPairings.id }),
)

async function pairInOrder(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  { pairings, bulk_pairing_id }: { pairings: FoundPairing[]; bulk_pairing_id: string | null },
): Promise<ChipView[]> {
  for (const pairing of pairings) requirePairable(pairing)
  await holdToQuota(turn, await organizationOf(turn.tx, caller), "chips", pairings.length)

  const paired: ChipView[] = []
  for (const pairing of pairings) {
    try {
      paired.push(await pair(turn, secret, caller, { pairing, bulk_pairing_id }))
    } catch (error) {
      throw at(pairing, error)
    }
  }
  return paired
}

function requirePairable({ index, unit, encoded }: FoundPairing): void {
  try {
    if (unit.chip_id !== null) throw new ApiError("chip.already_paired", unitHasChip)
    if (encoded) requireFree(encoded.chip)
  } catch (error) {
    throw at({ index }, error)
  }
}

const unitHasChip = "The unit has a chip already: only a chip replacement gives it another one."

async function pair(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  { pairing: { unit, encoded }, bulk_pairing_id }: { pairing: FoundPairing; bulk_pairing_id: string | null },
): Promise<ChipView> {
  const place: ChipPlace = { unit_id: unit.id, reserved_for: null }
  const { uid, wrapped_keys, ...chip } = encoded
    ? await takeEncodedChip(turn, secret, encoded.chip, { message: encoded.message, place })
    : await createTestChip(turn, secret, caller, place)
  const event = { type: "PAIRED", chip_id: chip.chip_id, bulk_pairing_id }
  const { accepted } = await sendEvent(turn, unit.id, event)
  // A unit that was issued with a chip can only get another one by a chip replacement.
  if (!accepted) throw new ApiError("chip.already_paired", unitHasChip)
  return viewOf({ chip, unit, collection: unit.collection })
}

const { uid: _uid, wrapped_keys: _wrapped_keys, ...shownColumns } = getTableColumns(chips)

function own(caller: Caller, chipIds: string[]): SQL | undefined {
  return and(inArray(chips.chip_id, chipIds), eq(chips.organization_id, caller.organization_id))
}
