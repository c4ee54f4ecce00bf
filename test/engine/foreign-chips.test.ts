import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Address } from "viem"
import { chips, effects } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { createClaim, getClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { accountAt } from "../faults/stage.ts"
import { anotherUnit, issuedUnit, openEngine, type RunningWorkers, until } from "../harness/engine.ts"
import { sessionOf } from "../harness/ownership.ts"
import { asThief, foreignChip, thief } from "../harness/thief.ts"

// Whoever has a signer's key for a while can bind other chips to units; the next claim would lock them for ever.

setDefaultTimeout(60_000)
let running: RunningWorkers

beforeAll(async () => {
  running = await openEngine()
})
afterAll(() => running.close())

test("a unit that has a foreign chip on chain is not claimed before it has its own again, and holds up no other", async () => {
  const { unit_id, collection_id, address } = await issuedUnit(running)
  const other = await anotherUnit(running, collection_id)
  const own = Number.parseInt(await chipIdOf(unit_id), 16)
  await rebind(address, own, foreignChip)

  const [held, free] = await Promise.all([claim(unit_id), claim(other)])
  await until(async () => (await statusOf(other, free)) === "claimed")
  await until(async () => (await errorOf(held)) !== null)
  expect(await errorOf(held)).toStartWith("the unit has another chip on chain")
  expect(await statusOf(unit_id, held)).toBe("claiming")

  await rebind(address, foreignChip, own)
  await until(async () => (await statusOf(unit_id, held)) === "claimed")
  const read = { address, abi: collectionAbi, functionName: "chipOf", args: [1n] } as const
  expect(await running.stage.anvil.client.readContract(read)).toBe(own)
})

test("a claim of a unit with a foreign chip ends where somebody has claimed the unit", async () => {
  const { unit_id, address } = await issuedUnit(running)
  await rebind(address, Number.parseInt(await chipIdOf(unit_id), 16), foreignChip)
  const held = await claim(unit_id)
  await until(async () => (await errorOf(held)) !== null)
  await asThief(running.stage, address, [["claim", 1n, thief]])
  await until(async () => (await statusOf(unit_id, held)) === "failed")
  const { failure } = await getClaim(running.context.db.read, running.caller, unit_id, held)
  expect(failure).toMatchObject({ code: "claim.already_claimed" })
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

async function statusOf(unit_id: string, id: string): Promise<string> {
  return (await getClaim(running.context.db.read, running.caller, unit_id, id)).status
}

async function errorOf(claimId: string): Promise<string | null> {
  const { read } = running.context.db
  const [row] = await read.select().from(effects).where(eq(effects.actor_id, claimId))
  return row?.last_error ?? null
}

async function chipIdOf(unit_id: string): Promise<string> {
  const { read } = running.context.db
  const [row] = await read.select().from(chips).where(eq(chips.unit_id, unit_id))
  if (!row) throw new Error(`unit ${unit_id} has no chip`)
  return row.chip_id
}
