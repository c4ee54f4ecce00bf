import { and, eq, isNull } from "drizzle-orm"
import { type ChipRow, chips } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { SunMessage } from "../../engine/sun/message.ts"
import { ApiError } from "../../platform/errors.ts"
import type { Secret } from "../../platform/sealing.ts"
import type { EncodedChip } from "./pairing.ts"
import { isAhead, isOpening, lastCounter, proveMessage, provenColumns } from "./proof.ts"
import type { ChipPlace } from "./test-chip.ts"

/**
 * Pairs or reserves a free chip that proves itself, and returns its new row. One statement takes the chip and consumes
 * the counter that proves it. Throws `chip.already_paired`, `chip.invalid_e_value`, `chip.already_scanned`.
 */
export async function takeEncodedChip(
  turn: Turn,
  secret: Secret,
  chip: ChipRow,
  { message, place }: { message: SunMessage; place: ChipPlace },
): Promise<ChipRow> {
  requireFree(chip)
  const proof = await proveMessage(turn.tx, secret, chip, message)
  const [taken] = await turn.tx
    .update(chips)
    .set({ ...place, ...provenColumns(proof), ...(place.unit_id && { paired_at: turn.at }) })
    .where(
      and(
        eq(chips.chip_id, chip.chip_id),
        eq(chips.organization_id, chip.organization_id),
        isFree,
        isAhead(proof),
      ),
    )
    .returning()
  if (!taken)
    throw new ApiError(
      proof.counter > lastCounter(chip, proof) ? "chip.already_paired" : "chip.already_scanned",
    )
  if (isOpening(chip, proof)) await turn.tell(turn, { opened: chip })
  return taken
}

/** A chip named in a body, with the value that proves it. */
export type NamedChip = { chip: ChipRow; message: EncodedChip }

/** Returns whether a body declares a test chip as encoded. A failed chip replacement can leave a test chip free. */
export function isSaidEncoded({ chip, message }: NamedChip): boolean {
  return chip.is_test && message.is_test === false
}

export const saidEncoded = "must be absent: the chip is a test chip"

/** Throws `chip.already_paired` if a chip has a unit, is retired or is reserved. */
export function requireFree({ unit_id, retired_at, reserved_for }: ChipRow): void {
  if (unit_id) throw new ApiError("chip.already_paired", "The chip is already paired to a unit.")
  if (retired_at)
    throw new ApiError("chip.already_paired", "The chip was retired and can never be paired again.")
  if (reserved_for) throw new ApiError("chip.already_paired", "The chip is reserved for a chip replacement.")
}

/** The same, as a condition on `chips`. */
export const isFree = and(isNull(chips.unit_id), isNull(chips.retired_at), isNull(chips.reserved_for))
