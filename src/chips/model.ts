import { type Static, Type } from "@sinclair/typebox"
import { c, chipId, e, id, instant, nullable } from "../fields.ts"
import { presentUnitSnapshot, unitSnapshot } from "../units/model.ts"
import type { ChipView, ListedChip } from "./service.ts"

/** Both variants in one closed object: `checkPairing` tells them apart and names the field that is wrong. */
export const pairChipBody = Type.Object(
  {
    unit_id: id,
    chip_id: Type.Optional(chipId),
    e: Type.Optional(e),
    c: Type.Optional(c),
    is_test: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
export type PairChipBody = Static<typeof pairChipBody>

export const pairChipsInBulkBody = Type.Object(
  { chips: Type.Array(pairChipBody, { minItems: 1, maxItems: 100 }) },
  { additionalProperties: false },
)
export type PairChipsInBulkBody = Static<typeof pairChipsInBulkBody>

/** A chip wherever one is shown, but in lists. */
export const chipResource = Type.Object(
  {
    chip_id: chipId,
    is_test: Type.Boolean(),
    scan_count: Type.Integer({ minimum: 0 }),
    created_at: instant,
    unit: nullable(unitSnapshot),
  },
  { additionalProperties: false },
)
export type ChipResource = Static<typeof chipResource>

/** What pairing answers: a chip, with its unit. */
export const pairedChipResource = Type.Object(
  { ...chipResource.properties, unit: unitSnapshot },
  { additionalProperties: false },
)

export const chipListItem = Type.Object(
  {
    ...chipResource.properties,
    unit: nullable(
      Type.Object({ id, external_id: nullable(Type.String()) }, { additionalProperties: false }),
    ),
  },
  { additionalProperties: false },
)
export type ChipListItem = Static<typeof chipListItem>

export function presentChip(chip: ChipView): ChipResource {
  return { ...presentTag(chip), unit: chip.unit && presentUnitSnapshot(chip.unit) }
}

export function presentListedChip(chip: ListedChip): ChipListItem {
  return { ...presentTag(chip), unit: chip.unit && { id: chip.unit.id, external_id: chip.unit.external_id } }
}

function presentTag(chip: Omit<ListedChip, "unit">) {
  return {
    chip_id: chip.chip_id,
    is_test: chip.is_test,
    scan_count: chip.scan_count,
    created_at: chip.created_at.toISOString(),
  }
}
