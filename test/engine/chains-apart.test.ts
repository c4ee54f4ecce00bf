import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { claims, lanes } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { World } from "../../src/engine/world.ts"
import { retryById } from "../../src/operator/verbs/retry.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { readCursor } from "../../workers/watches/chain-cursor.ts"
import { type Anvil, accountAt, type Stage } from "../faults/stage.ts"
import { awakeUntilSettled } from "../harness/awake.ts"
import { activeCollection, anotherUnit, type RunningWorkers, until } from "../harness/engine.ts"
import { first, openTwoChains, second, type TwoChains } from "../harness/two-chains.ts"

setDefaultTimeout(60_000)
const recipient = accountAt(7).address

let both: TwoChains
let stage: Stage
let anvil: Anvil
let world: World
let running: RunningWorkers

beforeAll(async () => {
  both = await openTwoChains()
  ;({ stage, anvil, world, running } = both)
})
afterAll(() => both.close())

test("a chain that stops responding delays no other chain, and continues once it responds", async () => {
  const [here, there] = [
    await activeCollection(running, first.id),
    await activeCollection(running, second.id),
  ]
  const [unit_id, unitThere] = [await anotherUnit(running, here.id), await anotherUnit(running, there.id)]
  const claiming = await prepared(unitThere)
  anvil.signal("SIGSTOP")
  const waiting = await claiming()
  const onTheirWay = Promise.all([activeCollection(running, second.id), anotherUnit(running, there.id)])
  onTheirWay.catch(() => {})

  await (await prepared(unit_id))()
  await until(async () => (await claimOf(unit_id))?.status === "claimed")
  await anotherUnit(running, (await activeCollection(running, first.id)).id)
  expect(await claimOf(unitThere)).toMatchObject({ id: waiting, status: "claiming" })

  anvil.signal("SIGCONT")
  await onTheirWay
  await until(async () => (await claimOf(unitThere))?.status === "claimed")
  expect(await ownerOn(anvil, there.address)).toBe(recipient)
  expect(await ownerOn(stage.anvil, here.address)).toBe(recipient)
  expect(await stage.anvil.client.getCode({ address: there.address as Address })).toBeUndefined()
})

test("a silent chain with more requests than may be in flight at once delays no other chain", async () => {
  const unit_id = await anotherUnit(running, (await activeCollection(running, first.id)).id)
  anvil.signal("SIGSTOP")
  const silent = world.chains.get(second.id)
  /** Asks again whenever there is no response in time. */
  const ask = async (): Promise<unknown> => {
    const answer = await silent?.rpc.request({ method: "eth_gasPrice" }).catch(() => null)
    if (answer) return answer
    await Bun.sleep(100)
    return await ask()
  }
  const asked = Promise.all(Array.from({ length: 300 }, ask))
  const claimed = async () => {
    await (await prepared(unit_id))()
    await until(async () => (await claimOf(unit_id))?.status === "claimed")
  }
  const claiming = claimed()
  // Whoever waits for a question to give up waits for ten seconds.
  expect(await awakeUntilSettled(claiming)).toBeLessThan(9_000)
  await claiming
  anvil.signal("SIGCONT")
  expect((await asked).length).toBe(300)
})

test("a URL that serves another chain for a while halts no lane, and waiting work continues once it is right", async () => {
  const here = await activeCollection(running, first.id)
  await anotherUnit(running, here.id)
  const there = await activeCollection(running, second.id)
  const lanesThere = async () =>
    (await running.context.db.read.select().from(lanes)).filter(({ chain_id }) => chain_id === second.id)
  await until(async () => (await lanesThere()).some(({ final_block_number }) => final_block_number !== null))
  both.lead(stage.anvil.url)
  const onItsWay = anotherUnit(running, there.id)
  onItsWay.catch(() => {})
  await Bun.sleep(2_000)
  expect((await lanesThere()).map(({ status }) => status)).toEqual(["open", "open"])
  const read = await readCursor(running.context.db.read, second.id)
  const block = await anvil.client.getBlock({ blockNumber: BigInt(read?.block_number ?? 0) })
  expect(block.hash).toBe(read?.block_hash as Hex)

  both.lead(anvil.url)
  await onItsWay
})

test("nonces are not read again from another chain that a URL serves for a while", async () => {
  const there = await activeCollection(running, second.id)
  const { lane_id } = there
  const laneNow = async () => {
    const [row] = await running.context.db.read.select().from(lanes).where(eq(lanes.id, lane_id))
    return row
  }
  const before = (await laneNow())?.next_nonce
  both.lead(stage.anvil.url)
  await running.turn(({ tx }) => tx.update(lanes).set({ status: "halted" }).where(eq(lanes.id, lane_id)))
  await running.turn((turn) => retryById(turn, lane_id))
  await Bun.sleep(1_000)
  expect(await laneNow()).toMatchObject({ next_nonce: null })
  both.lead(anvil.url)
  await until(async () => (await laneNow())?.next_nonce === before)
})

/** A claim that the service relays, once it is made. */
async function prepared(unit_id: string): Promise<() => Promise<string>> {
  const { context, caller, turn } = running
  const body = { recipient }
  const ready = await prepareClaim(context, caller, unit_id, body)
  return async () => (await turn((t) => createClaim(t, caller, { unit_id, body, prepared: ready }))).id
}

async function claimOf(unitId: string) {
  const [row] = await running.context.db.read.select().from(claims).where(eq(claims.unit_id, unitId))
  return row
}

async function ownerOn({ client }: Anvil, address: string): Promise<Address> {
  const token = { address: address as Address, abi: collectionAbi, args: [1n] } as const
  return await client.readContract({ ...token, functionName: "ownerOf" })
}
