import { afterEach, describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { type Address, encodeFunctionData, type Hex } from "viem"
import { events } from "../../src/db/event-schema.ts"
import { units } from "../../src/db/schema.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { presentUnit } from "../../src/resources/units/present.ts"
import { getUnit } from "../../src/resources/units/service.ts"
import { accountAt, type Stage } from "../faults/stage.ts"
import {
  issuedUnit,
  loseTransaction,
  openEngine,
  type RunningWorkers,
  sendAsAdmin,
  until,
} from "../harness/engine.ts"

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const holder = accountAt(7)
const friend = accountAt(8).address

describe("a unit's owner is the chain's at the confirmation depth", () => {
  test("after a claim outside the service and after holders' own transfers, each reported once", async () => {
    const running = await open()
    const { stage } = running
    const { unit_id, address } = await issuedUnit(running)
    expect((await ownershipOf(running, unit_id)).status).toBe("custody")
    await claimBesideTheService(stage, address)
    await until(async () => (await ownershipOf(running, unit_id)).owner === holder.address)
    const [unit] = await rowsOf(running, unit_id)
    expect(unit?.claimed).toBe(true)

    await release(stage, address)
    await send(stage, address, transferCall(friend))
    await until(async () => (await ownershipOf(running, unit_id)).owner === friend)
    expect(await toldOwners(running, unit_id)).toEqual([holder.address, friend])
  }, 60_000)

  test("also after a reorganization deeper than that undoes a transfer", async () => {
    const running = await open(40)
    const { stage } = running
    const { unit_id, address } = await issuedUnit(running)
    await claimBesideTheService(stage, address)
    await release(stage, address)
    const hash = await send(stage, address, transferCall(friend))
    await until(async () => (await ownershipOf(running, unit_id)).owner === friend)
    await loseTransaction(running, hash)
    await until(async () => (await ownershipOf(running, unit_id)).owner === holder.address)
    await send(stage, address, transferCall(friend))
    await until(async () => (await ownershipOf(running, unit_id)).owner === friend)
    expect(await toldOwners(running, unit_id)).toEqual([holder.address, friend, holder.address, friend])
  }, 60_000)

  test("also after one undoes a claim that the service does not know: the unit can be claimed again", async () => {
    const running = await open(40)
    const { stage } = running
    const { unit_id, address } = await issuedUnit(running)
    for (let time = 0; time < 2; time++) {
      const hash = await claimBesideTheService(stage, address)
      await until(async () => (await rowsOf(running, unit_id))[0]?.claimed === true)
      await loseTransaction(running, hash)
      await until(async () => (await rowsOf(running, unit_id))[0]?.claimed === false)
      expect((await ownershipOf(running, unit_id)).status).toBe("custody")
    }
  }, 60_000)
})

async function open(finality_depth = 6): Promise<RunningWorkers> {
  const running = await openEngine({}, { finality_depth })
  closers.push(running.close)
  return running
}

async function ownershipOf({ context, caller }: RunningWorkers, unitId: string) {
  return presentUnit(await getUnit(context.db.read, caller, unitId)).ownership
}

function rowsOf({ context }: RunningWorkers, unitId: string) {
  return context.db.read.select().from(units).where(eq(units.id, unitId))
}

/** The owners that the feed has reported, in order. */
async function toldOwners({ context }: RunningWorkers, unitId: string): Promise<unknown[]> {
  const rows = await context.db.read
    .select()
    .from(events)
    .where(eq(events.unit_id, unitId))
    .orderBy(asc(events.id))
  return rows
    .filter(({ type }) => type === "ownership.changed")
    .map(({ data }) => (data.ownership as { owner: string | null }).owner)
}

async function claimBesideTheService({ world, anvil }: Stage, contract: Address): Promise<Hex> {
  const deadline_at = new Date("2100-01-01T00:00:00.000Z")
  const claim = { contract, serial: 1, recipient: holder.address, deadline_at, authorization_nonce: 0 }
  const signed = await world.chains.get(31_337)?.authorizeClaim(claim)
  return await send({ anvil }, contract, signed?.transaction.data as Hex)
}

function transferCall(to: Address): Hex {
  return encodeFunctionData({
    abi: collectionAbi,
    functionName: "transferFrom",
    args: [holder.address, to, 1n],
  })
}

/** Ends the custody of the service: its admin announced it, and a week has passed. */
async function release(stage: Stage, contract: Address): Promise<void> {
  const { client } = stage.anvil
  await sendAsAdmin(stage, encodeFunctionData({ abi: factoryAbi, functionName: "announceRelease" }))
  await client.increaseTime({ seconds: 8 * 24 * 60 * 60 })
  await until(
    async () =>
      !(await client.readContract({
        address: contract,
        abi: collectionAbi,
        functionName: "locked",
        args: [1n],
      })),
  )
}

async function send({ anvil: { client } }: Pick<Stage, "anvil">, to: Address, data: Hex): Promise<Hex> {
  const hash = await client.sendTransaction({ account: holder, to, data, gas: 300_000n })
  await until(
    async () => (await client.getTransactionReceipt({ hash }).catch(() => null))?.status === "success",
  )
  return hash
}
