import { randomBytes } from "node:crypto"
import { type Given, query } from "../../db/query.ts"
import { type ChipRow, chips } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { wrapChipKeys } from "../../engine/sun/chip-keys.ts"
import { createVirtualChip } from "../../engine/sun/virtual-chip.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Secret } from "../../platform/sealing.ts"
import { upperHex } from "../../platform/upper-hex.ts"

/** A chip's use: paired to a unit, or reserved for a chip replacement. */
export type ChipPlace = { unit_id: string; reserved_for: null } | { unit_id: null; reserved_for: string }

const drawsAtMost = 8

/** Creates a virtual chip with its own id, UID and keys. */
export async function createTestChip(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  place: ChipPlace,
): Promise<ChipRow> {
  for (let draw = 1; draw <= drawsAtMost; draw++) {
    const chip_id = upperHex(randomBytes(5))
    const tag = createVirtualChip()
    const [chip] = await insertChip(turn.tx, {
      chip_id,
      organization_id: caller.organization_id,
      is_test: true,
      uid: upperHex(tag.uid),
      wrapped_keys: wrapChipKeys(secret, chip_id, tag),
      key_version: 1,
      counter: 0,
      emitted_counter: 0,
      scan_count: 0,
      ...place,
      paired_at: place.unit_id ? turn.at : null,
      retired_at: null,
      created_at: turn.at,
    })
    if (chip) return chip
  }
  throw new Error(`no free chip id in ${drawsAtMost} draws: the source of random numbers repeats itself`)
}

const insertChip = query((db, row: Given<typeof chips.$inferInsert>) =>
  db.insert(chips).values(row).onConflictDoNothing({ target: chips.chip_id }).returning(),
)
