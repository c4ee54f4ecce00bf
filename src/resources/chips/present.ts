import { presentUnitSnapshot } from "../units/present.ts"
import type { ChipListItem, ChipResource, ObservedChipResource } from "./model.ts"
import type { ChipView, ListedChip, ObservedChip } from "./service.ts"
import type { ChipSignals } from "./signals.ts"

export function presentChip(chip: ChipView): ChipResource {
  return { ...presentTag(chip), unit: chip.unit && presentUnitSnapshot(chip.unit) }
}

export function presentObservedChip(chip: ObservedChip): ObservedChipResource {
  const { unit, ...tag } = presentChip(chip)
  return { ...tag, ...presentSignals(chip), unit }
}

export function presentListedChip(chip: ListedChip): ChipListItem {
  const unit = chip.unit && { id: chip.unit.id, external_id: chip.unit.external_id }
  return { ...presentTag(chip), ...presentSignals(chip), unit }
}

function presentSignals({ skipped_count, refused_count, last_refused_at }: ChipSignals) {
  return { skipped_count, refused_count, last_refused_at: last_refused_at?.toISOString() ?? null }
}

function presentTag(chip: Omit<ChipView, "unit"> | Omit<ListedChip, "unit">) {
  return {
    chip_id: chip.chip_id,
    is_test: chip.is_test,
    scan_count: chip.scan_count,
    tamper: chip.tamper,
    retired_at: chip.retired_at?.toISOString() ?? null,
    created_at: chip.created_at.toISOString(),
  }
}
