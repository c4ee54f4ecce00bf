import { and, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type ChipReplacementRow, type ChipRow, chipReplacements, chips } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { startActor } from "../../engine/actors/runtime.ts"
import { foundSerialsOf } from "../../engine/found-serials.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Chains } from "../../platform/chain.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError, fieldError, LastingRefusal } from "../../platform/errors.ts"
import { newId } from "../../platform/ids.ts"
import type { Secret } from "../../platform/sealing.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import {
  isSaidEncoded,
  type NamedChip,
  requireFree,
  saidEncoded,
  takeEncodedChip,
} from "../chips/encoded-chip.ts"
import { type Pairing, pairingOf } from "../chips/pairing.ts"
import { type ChipPlace, createTestChip } from "../chips/test-chip.ts"
import { getOf, listOf } from "../ownership/of-unit.ts"
import {
  getUnitForCaller,
  hasOpenReplacement,
  hasRelayedClaim,
  type IssuedUnit,
  readOwnership,
  requireIssued,
} from "../ownership/rules.ts"
import { holdToQuota } from "../quotas/service.ts"
import { organizationOf } from "../settings/service.ts"
import type { UnitView } from "../units/service.ts"
import type { CreateChipReplacementBody } from "./model.ts"

/**
 * Returns the chip that the chain has locked for a claimed unit, if the body names an encoded chip and the database has
 * another one for the unit. Null otherwise, or if the chain cannot tell. Called before the database transaction.
 */
export async function readLockedChip(
  context: Context,
  caller: Caller,
  unitId: string,
  body: CreateChipReplacementBody,
): Promise<string | null> {
  if (body.chip_id === undefined) return null
  const unit = await getUnitForCaller(context.db.read, caller, unitId)
  if (!unit.claimed) return null
  try {
    const { ownership } = await readOwnership(context.chains, requireIssued(unit), "claim.owner_unknown")
    const { chip_id, owner } = ownership
    return owner === null || chip_id === unit.chip_id ? null : chip_id
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/**
 * Reserves another chip for an unclaimed unit and starts the replacement on chain. A claimed unit can only get the chip
 * that the chain already has for it, after a restored backup lost that. `checkPairing` must have accepted the body.
 */
export async function createChipReplacement(
  turn: Turn,
  { secret, chains }: { secret: Secret; chains: Chains },
  caller: Caller,
  { unit_id, body, locked_chip_id }: Wanted,
): Promise<ChipReplacementRow> {
  const found = await getUnitForCaller(turn.tx, caller, unit_id)
  const encoded = await findEncoded(turn.tx, caller, pairingOf({ unit_id, ...body }))
  if (encoded && isSaidEncoded(encoded)) throw fieldError("is_test", saidEncoded)
  const isChipOnChain = encoded !== null && encoded.chip.chip_id === locked_chip_id
  const unit = await requireReplaceable(turn.tx, found, isChipOnChain)
  const lane_id = chains.get(unit.collection.chain_id)?.ownershipLaneId(unit.id)
  if (!lane_id)
    throw new Unavailable(`CHAINS does not have chain ${unit.collection.chain_id} of unit ${unit.id}`)

  if (encoded) await requireFitting(turn.tx, unit, encoded.chip)
  else requireTestChipOn(unit)
  await holdToQuota(turn, await organizationOf(turn.tx, caller), "chips", 1)
  const id = newId()
  const place: ChipPlace = { unit_id: null, reserved_for: id }
  const { chip_id } = encoded
    ? await takeEncodedChip(turn, secret, encoded.chip, { message: encoded.message, place })
    : await createTestChip(turn, secret, caller, place)
  const [replacement] = await insertReplacement(turn.tx, {
    id,
    organization_id: caller.organization_id,
    unit_id: unit.id,
    status: "prepared",
    previous_chip_id: unit.chip_id,
    chip_id,
    transaction_hash: null,
    failure: null,
    created_at: turn.at,
    updated_at: turn.at,
  })
  if (!replacement) throw new ApiError("chip_replacement.in_progress")
  await startActor(turn, {
    id,
    machine: "chip-replacement",
    organization_id: caller.organization_id,
    input: { lane_id, unit_id: unit.id, previous_chip_id: unit.chip_id, chip_id },
  })
  return replacement
}

type Wanted = {
  unit_id: string
  body: CreateChipReplacementBody
  /** The result of `readLockedChip`. */
  locked_chip_id?: string | null
}

const insertReplacement = query((db, row: Given<ChipReplacementRow>) =>
  db.insert(chipReplacements).values(row).onConflictDoNothing().returning(),
)

/** Lists a unit's chip replacements, newest first. */
export const listChipReplacements = listOf(chipReplacements)

/** Throws `chip_replacement.not_found`. */
export const getChipReplacement = getOf(chipReplacements, "chip_replacement.not_found")

/**
 * Returns the caller's encoded chip with the value that proves it, or null for a test chip to be made. Throws
 * `chip.not_found`.
 */
async function findEncoded(
  queries: Queries,
  caller: Caller,
  { encoded: message }: Pairing,
): Promise<NamedChip | null> {
  if (!message) return null
  const [chip] = await queries
    .select()
    .from(chips)
    .where(and(eq(chips.chip_id, message.chip_id), eq(chips.organization_id, caller.organization_id)))
  if (!chip) throw new ApiError("chip.not_found")
  return { chip, message }
}

/** Returns the issued unit if its chip may change; if it is claimed, only to the chip that it already has on chain. */
async function requireReplaceable(
  queries: Queries,
  found: UnitView,
  isChipOnChain: boolean,
): Promise<IssuedUnit> {
  const unit = requireIssued(found)
  if (unit.claimed && !isChipOnChain) throw new ApiError("chip_replacement.locked")
  if (await hasRelayedClaim(queries, unit.id)) throw new ApiError("claim.in_progress")
  if (await hasOpenReplacement(queries, unit.id)) throw new ApiError("chip_replacement.in_progress")
  return unit
}

function requireTestChipOn({ is_test }: IssuedUnit): void {
  if (!is_test)
    throw fieldError("is_test", "must be false or absent: the unit has an encoded chip and needs another one")
}

/** Throws unless the new chip is free and of the same kind as the unit's. */
async function requireFitting(queries: Queries, unit: IssuedUnit, chip: ChipRow): Promise<void> {
  requireFree(chip)
  await requireNoSerial(queries, unit, chip)
  if (chip.is_test !== unit.is_test)
    throw fieldError(
      "chip_id",
      unit.is_test
        ? "is an encoded chip: this unit has a test chip and needs another one, with is_test true"
        : "is a test chip: this unit has an encoded chip and needs another one",
    )
}

/** Throws if the chain has the chip at a serial that a restored backup lost: the chip would get a second serial. */
async function requireNoSerial(queries: Queries, unit: IssuedUnit, { chip_id }: ChipRow): Promise<void> {
  const found = (await foundSerialsOf(queries, unit.collection.id, [chip_id])).get(chip_id)
  if (found)
    throw new LastingRefusal(
      "chip.already_paired",
      `The chain has this chip for serial ${found.serial}, which no unit has: pair it to a unit, which gets that serial.`,
    )
}
