import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import type { Address } from "viem"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { createClaim, getClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { accountAt } from "../faults/stage.ts"
import { anotherUnit, issuedUnit, openEngine, type RunningWorkers, until } from "../harness/engine.ts"
import { sessionOf } from "../harness/ownership.ts"
import { asThief, foreignChip } from "../harness/thief.ts"
import { chipRowOf } from "../harness/unit-rows.ts"

// A thief of a signer's key can bind foreign chips to units; the next claim would lock them in forever.

setDefaultTimeout(60_000)
let running: RunningWorkers

beforeAll(async () => {
  running = await openEngine()
})
afterAll(() => running.close())

test("a claim of a unit with a foreign chip on the chain fails without affecting others, and succeeds once the unit has its own chip again", async () => {
  const { unit_id, collection_id, address } = await issuedUnit(running)
  const other = await anotherUnit(running, collection_id)
  const own = Number.parseInt(await chipIdOf(unit_id), 16)
  await rebind(address, own, foreignChip)

  const [bad, good] = await Promise.all([claim(unit_id), claim(other)])
  await until(async () => (await claimNow(other, good)).status === "claimed")
  await until(async () => (await claimNow(unit_id, bad)).status === "failed")
  expect((await claimNow(unit_id, bad)).failure?.code).toBe("claim.superseded")

  await rebind(address, foreignChip, own)
  const next = await claim(unit_id)
  await until(async () => (await claimNow(unit_id, next)).status === "claimed")
  const read = { address, abi: collectionAbi, functionName: "chipOf", args: [1n] } as const
  expect(await running.stage.anvil.client.readContract(read)).toBe(own)
})

test("a wallet gets no authorization for a unit with a foreign chip on the chain", async () => {
  const { unit_id, address } = await issuedUnit(running)
  const chip_id = await chipIdOf(unit_id)
  await rebind(address, Number.parseInt(chip_id, 16), foreignChip)
  const body = { recipient: accountAt(7).address, execution: "client_broadcast" } as const
  const prepared = prepareClaim(running.context, sessionOf(running.caller, chip_id, unit_id), unit_id, body)
  await expect(prepared).rejects.toMatchObject({ code: "claim.owner_unknown" })
})

async function rebind(address: Address, from: number, to: number): Promise<void> {
  await asThief(running.stage, address, [["replaceChip", 1n, from, to]])
}

async function claim(unit_id: string): Promise<string> {
  const { context, turn } = running
  const caller = sessionOf(running.caller, await chipIdOf(unit_id), unit_id)
  const body = { recipient: accountAt(7).address, execution: "service_relay" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  return (await turn((each) => createClaim(each, caller, { unit_id, body, prepared }))).id
}

async function claimNow(unit_id: string, id: string) {
  return await getClaim(running.context.db.read, running.caller, unit_id, id)
}

async function chipIdOf(unit_id: string): Promise<string> {
  return (await chipRowOf(running.context.db.read, unit_id)).chip_id
}
