import { afterEach, describe, expect, test } from "bun:test"
import { eq, inArray } from "drizzle-orm"
import type { Address } from "viem"
import { claims, collections, effects, lanes, transactions, units } from "../../src/db/schema.ts"
import { openTransactionStatuses } from "../../src/db/statuses.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { signerRoles } from "../../src/engine/chain/deployment.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { jobs } from "../../workers/jobs/jobs.ts"
import { startWorkers } from "../../workers/start.ts"
import { accountAt, keyAt, type Stage, signers } from "../faults/stage.ts"
import { issuedUnit, openEngine, type RunningWorkers, until } from "../harness/engine.ts"

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const newSigners = [accountAt(5).address, accountAt(6).address]

describe("signer keys that are replaced under load", () => {
  test("leave nothing behind: every unit is issued once, and the old API processes keep working", async () => {
    const running = await openEngine()
    closers.push(running.close)
    const { stage, context, caller, turn } = running
    const { read } = context.db
    // None of this is waiting when the keys change.
    await turn((t) => createCollection(t, context.chains, caller, { name: "Winter" }))
    const { unit_id, collection_id, address } = await issuedUnit(running)
    const before = [
      unit_id,
      await pairedUnit(running, collection_id),
      await pairedUnit(running, collection_id),
    ]
    await until(async () => (await openTransactionsOf(running)).length > 0)
    await running.workers.stop()
    const without = [await pairedUnit(running, collection_id), await pairedUnit(running, collection_id)]
    // One transaction has a nonce and no signature, as after a key service that never responded.
    await expect(allocateOnly(running)).rejects.toThrow("the process dies")

    const rotated = await openRotated(stage)
    const workers = startWorkers(rotated)
    closers.push(() => workers.stop())
    const after = [await pairedUnit(running, collection_id)]
    const all = [...before, ...without, ...after]
    await until(async () => (await activeOf(running, all)).length === all.length)
    const serials = (await activeOf(running, all)).map(({ serial }) => Number(serial))
    expect(serials.toSorted((one, other) => one - other)).toEqual(all.map((_id, index) => index + 1))
    const issued = await stage.anvil.client.readContract({
      ...{ address, abi: collectionAbi, functionName: "ownerOf", args: [BigInt(all.length)] },
    })
    expect(issued).toBe(address)

    const body = { recipient: accountAt(7).address, execution: "service_relay" } as const
    const prepared = await prepareClaim(context, caller, unit_id, body)
    const claim = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
    await until(async () => {
      const [row] = await read.select().from(claims).where(eq(claims.id, claim.id))
      return row?.status === "claimed"
    })
    const left = await read
      .select()
      .from(effects)
      .where(inArray(effects.queue, (await oldLanes(running)).map(laneQueue)))
    expect(left.filter(({ status }) => status === "open")).toEqual([])
    const rows = await read.select().from(collections)
    const lane = `31337:${newSigners[1]}`
    expect(rows.map(({ lane_id }) => lane_id)).toEqual([lane, lane])
  }, 60_000)
})

/** A unit whose token is queued in its lane. */
async function pairedUnit({ context, caller, turn }: RunningWorkers, collection_id: string): Promise<string> {
  const { id: unit_id } = await turn((t) => createUnit(t, caller, { collection_id }))
  await turn((t) => pairChip(t, context.config.service_secret, caller, { unit_id, is_test: true }))
  return unit_id
}

async function activeOf({ context }: RunningWorkers, ids: string[]) {
  const rows = await context.db.read.select().from(units).where(inArray(units.id, ids))
  return rows.filter(({ token_status }) => token_status === "active")
}

async function openTransactionsOf({ context }: RunningWorkers) {
  return await context.db.read
    .select()
    .from(transactions)
    .where(inArray(transactions.status, openTransactionStatuses))
}

async function oldLanes({ context }: RunningWorkers): Promise<string[]> {
  const rows = await context.db.read.select().from(lanes).where(inArray(lanes.address, signers))
  return rows.map(({ id }) => id)
}

/** A round of the issuing lane that ends when a transaction has its nonce. */
async function allocateOnly({ stage: { world } }: RunningWorkers): Promise<void> {
  const chain = world.chains.get(31_337)
  const signer = chain?.signers[1]
  if (!chain || !signer) throw new Error("the chain is configured, with two signers")
  const checkpoint = (step: string) => {
    if (step === "allocate") throw new Error("the process dies")
  }
  const claimant = { owner: "dying", lease_milliseconds: 50 }
  const lane = { context: world.context, chain, signer, claimant, jobs, checkpoint, memory: {} }
  for (let round = 0; round < 50; round++) {
    await tickLane(lane)
    await Bun.sleep(60)
  }
}

/** The same service with other keys that have roles in the factory. */
async function openRotated({ environment, anvil }: Stage): Promise<World> {
  const SIGNER_KEYS = [keyAt(5), keyAt(6)].join(",")
  const world = await openWorld(loadConfig({ ...environment, SIGNER_KEYS, LOG_LEVEL: "silent" }), tell)
  closers.push(world.close)
  const address = world.context.config.chains[0]?.factory_address as Address
  for (const { account, roles } of signerRoles(newSigners))
    await anvil.client.writeContract({
      account: accountAt(0),
      ...{ chain: null, address, abi: factoryAbi },
      ...{ functionName: "setRoles", args: [account, roles] },
    })
  await anvil.client.mine({ blocks: 1 })
  return world
}
