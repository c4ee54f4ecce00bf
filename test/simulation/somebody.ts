import { type Asking, type Stage, until } from "./asking.ts"
import { untilIssued } from "./collections.ts"
import { Forgotten, read } from "./errands.ts"
import type { Person } from "./people.ts"
import type { Stream } from "./streams.ts"

/** A person with a unit in hand, and whether the unit has an owner. */
export type Met = { person: Person; isOwned: boolean }

/** A random person with a unit of the story, once its token is active; null if there is none. */
export async function somebody(stage: Stage, chance: Stream, asking: Asking): Promise<Met | null> {
  const pairedUnits = () =>
    asking.collections.flatMap((played) => played.paired.map(({ unit_id }) => ({ played, unit_id })))
  await until(stage, async () => pairedUnits().length > 0 || stage.isRestored())
  // What was lost in a restore is never paired.
  if (pairedUnits().length === 0) return null
  const { played, unit_id } = chance.pick(pairedUnits())

  await untilIssued(stage, played, unit_id)
  const { chip_id, ownership } = await read<Unit>(stage, played.key, `/v1/units/${unit_id}`)
  if (chip_id === null) throw new Forgotten(unit_id)
  const person = { ...stage, chance, played, unit_id, chip_id, asking }
  return { person, isOwned: ownership.owner !== null }
}

type Unit = { chip_id: string | null; ownership: { owner: string | null } }
