import { replace } from "./people.ts"
import type { Met } from "./somebody.ts"

/** A brand repeatedly replaces the chip of a unit that has its own story. */
export async function replaceOften({ person: first, isOwned }: Met): Promise<void> {
  if (isOwned) return
  let person = first
  for (let time = 0; time < times; time++) {
    const chip_id = await replace(person)
    if (chip_id === null) return
    person = { ...person, chip_id }
  }
}

const times = 3

/** So that there are enough chips for all. */
export const mostReplaced = 6
