import { type Asking, type Stage, until } from "./asking.ts"
import { Forgotten, read } from "./errands.ts"
import { claim, type Person, transfer } from "./people.ts"
import { streamOf } from "./streams.ts"

/**
 * Somebody else wants a unit that has its own story, and claims it: through the service, or with a wallet that may take
 * its time. What is somebody's already is handed over to the newcomer instead.
 */
export async function comeBetween(
  stage: Stage,
  key: string,
  { salt, wallet }: { salt: number; wallet: number },
  asking: Asking,
): Promise<void> {
  const chance = streamOf(BigInt(salt), "rival")
  const pairedUnits = () =>
    asking.collections.flatMap((played) => played.paired.map(({ unit_id }) => ({ played, unit_id })))
  await until(stage, async () => pairedUnits().length > 0 || stage.isRestored())
  // What a restored back-up has forgotten is never paired.
  if (pairedUnits().length === 0) return
  const { played, unit_id } = chance.pick(pairedUnits())
  const hesitates_seconds = chance.happens(0.5) ? 0 : chance.between(0, mostSeconds)
  const execution = chance.happens(0.4) ? "service_relay" : "client_broadcast"

  const readUnit = () => read<Unit>(stage, key, `/v1/units/${unit_id}`)
  await until(stage, async () => (await readUnit()).collection?.token.status === "active")
  const { chip_id, ownership } = await readUnit()
  if (chip_id === null) throw new Forgotten(unit_id)
  const person: Person = { ...stage, chance, key, played, unit_id, chip_id, asking }
  if (ownership.owner) await transfer(person, wallet, hesitates_seconds)
  else await claim(person, { wallet, execution, hesitates_seconds })
}

/** How long wallets take at most, which is longer than most claims. */
const mostSeconds = 30

type Unit = {
  chip_id: string | null
  collection: { token: { status: string } } | null
  ownership: { owner: string | null }
}
