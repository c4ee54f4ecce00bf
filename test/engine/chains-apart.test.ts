import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import type { Address } from "viem"
import { type Chain, foundry } from "viem/chains"
import { claims } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { type Anvil, accountAt, deployContracts, openStage, type Stage, startAnvil } from "../faults/stage.ts"
import { activeCollection, anotherUnit, type RunningWorkers, runWorkers, until } from "../harness/engine.ts"

// Two chains with the same keys, on which the factory and the desk have the same addresses.

setDefaultTimeout(60_000)
const second: Chain = { ...foundry, id: 31_338 }
const recipient = accountAt(7).address

let stage: Stage
let anvil: Anvil
let world: World
let running: RunningWorkers
let blocks: Timer

beforeAll(async () => {
  stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  anvil = await startAnvil(second)
  await deployContracts(anvil, 2)
  const path = join(stage.folder, "both.json")
  const known = JSON.parse(readFileSync(stage.environment.CHAINS ?? "", "utf8"))
  const other = { ...known[foundry.id], rpc_urls: [anvil.url] }
  writeFileSync(path, JSON.stringify({ ...known, [second.id]: other }))
  world = await openWorld(loadConfig({ ...stage.environment, LOG_LEVEL: "silent", CHAINS: path }), tell)
  running = await runWorkers(stage, world)
  blocks = setInterval(() => void anvil.client.mine({ blocks: 1 }).catch(() => {}), 100)
})
afterAll(async () => {
  clearInterval(blocks)
  await running.close()
  await world.close()
  await anvil.stop()
})

test("a chain that falls silent holds up nothing on another one, and goes on once it answers", async () => {
  const [here, there] = [
    await activeCollection(running, foundry.id),
    await activeCollection(running, second.id),
  ]
  const [unit_id, unitThere] = [await anotherUnit(running, here.id), await anotherUnit(running, there.id)]
  const waiting = await claim(unitThere)
  anvil.signal("SIGSTOP")
  const onTheirWay = Promise.all([activeCollection(running, second.id), anotherUnit(running, there.id)])
  onTheirWay.catch(() => {})

  await claim(unit_id)
  await until(async () => (await claimOf(unit_id))?.status === "claimed")
  await anotherUnit(running, (await activeCollection(running, foundry.id)).id)
  expect(await claimOf(unitThere)).toMatchObject({ id: waiting, status: "claiming" })

  anvil.signal("SIGCONT")
  await onTheirWay
  await until(async () => (await claimOf(unitThere))?.status === "claimed")
  expect(await ownerOn(anvil, there.address)).toBe(recipient)
  expect(await ownerOn(stage.anvil, here.address)).toBe(recipient)
  expect(await stage.anvil.client.getCode({ address: there.address as Address })).toBeUndefined()
})

test("a silent chain that is asked more than can be on its way at once keeps nobody from another one", async () => {
  const unit_id = await anotherUnit(running, (await activeCollection(running, foundry.id)).id)
  anvil.signal("SIGSTOP")
  const silent = world.chains.get(second.id)
  const questions = Array.from({ length: 300 }, () => silent?.rpc.request({ method: "eth_gasPrice" }))
  const asked = Promise.all(questions)
  asked.catch(() => {})
  await claim(unit_id)
  await until(async () => (await claimOf(unit_id))?.status === "claimed")
  anvil.signal("SIGCONT")
  expect((await asked).length).toBe(300)
})

/** Through the relay. */
async function claim(unit_id: string): Promise<string> {
  const { context, caller, turn } = running
  const body = { recipient }
  const prepared = await prepareClaim(context, caller, unit_id, body)
  return (await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))).id
}

async function claimOf(unitId: string) {
  const [row] = await running.context.db.read.select().from(claims).where(eq(claims.unit_id, unitId))
  return row
}

async function ownerOn({ client }: Anvil, address: string): Promise<Address> {
  const token = { address: address as Address, abi: collectionAbi, args: [1n] } as const
  return await client.readContract({ ...token, functionName: "ownerOf" })
}
