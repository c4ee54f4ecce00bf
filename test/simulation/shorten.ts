import type { Fault } from "./faults.ts"
import type { Ground } from "./ground.ts"
import { type Outcome, playHistory } from "./history.ts"

/**
 * The same history with the fewest faults that still make it fail, by leaving out ever smaller parts of the list
 * (delta debugging, Zeller and Hildebrandt 2002).
 */
export async function shorten(ground: Ground, outcome: Outcome): Promise<Outcome> {
  let shortest = outcome
  let parts = 2
  while (shortest.faults.length > 0) {
    const size = Math.max(1, Math.ceil(shortest.faults.length / parts))
    const shorter = await shorterOf(ground, shortest, size)
    if (shorter) {
      shortest = shorter
      parts = 2
    } else if (size === 1) break
    else parts *= 2
  }
  return shortest
}

/** The first history without one part of the list that still fails in the same way. */
async function shorterOf(ground: Ground, outcome: Outcome, size: number): Promise<Outcome | null> {
  const { seed, faults } = outcome
  const ways = waysOf(outcome)
  for (let start = 0; start < faults.length; start += size) {
    const left: Fault[] = faults.toSpliced(start, size)
    const tried = await playHistory(ground, { seed, faults: left })
    if (waysOf(tried).some((way) => ways.includes(way))) return tried
  }
  return null
}

/** The findings without the names of individual things. */
function waysOf({ found }: Outcome): string[] {
  return found.map((sentence) => sentence.replaceAll(/(0x)?[0-9a-f-]*\d[0-9a-f-]*/gi, "#").slice(0, 80))
}
