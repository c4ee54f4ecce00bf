import { chips } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { wrapChipKeys } from "../../src/engine/sun/chip-keys.ts"
import type { SunChip } from "../../src/engine/sun/message.ts"
import { createVirtualChip, emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Secret } from "../../src/platform/sealing.ts"
import type { Stream } from "./streams.ts"

/** Encoded chips in people's hands, which keep counting whatever the service loses. */
export type Chest = {
  chips: { chip_id: string; tag: SunChip; reads: number }[]
  /** One that was not taken yet. */
  take(): string
  /** What a chip emits at its next read. */
  emit(chipId: string): string
}

/** More than a history pairs. */
const size = 48

export function createChest(chance: Stream): Chest {
  const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => chance.below(256)))
  const made = Array.from({ length: size }, () => {
    return { chip_id: bytes(5).toString("hex").toUpperCase(), tag: createVirtualChip(bytes), reads: 0 }
  })
  let taken = 0
  return {
    chips: made,
    take() {
      const chip = made[taken++]
      if (!chip) throw new Error("the chest is empty")
      return chip.chip_id
    },
    emit(chipId) {
      const chip = made.find(({ chip_id }) => chip_id === chipId)
      if (!chip) throw new Error(`no chip ${chipId} is in the chest`)
      chip.reads += 1
      return emitSun(chip.tag, chip.reads, bytes(5)).e
    },
  }
}

/** Stores the chips as an encoder has left them. */
export async function storeChips(
  { tx, at }: Turn,
  secret: Secret,
  organization_id: string,
  chest: Chest,
): Promise<void> {
  const encoded = { organization_id, is_test: false, key_version: 1, created_at: at }
  await tx.insert(chips).values(
    chest.chips.map(({ chip_id, tag }) => ({
      ...encoded,
      ...{ chip_id, uid: Buffer.from(tag.uid).toString("hex") },
      wrapped_keys: wrapChipKeys(secret, chip_id, tag),
      ...{ counter: 0, emitted_counter: 0, scan_count: 0 },
    })),
  )
}
