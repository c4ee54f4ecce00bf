import { eq } from "drizzle-orm"
import { chipReplacements, chips, collections, units } from "../../src/db/schema.ts"
import type { Judged } from "../faults/judge.ts"
import type { CollectionPlayed } from "./asking.ts"
import { lostForGood, readTokens } from "./judge-owners.ts"

/** Reports what contradicts the chain in a collection whose rows were restored from an older state. */
export async function findFaultsAfterRestoring(
  remains: Remains,
  played: CollectionPlayed,
): Promise<string[]> {
  const tokens = await readTokens(remains, played)
  const found = [...Map.groupBy(tokens.values(), ({ chip }) => chip)].flatMap(([chip, bound]) =>
    bound.length > 1 ? [`the chip ${chip} is bound to ${bound.length} serials`] : [],
  )
  const { read } = remains.world.context.db
  const [collection] = await read.select().from(collections).where(eq(collections.id, played.id))
  if (!collection) return found

  const allChips = await read.select().from(chips)
  const lost = await chipsLostForGood(remains)
  for (const unit of await read.select().from(units).where(eq(units.collection_id, played.id))) {
    const chip = allChips.find(({ unit_id }) => unit_id === unit.id)
    if (!chip) continue
    const token = tokens.get(unit.serial ?? 0)
    if (!token) {
      found.push(`the unit ${unit.id} has the serial ${unit.serial}, which the chain does not have`)
      continue
    }
    if (token.chip !== chip.chip_id && token.chip !== lost.get(chip.chip_id))
      found.push(`serial ${unit.serial} has the chip ${token.chip} on chain and ${chip.chip_id} here`)
  }
  return found
}

/** Units whose replacement an operator was told is permanently undone, with their previous chips. */
async function chipsLostForGood(remains: Remains): Promise<Map<string, string>> {
  const lost = lostForGood(remains)
  const rows = await remains.world.context.db.read.select().from(chipReplacements)
  return new Map(
    rows.filter(({ id }) => lost.has(id)).map(({ chip_id, previous_chip_id }) => [chip_id, previous_chip_id]),
  )
}

type Remains = Pick<Judged, "anvil" | "world"> & { log: readonly string[] }
