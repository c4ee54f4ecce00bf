import type { Asking, Stage } from "./asking.ts"
import { replace } from "./people.ts"
import { somebody } from "./somebody.ts"
import { streamOf } from "./streams.ts"

/** A brand replaces the chip of a unit that has its own story, again and again. */
export async function replaceOften(stage: Stage, salt: number, asking: Asking): Promise<void> {
  const met = await somebody(stage, streamOf(BigInt(salt), "replacements"), asking)
  if (!met || met.isOwned) return
  let { person } = met
  for (let time = 0; time < times; time++) {
    const chip_id = await replace(person)
    if (chip_id === null) return
    person = { ...person, chip_id }
  }
}

const times = 3

/** So that there are chips enough for all. */
export const mostReplaced = 6
