import { type Asking, type CollectionPlayed, type Stage, until } from "./asking.ts"
import { untilActive } from "./collections.ts"
import { make, read, unlessForgotten } from "./errands.ts"
import type { Operator } from "./operator.ts"
import { chipFor } from "./people.ts"

/**
 * What a brand does after a restore: it creates lost units again, pairs each with the chip that it has, and requests
 * replacements again. In addition, every value that was ever accepted is sent once more.
 */
export async function takeStock(stage: Stage, asking: Asking): Promise<void> {
  const told = serialsTold(stage)
  await Promise.all([
    ...asking.collections.map((played) => unlessForgotten(takeStockOf(stage, played, told))),
    sendValuesAgain(stage),
  ])
}

/**
 * What the operator then finds: units whose chip on the chain is not the one that the brand was told. Returns whether
 * there are any.
 */
export async function askForChipsOnChain(stage: Stage, operator: Operator, asking: Asking): Promise<boolean> {
  let isAsked = false
  for (const played of asking.collections) {
    for (const { unit_id, chip_id_on_chain: chip_id } of await operator.compareChips(played.id)) {
      // A claim by the service itself that has locked in another chip is a fault, which must not be repaired before it
      // is judged.
      if (await isClaimedHere(stage, played, unit_id)) continue
      await askForChip(stage, played, { unit_id, chip_id })
      isAsked = true
    }
  }
  return isAsked
}

async function isClaimedHere(stage: Stage, { key }: CollectionPlayed, unitId: string): Promise<boolean> {
  const { claims } = await read<{ claims: Claim[] }>(stage, key, `/v1/units/${unitId}/claims`)
  return claims.some(({ status, execution }) => status === "claimed" && execution === "service_relay")
}

type Claim = { status: string; execution: string }

async function takeStockOf(stage: Stage, played: CollectionPlayed, told: SerialsTold): Promise<void> {
  await untilActive(stage, played)
  for (const pair of [...played.paired]) {
    const unitId = await unitFor(stage, played, pair.unit_id)
    const { chip_id } = await read<Unit>(stage, played.key, `/v1/units/${unitId}`)
    const wanted = { unit_id: unitId, chip_id: chipOn(played, pair) }
    if (chip_id === null) await pairAgain(stage, played.key, wanted)
    else if (chip_id !== wanted.chip_id) await replaceAgain(stage, played, { ...wanted, told })
  }
}

/** The unit, or another one in its place. */
async function unitFor(
  stage: Stage,
  { id: collection_id, key }: CollectionPlayed,
  unitId: string,
): Promise<string> {
  const { status } = await stage.clients.ask({ method: "GET", path: `/v1/units/${unitId}`, token: key })
  if (status !== 404) return unitId
  const asked = { token: key, path: "/v1/units", body: { collection_id } }
  return (await make<Unit>(stage, asked)).id
}

type Wanted = { unit_id: string; chip_id: string }

async function pairAgain(stage: Stage, token: string, { unit_id, chip_id }: Wanted): Promise<void> {
  // A client without a response may have paired it meanwhile.
  const asked = { token, path: "/v1/chips", body: { unit_id, ...chipFor(stage, chip_id) } }
  await stage.clients.ask({ method: "POST", ...asked })
}

/**
 * The replacement is lost or in flight, or the unit already has an owner. A unit that was issued again has a different
 * serial, while the earlier one goes to the unit that the new chip is paired to.
 */
async function replaceAgain(
  stage: Stage,
  played: CollectionPlayed,
  { unit_id, chip_id, told }: Wanted & { told: SerialsTold },
): Promise<void> {
  const serialOf = async () => serialIn(await read<Unit>(stage, played.key, `/v1/units/${unit_id}`))
  await until(stage, async () => (await serialOf()) !== null)
  if ((await serialOf()) !== told.get(unit_id)) {
    const body = { collection_id: played.id }
    const { id } = await make<Unit>(stage, { token: played.key, path: "/v1/units", body })
    return await pairAgain(stage, played.key, { unit_id: id, chip_id })
  }
  await askForChip(stage, played, { unit_id, chip_id })
}

async function askForChip(
  stage: Stage,
  played: CollectionPlayed,
  { unit_id, chip_id }: Wanted,
): Promise<void> {
  const path = `/v1/units/${unit_id}/chip-replacements`
  const asked = { method: "POST", path, token: played.key, body: chipFor(stage, chip_id) } as const
  const { status, body } = await stage.clients.ask(asked)
  if (status !== 201) return
  const { id, previous_chip_id } = body as { id: string; previous_chip_id: string }
  played.replacements.push({ id, unit_id, previous_chip_id, chip_id })
}

/** The serial that was reported for each unit. */
type SerialsTold = ReadonlyMap<string, number>

function serialsTold({ clients }: Stage): SerialsTold {
  const told = new Map<string, number>()
  for (const { path, method, status, body } of clients.exchanges) {
    if (!path.startsWith("/v1/units/") || method !== "GET" || status !== 200) continue
    const { id, collection } = body as Unit
    const serial = collection?.token?.serial ?? null
    if (serial !== null) told.set(id, serial)
  }
  return told
}

type Unit = { id: string; chip_id: string | null; collection: { token: { serial: number | null } } | null }

function serialIn({ collection }: Unit): number | null {
  return collection?.token.serial ?? null
}

/** The chip on a product: that of its last replacement, if there was any. */
function chipOn({ replacements }: CollectionPlayed, { unit_id, chip_id }: Wanted) {
  return replacements.findLast((each) => each.unit_id === unit_id)?.chip_id ?? chip_id
}

/** Each is rejected, unless it was lost, in which case it is accepted once. */
async function sendValuesAgain({ clients }: Stage): Promise<void> {
  const taken = clients.exchanges.filter(
    ({ method, path, status }) => method === "POST" && path === "/v1/taps" && status === 201,
  )
  for (const { token, asked } of taken)
    for (let time = 0; time < 2; time++)
      await clients.ask({ method: "POST", path: "/v1/taps", token, body: asked })
}
