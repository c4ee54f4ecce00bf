import { type Asking, type Collection, type CollectionPlayed, type Stage, until } from "./asking.ts"
import { Forgotten, make, read } from "./errands.ts"
import { chipFor } from "./people.ts"

/** Creates a brand's collection, which is judged from now on. */
export async function newCollection(
  stage: Stage,
  key: string,
  name: string,
  asking: Asking,
): Promise<CollectionPlayed> {
  const { id, contract } = await make<Collection>(stage, {
    token: key,
    path: "/v1/collections",
    body: { name },
  })
  const nothing = { paired: [], claims: [], transfers: [], replacements: [], moves: [] }
  const played = { id, key, address: contract.address, ...nothing }
  asking.collections.push(played)
  return played
}

/** Waits until its contract is deployed. */
export async function untilActive(stage: Stage, { id, key }: CollectionPlayed): Promise<void> {
  await until(stage, async () => {
    const { contract } = await read<Collection>(stage, key, `/v1/collections/${id}`)
    return contract.status === "active"
  })
}

export async function newUnit(
  stage: Stage,
  { id, key }: CollectionPlayed,
  externalId: string,
): Promise<string> {
  const body = { collection_id: id, external_id: externalId }
  return (await make<{ id: string }>(stage, { token: key, path: "/v1/units", body })).id
}

/** Pairs each unit with a chip, in one request. */
export async function pairChips(
  stage: Stage,
  { key: token }: CollectionPlayed,
  unitIds: string[],
): Promise<CollectionPlayed["paired"]> {
  const [first] = unitIds
  if (unitIds.length === 1) {
    const body = { unit_id: first, ...chipFor(stage) }
    const { chip_id } = await make<Chip>(stage, { token, path: "/v1/chips", body })
    return [{ unit_id: String(first), chip_id }]
  }
  const body = { chips: unitIds.map((unit_id) => ({ unit_id, ...chipFor(stage) })) }
  const { chips } = await make<{ chips: Chip[] }>(stage, { token, path: "/v1/chips/bulk", body })
  return chips.map(({ chip_id, unit }) => ({ chip_id, unit_id: unit.id }))
}

/** Waits until a unit has its token. Throws `Forgotten` if a back-up was restored that lacks its pairing. */
export async function untilIssued(stage: Stage, { key }: CollectionPlayed, unitId: string): Promise<void> {
  await until(stage, async () => {
    const { chip_id, collection } = await read<Unit>(stage, key, `/v1/units/${unitId}`)
    if (stage.isRestored() && chip_id === null) throw new Forgotten(unitId)
    return collection?.token.status === "active"
  })
}

type Unit = { chip_id: string | null; collection: { token: { status: string } } | null }
type Chip = { chip_id: string; unit: { id: string } }
