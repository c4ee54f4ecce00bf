import type { ChipRow } from "../../db/schema.ts"
import type { ChipSignals } from "../chips/signals.ts"

/** Returns a chip as the operator CLI shows it, without its keys. */
export function presentStockChip(chip: ChipRow & ChipSignals) {
  return {
    chip_id: chip.chip_id,
    organization_id: chip.organization_id,
    is_test: chip.is_test,
    unit_id: chip.unit_id,
    reserved_for: chip.reserved_for,
    counter: chip.counter,
    scan_count: chip.scan_count,
    skipped_count: chip.skipped_count,
    refused_count: chip.refused_count,
    last_refused_at: chip.last_refused_at?.toISOString() ?? null,
    created_at: chip.created_at.toISOString(),
    paired_at: chip.paired_at?.toISOString() ?? null,
    retired_at: chip.retired_at?.toISOString() ?? null,
  }
}
