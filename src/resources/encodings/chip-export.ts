import type { ChipRow } from "../../db/schema.ts"
import type { Context } from "../../platform/context.ts"
import { pagesOfStock } from "../chip-stock/service.ts"
import { knownUid } from "../chips/proof.ts"
import type { ChipSignals } from "../chips/signals.ts"
import { requireOrganization } from "../organizations/service.ts"

/** A chip in an export, without its keys. */
export type ExportedChip = ReturnType<typeof presentExported>

/** Yields all chips of an organization by id, one page in memory at a time. Throws `not_found.resource`. */
export async function* exportedChips(context: Context, organizationId: string): AsyncGenerator<ExportedChip> {
  const organization = await requireOrganization(context.db.read, organizationId)
  for await (const page of pagesOfStock(context, organization.id))
    for (const chip of page) yield presentExported(chip)
}

function presentExported(chip: ChipRow & ChipSignals) {
  return {
    chip_id: chip.chip_id,
    uid: knownUid(chip),
    is_test: chip.is_test,
    key_set_id: chip.key_set_id,
    key_version: chip.key_version,
    unit_id: chip.unit_id,
    counter: chip.counter,
    scan_count: chip.scan_count,
    skipped_count: chip.skipped_count,
    refused_count: chip.refused_count,
    tamper: chip.tamper,
    created_at: chip.created_at.toISOString(),
    paired_at: chip.paired_at?.toISOString() ?? null,
    retired_at: chip.retired_at?.toISOString() ?? null,
  }
}
