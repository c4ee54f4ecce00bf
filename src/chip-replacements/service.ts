import { and, eq, isNull, lt } from "drizzle-orm"
import { startActor } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import type { Chains } from "../chain/chains.ts"
import { checkPairing, type EncodedChip } from "../chips/pairing.ts"
import { provenCounter } from "../chips/proof.ts"
import { createTestChip } from "../chips/test-chip.ts"
import type { Queries } from "../db/database.ts"
import { chipReplacements, chips } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError, fieldError } from "../errors.ts"
import { newId, parseId } from "../ids.ts"
import {
  getUnitForCaller,
  hasOpenClaim,
  hasOpenReplacement,
  type IssuedUnit,
  requireIssued,
} from "../ownership.ts"
import type { CreateChipReplacementBody } from "./model.ts"

export type ChipReplacementRow = typeof chipReplacements.$inferSelect

/**
 * Reserves another chip for an unclaimed unit and starts the swap on the chain.
 * Throws, in this order: `validation.failed`, `unit.not_found`, `unit.not_minted`, `unit.issuance_pending`,
 * `chip_replacement.locked`, `claim.in_progress`, `chip_replacement.in_progress`, `chip.not_found`,
 * `chip.already_paired`, `validation.failed` for a test chip on another unit or the reverse,
 * `chip.invalid_e_value`, `chip.already_scanned`.
 */
export async function createChipReplacement(
  turn: Turn,
  secret: string,
  chains: Chains,
  caller: Caller,
  unitId: string,
  body: CreateChipReplacementBody,
): Promise<ChipReplacementRow> {
  const { encoded } = checkPairing({ unit_id: unitId, ...body })
  const unit = await requireReplaceable(turn.tx, caller, unitId)
  const lane_id = chains.get(unit.collection.chain_id)?.ownershipLaneId()
  if (!lane_id) throw new Error(`CHAINS does not have chain ${unit.collection.chain_id} of unit ${unit.id}`)

  const id = newId()
  const chip_id = encoded
    ? await reserveEncodedChip(turn, secret, unit, encoded, id)
    : await reserveTestChip(turn, secret, caller, unit, id)
  const [replacement] = await turn.tx
    .insert(chipReplacements)
    .values({
      id,
      organization_id: caller.organization_id,
      unit_id: unit.id,
      status: "prepared",
      previous_chip_id: unit.chip_id,
      chip_id,
      created_at: turn.at,
      updated_at: turn.at,
    })
    .onConflictDoNothing()
    .returning()
  if (!replacement) throw new ApiError("chip_replacement.in_progress")
  await startActor(turn, {
    id,
    machine: "chip-replacement",
    organization_id: caller.organization_id,
    input: { lane_id, unit_id: unit.id, previous_chip_id: unit.chip_id, chip_id },
  })
  return replacement
}

/** Throws `unit.not_found`, `chip_replacement.not_found`. */
export async function getChipReplacement(
  queries: Queries,
  caller: Caller,
  unitId: string,
  replacementId: string,
): Promise<ChipReplacementRow> {
  const unit = await getUnitForCaller(queries, caller, unitId)
  const id = parseId(replacementId)
  if (!id) throw new ApiError("chip_replacement.not_found")
  const [replacement] = await queries
    .select()
    .from(chipReplacements)
    .where(
      and(
        eq(chipReplacements.id, id),
        eq(chipReplacements.unit_id, unit.id),
        eq(chipReplacements.organization_id, caller.organization_id),
      ),
    )
  if (!replacement) throw new ApiError("chip_replacement.not_found")
  return replacement
}

/** An issued unit whose chip may change now. */
type ReplaceableUnit = IssuedUnit & { has_test_chip: boolean }

async function requireReplaceable(
  queries: Queries,
  caller: Caller,
  unitId: string,
): Promise<ReplaceableUnit> {
  const unit = requireIssued(await getUnitForCaller(queries, caller, unitId))
  if (unit.claimed) throw new ApiError("chip_replacement.locked")
  if (await hasOpenClaim(queries, unit.id)) throw new ApiError("claim.in_progress")
  if (await hasOpenReplacement(queries, unit.id)) throw new ApiError("chip_replacement.in_progress")
  const [chip] = await queries
    .select({ is_test: chips.is_test })
    .from(chips)
    .where(eq(chips.chip_id, unit.chip_id))
  return { ...unit, has_test_chip: chip?.is_test === true }
}

async function reserveTestChip(
  turn: Turn,
  secret: string,
  caller: Caller,
  unit: ReplaceableUnit,
  replacementId: string,
): Promise<string> {
  if (!unit.has_test_chip)
    throw fieldError("is_test", "must be false or absent: the unit has an encoded chip and takes another one")
  return await createTestChip(turn, secret, caller, { unit_id: null, reserved_for: replacementId })
}

/** One statement reserves the chip and consumes the counter that proved it. */
async function reserveEncodedChip(
  turn: Turn,
  secret: string,
  unit: ReplaceableUnit,
  { chip_id, e, c }: EncodedChip,
  replacementId: string,
): Promise<string> {
  const own = and(eq(chips.chip_id, chip_id), eq(chips.organization_id, unit.organization_id))
  const [chip] = await turn.tx.select().from(chips).where(own)
  if (!chip) throw new ApiError("chip.not_found")
  if (chip.unit_id || chip.retired_at || chip.reserved_for) throw new ApiError("chip.already_paired")
  if (chip.is_test !== unit.has_test_chip)
    throw fieldError(
      "chip_id",
      unit.has_test_chip
        ? "is an encoded chip: this unit has a test chip and takes another one, with is_test true"
        : "is a test chip: this unit has an encoded chip and takes another one",
    )
  const counter = provenCounter(secret, chip, { e, c })
  const [reserved] = await turn.tx
    .update(chips)
    .set({ reserved_for: replacementId, counter })
    .where(
      and(
        own,
        isNull(chips.unit_id),
        isNull(chips.retired_at),
        isNull(chips.reserved_for),
        lt(chips.counter, counter),
      ),
    )
    .returning({ chip_id: chips.chip_id })
  if (!reserved) throw new ApiError(counter > chip.counter ? "chip.already_paired" : "chip.already_scanned")
  return reserved.chip_id
}
