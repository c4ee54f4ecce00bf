import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { eq, inArray } from "drizzle-orm"
import { type Address, getAddress } from "viem"
import { claims, collections, effects, transactions, units } from "../../src/db/schema.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { callsIn } from "../../src/engine/chain/desk.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { accountAt } from "../faults/stage.ts"
import { openEngine, type RunningWorkers, until } from "../harness/engine.ts"

setDefaultTimeout(60_000)
const names = ["Autumn", "Winter", "Spring"]
const buyer = accountAt(7).address

let running: RunningWorkers
let desk: Address
beforeAll(async () => {
  running = await openEngine()
  desk = running.context.config.chains[0]?.desk_address as Address
})
afterAll(() => running.close())

test("work for several collections is sent together through the desk, and each gets its own result", async () => {
  const ids = await newCollections()
  const first = await pairOneOfEach(ids)
  expect(await sentFor(first)).toEqual([desk])
  expect((await rowsOf(first)).map(({ serial }) => serial)).toEqual([1, 1, 1])

  await claimAll(first)
  const [relayed] = await sentForClaims(first)
  expect(relayed?.to).toBe(desk)
  expect(callsIn({ to: desk, data: relayed?.call ?? "" })).toHaveLength(names.length)
  for (const owner of await Promise.all((await rowsOf(first)).map(ownerOf))) expect(owner).toBe(buyer)
})

test("work for one collection, and work that the desk may not do, is sent to the collections directly", async () => {
  const [id, ...others] = await newCollections()
  const alone = await pairOneOfEach([id as string])
  expect(await sentFor(alone)).toEqual([await addressOf(id as string)])

  await setDeskRoles(0n)
  const units = await pairOneOfEach(others)
  const addresses = await Promise.all(others.map(addressOf))
  expect((await sentFor(units)).toSorted()).toEqual(addresses.toSorted())
  await setDeskRoles(7n)
})

async function newCollections(): Promise<string[]> {
  const { context, caller, turn } = running
  const made = await turn(async (t) => {
    const rows = []
    for (const name of names) rows.push(await createCollection(t, context.chains, caller, { name }))
    return rows.map(({ id }) => id)
  })
  await until(async () => {
    const rows = await context.db.read.select().from(collections).where(inArray(collections.id, made))
    return rows.every(({ status }) => status === "active")
  })
  return made
}

/** Pairs a unit of each collection at once; resolves when all are on the chain. */
async function pairOneOfEach(collectionIds: string[]): Promise<string[]> {
  const { context, caller, turn } = running
  const ids = await turn(async (t) => {
    const made: string[] = []
    for (const collection_id of collectionIds) {
      const { id: unit_id } = await createUnit(t, caller, { collection_id })
      await pairChip(t, context.config.service_secret, caller, { unit_id, is_test: true })
      made.push(unit_id)
    }
    return made
  })
  await until(async () => (await rowsOf(ids)).every(({ token_status }) => token_status === "active"))
  return ids
}

async function rowsOf(unitIds: string[]) {
  return await running.context.db.read.select().from(units).where(inArray(units.id, unitIds))
}

/** Returns the recipients of the transactions that issued these units. */
async function sentFor(unitIds: string[]): Promise<string[]> {
  const { read } = running.context.db
  const rows = await read
    .selectDistinct({ id: transactions.id, to: transactions.to })
    .from(transactions)
    .innerJoin(effects, eq(effects.transaction_id, transactions.id))
    .where(inArray(effects.actor_id, unitIds))
  return rows.map(({ to }) => to)
}

async function claimAll(unitIds: string[]): Promise<void> {
  const { context, caller, turn } = running
  const body = { recipient: buyer } as const
  const prepared = await Promise.all(unitIds.map((id) => prepareClaim(context, caller, id, body)))
  await turn(async (t) => {
    for (const [index, unit_id] of unitIds.entries())
      await createClaim(t, caller, { unit_id, body, prepared: prepared[index] as never })
  })
  await until(async () => {
    const rows = await context.db.read.select().from(claims).where(inArray(claims.unit_id, unitIds))
    return rows.length === unitIds.length && rows.every(({ status }) => status === "claimed")
  })
}

async function sentForClaims(unitIds: string[]) {
  return await running.context.db.read
    .selectDistinct({ id: transactions.id, to: transactions.to, call: transactions.call })
    .from(transactions)
    .innerJoin(effects, eq(effects.transaction_id, transactions.id))
    .innerJoin(claims, eq(claims.id, effects.actor_id))
    .where(inArray(claims.unit_id, unitIds))
}

async function addressOf(collectionId: string): Promise<Address> {
  const { read } = running.context.db
  const [row] = await read.select().from(collections).where(eq(collections.id, collectionId))
  return getAddress(row?.address ?? "")
}

async function ownerOf({ collection_id, serial }: Awaited<ReturnType<typeof rowsOf>>[number]) {
  const token = {
    address: await addressOf(String(collection_id)),
    abi: collectionAbi,
    args: [BigInt(serial ?? 0)],
  }
  return await running.stage.anvil.client.readContract({ ...token, functionName: "ownerOf" } as never)
}

async function setDeskRoles(roles: bigint): Promise<void> {
  const address = running.context.config.chains[0]?.factory_address as Address
  const { client } = running.stage.anvil
  const hash = await client.writeContract({
    ...{ account: accountAt(0), chain: null, address, abi: factoryAbi },
    ...{ functionName: "setRoles", args: [desk, roles] },
  })
  await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
}
