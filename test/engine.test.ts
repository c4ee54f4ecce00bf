import { afterEach, describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import type { Caller } from "../src/caller.ts"
import { assertLease, LeaseLost, takeLease } from "../src/chain/lanes.ts"
import { createChipReplacement, getChipReplacement } from "../src/chip-replacements/service.ts"
import { pairChip } from "../src/chips/service.ts"
import { createCollection } from "../src/collections/service.ts"
import { inTurn } from "../src/context.ts"
import { chips, collections, effects, lanes, transactions, units } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { newId } from "../src/ids.ts"
import { createOrganization } from "../src/organizations/service.ts"
import { createUnit } from "../src/units/service.ts"
import { startWorkers, type Workers } from "../workers/start.ts"
import { accountAt, openStage, type Stage } from "./faults/stage.ts"

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe("a chip replacement", () => {
  test("of a unit that was claimed meanwhile fails with a code and frees the new chip", async () => {
    const { stage, turn, caller } = await openEngine()
    const { unit_id, address } = await issuedUnit(stage, turn, caller)
    await claimFromWallet(stage, address)
    const { world } = stage
    const secret = world.context.config.service_secret
    const made = await turn((t) =>
      createChipReplacement(t, secret, world.context.chains, caller, unit_id, { is_test: true }),
    )
    const { read } = world.context.db
    await until(async () => (await getChipReplacement(read, caller, unit_id, made.id)).status === "failed")
    const ended = await getChipReplacement(read, caller, unit_id, made.id)
    expect(ended.failure?.code).toBe("chip_replacement.locked")
    const [chip] = await read.select().from(chips).where(eq(chips.chip_id, made.chip_id))
    expect(chip).toMatchObject({ unit_id: null, reserved_for: null, retired_at: null })
  }, 30_000)
})

describe("a lane", () => {
  test("goes on for others when one effect cannot be planned, and says why in its row", async () => {
    const { stage, turn, caller } = await openEngine()
    const { unit_id } = await issuedUnit(stage, turn, caller)
    const { read } = stage.world.context.db
    const [done] = await read.select().from(effects).where(eq(effects.actor_id, unit_id))
    const nowhere = newId()
    await turn((t) =>
      t.tx.insert(effects).values({
        ...(done as typeof effects.$inferSelect),
        id: "00000000-0000-7000-8000-000000000000",
        invoke_id: "poison",
        input: { ...done?.input, collection_id: nowhere },
        status: "open",
        transaction_id: null,
        closed_at: null,
      }),
    )
    await issuedUnit(stage, turn, caller)
    const [poison] = await read.select().from(effects).where(eq(effects.invoke_id, "poison"))
    expect(poison?.status).toBe("open")
    expect(poison?.last_error).toContain(`there is no collection ${nowhere}`)
  }, 30_000)

  test("pauses before it sends what it cannot pay for, and goes on when its signer has money again", async () => {
    const { stage, turn, caller } = await openEngine()
    const { client } = stage.anvil
    const address = accountAt(2).address
    await client.setBalance({ address, value: 1n })
    const issued = issuedUnit(stage, turn, caller)
    const { read } = stage.world.context.db
    const laneNow = async () => (await read.select().from(lanes).where(eq(lanes.address, address)))[0]
    await until(async () => (await laneNow())?.status === "paused")
    expect((await laneNow())?.reason).toContain(`${address} lacks`)
    expect(await read.select().from(transactions)).toEqual([])
    await client.setBalance({ address, value: 10n ** 18n })
    await issued
    await until(async () => (await laneNow())?.reason === null)
    expect(await laneNow()).toMatchObject({ status: "open", reason: null })
  }, 30_000)

  test("refuses the writes of a holder that was frozen past its lease", async () => {
    const { stage, turn, workers } = await openEngine()
    await workers.stop()
    const [signer] = stage.world.chains.get(31_337)?.signers ?? []
    const laneId = String(signer?.lane_id)
    const frozen = await turn((t) => takeLease(t, laneId, { owner: "frozen", lease_milliseconds: 1 }))
    if (!frozen) throw new Error("the lane was not free")
    await Bun.sleep(5)
    const next = await turn((t) => takeLease(t, laneId, { owner: "next", lease_milliseconds: 60_000 }))
    expect(next?.lease.epoch).toBe(frozen.lease.epoch + 1)
    const write = turn((t) => assertLease(t, frozen.lease))
    expect(write).rejects.toBeInstanceOf(LeaseLost)
    expect(await turn((t) => takeLease(t, laneId, { owner: "third", lease_milliseconds: 1 }))).toBeNull()
  })

  test("is taken over from a holder whose clock was ahead, once it has been silent for the lease", async () => {
    const { stage, turn, workers } = await openEngine()
    await workers.stop()
    const [signer] = stage.world.chains.get(31_337)?.signers ?? []
    const laneId = String(signer?.lane_id)
    const ahead = { owner: "ahead", lease_milliseconds: 600_000 }
    expect(await turn((t) => takeLease(t, laneId, ahead))).not.toBeNull()
    const claimant = { owner: "right", lease_milliseconds: 50 }
    expect(await turn((t) => takeLease(t, laneId, claimant))).toBeNull()
    await Bun.sleep(60)
    expect(await turn((t) => takeLease(t, laneId, claimant))).not.toBeNull()
  })
})

async function openEngine() {
  const stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 1)
  closers.push(stage.close)
  const { context } = stage.world
  const workers: Workers = startWorkers(stage.world)
  closers.push(workers.stop)
  const blocks = setInterval(() => void stage.anvil.client.mine({ blocks: 1 }).catch(() => {}), 100)
  closers.push(async () => clearInterval(blocks))
  const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, null, work)
  const organization = await turn((t) =>
    createOrganization(t, { name: "Maker", default_chain_id: 31_337, allowed_chain_ids: [31_337] }),
  )
  const caller: Caller = {
    organization_id: organization.id,
    kind: "api_key",
    credential_id: newId(),
    session: null,
  }
  return { stage, turn, caller, workers }
}

type RunTurn = <T>(work: (turn: Turn) => Promise<T>) => Promise<T>

async function issuedUnit({ world }: Stage, turn: RunTurn, caller: Caller) {
  const { context } = world
  const { read } = context.db
  const { id, address } = await turn((t) => createCollection(t, context.chains, caller, { name: "Autumn" }))
  await until(async () => {
    const [row] = await read.select().from(collections).where(eq(collections.id, id))
    return row?.status === "active"
  })
  const unit = await turn((t) => createUnit(t, caller, { collection_id: id }))
  await turn((t) => pairChip(t, context.config.service_secret, caller, { unit_id: unit.id, is_test: true }))
  await until(async () => {
    const [row] = await read
      .select()
      .from(units)
      .where(and(eq(units.id, unit.id), eq(units.token_status, "active")))
    return row !== undefined
  })
  return { unit_id: unit.id, address: address as Address }
}

/** Somebody claims serial 1 with an authorization of which the database knows nothing. */
async function claimFromWallet({ world, anvil }: Stage, contract: Address): Promise<void> {
  const account = accountAt(7)
  const deadline_at = new Date("2100-01-01T00:00:00.000Z")
  const chain = world.chains.get(31_337)
  const signed = await chain?.authorizeClaim({ contract, serial: 1, recipient: account.address, deadline_at })
  const data = signed?.transaction.data as Hex
  await anvil.client.sendTransaction({ account, to: contract, data, gas: 300_000n })
  await until(async () => (await chain?.ownershipOf(contract, 1))?.owner === account.address)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 15_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("it did not happen in time")
    await Bun.sleep(30)
  }
}
