import type { Asking, Stage } from "./asking.ts"
import { newCollection, newUnit, pairChips, untilActive, untilIssued } from "./collections.ts"
import { claim } from "./people.ts"
import { streamOf } from "./streams.ts"

/** Another brand issues many units at once in addition to the story, and many people claim them at once. */
export async function crowdIn(stage: Stage, key: string, salt: number, asking: Asking): Promise<void> {
  const chance = streamOf(BigInt(salt), "neighbours")
  const brand = { ...stage, chance, chest: null }
  const played = await newCollection(brand, key, "Crowd", asking)
  const count = leastUnits + chance.below(mostUnits - leastUnits + 1)
  const names = Array.from({ length: count }, (_unit, index) => `Crowd ${salt} ${index}`)
  const unitIds = await Promise.all(names.map((name) => newUnit(brand, played, name)))
  await untilActive(brand, played)
  played.paired.push(...(await pairChips(brand, played, unitIds)))
  const claimed = played.paired.slice(0, 1 + chance.below(mostClaims))
  await Promise.all(
    claimed.map(async (pair, wallet) => {
      await untilIssued(brand, played, pair.unit_id)
      await claim({ ...brand, ...pair, played, asking }, { wallet, execution: "service_relay" })
    }),
  )
}

const leastUnits = 10
const mostUnits = 40
const mostClaims = 12
/** The most bursts in one history, because they take long to run. */
export const mostBursts = 2
