import type { ChipReplacementRow } from "../../db/schema.ts"
import type { ChipReplacementResource } from "./model.ts"

export function presentChipReplacement(replacement: ChipReplacementRow): ChipReplacementResource {
  return {
    id: replacement.id,
    unit_id: replacement.unit_id,
    status: replacement.status,
    previous_chip_id: replacement.previous_chip_id,
    chip_id: replacement.chip_id,
    transaction_hash: replacement.transaction_hash,
    failure: replacement.failure,
    created_at: replacement.created_at.toISOString(),
    updated_at: replacement.updated_at.toISOString(),
  }
}
