import { afterEach, describe, expect, test } from "bun:test"
import { type Hex, parseEventLogs } from "viem"
import { collections, lanes, type UnitRow } from "../../src/db/schema.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { useUpNonce } from "../../src/engine/jobs/job.ts"
import { retryById } from "../../src/operator/verbs/retry.ts"
import type { ProviderProxy } from "../faults/proxy.ts"
import { accountAt } from "../faults/stage.ts"
import {
  activeCollection,
  type ByHand,
  issuingLane,
  newCollection,
  openByHand,
  pairedUnit,
} from "../harness/by-hand.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

let hand: ByHand
afterEach(() => hand.close())

describe("nonces that were skipped because the pools had transactions for them", () => {
  test("and that the pools dropped are filled by no-op transactions, and the work behind them is done", async () => {
    hand = await openByHand()
    const forgotten = [await sendByHand(), await sendByHand()]
    await newCollection(hand)
    await hand.tick()
    await drop(forgotten)
    await hand.settle()
    // Results that no caller waits for may come a round later.
    await hand.tick()
    expect(await collectionStatuses()).toEqual(["active"])
    expect(await fillers()).toEqual([
      { nonce: 0, status: "confirmed" },
      { nonce: 1, status: "confirmed" },
    ])
    expect((await hand.transactionsOf("deployCollection")).map(({ nonce }) => nonce)).toEqual([2])
    expect((await issuingLane(hand)).status).toBe("open")
  }, 30_000)

  test("are filled during another organization's burst, and a third organization's unit does not wait for either to finish", async () => {
    hand = await openByHand()
    const { id } = await activeCollection(hand)
    const forgotten = [await sendByHand(), await sendByHand(), await sendByHand(), await sendByHand()]
    await hand.turn(({ tx }) => tx.update(lanes).set({ next_nonce: null }))
    const other = await hand.newCaller()
    for (let each = 0; each < burst; each++) await newCollection(hand, other)
    await hand.tick()
    await drop(forgotten)
    const unit_id = await pairedUnit(hand, id)
    await until(async () => (await unitOf(unit_id)).token_status === "active")
    expect((await fillers()).map(({ nonce }) => nonce)).toEqual([1, 2, 3, 4])
    const deploying = (await collectionStatuses()).filter((status) => status === "deploying")
    expect(deploying.length).toBeGreaterThan(0)
    await until(async () => (await collectionStatuses()).every((status) => status === "active"))
  }, 30_000)

  test("and that are mined in time are left alone", async () => {
    hand = await openByHand()
    await sendByHand()
    await newCollection(hand)
    await hand.settle()
    expect(await collectionStatuses()).toEqual(["active"])
    expect(await fillers()).toEqual([])
  }, 30_000)

  test("and that are mined after all do not halt the lane that was about to fill them", async () => {
    hand = await openByHand()
    const { faults } = await forgetUnheard()
    for (let round = 0; round < 40 && (await fillers()).length === 0; round++) {
      await hand.mine()
      await hand.tick()
    }
    await hand.tick()
    await sendByHand(0)
    await hand.mine()
    faults.swallows = false
    await hand.settle()
    expect(await collectionStatuses()).toEqual(["active"])
    for (let round = 0; round < 8; round++) {
      await hand.mine()
      await hand.tick()
    }
    expect(await fillers()).toEqual([{ nonce: 0, status: "final" }])
    expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
  }, 30_000)

  test("and that a reorganization undoes after their fillers came too late are filled after all", async () => {
    hand = await openByHand({ confirmation_depth: 2, finality_depth: 60 })
    const { faults } = await forgetUnheard()
    await until(async () => (await fillers()).length > 0)
    await hand.tick()
    const late = await sendByHand(0)
    await until(async () => (await fillers()).every(({ status }) => status === "final"))
    await undo(late)
    faults.swallows = false
    await until(async () => (await collectionStatuses()).includes("active"))
    expect((await fillers())[0]?.status).toMatch(/mined|confirmed/)
  }, 30_000)
})

describe("a nonce that another sender used", () => {
  test("is filled if a reorganization undoes that, and the displaced work is done with its new nonce", async () => {
    hand = await openByHand({ confirmation_depth: 2, finality_depth: 60 })
    await loseNonceAndBlock()
    await until(async () => (await collectionStatuses()).includes("active"))
    expect((await fillers())[0]?.nonce).toBe(0)
    const [deployment, ...others] = await hand.transactionsOf("deployCollection")
    expect([deployment?.nonce, others]).toEqual([1, []])
    expect(await deploymentsOnChain()).toBe(1)
  }, 30_000)

  test("makes a lane without its key ask for the key if a reorganization undoes that", async () => {
    hand = await openByHand({ confirmation_depth: 2, finality_depth: 60 })
    await loseNonceAndBlock()
    const [, issuing] = hand.lanes
    const signer = { ...issuing.signer, account: null }
    hand.lanes[1] = { ...issuing, signer }
    await until(async () => ((await issuingLane(hand)).reason ?? "").includes("add it until"))
    expect((await issuingLane(hand)).reason).toContain("no transaction with nonce 0 ")
    hand.lanes[1] = issuing
    await until(async () => (await collectionStatuses()).includes("active"))
  }, 30_000)
})

/**
 * Another sender uses the nonce of a deployment, which gets the next nonce; then a reorganization removes that block.
 */
async function loseNonceAndBlock(): Promise<void> {
  const [proxy] = hand.stage.proxies
  if (!proxy) throw new Error("there is a provider")
  proxy.faults.swallows = true
  await newCollection(hand)
  await hand.tick()
  const stolen = await sendByHand(0)
  await until(async () => (await issuingLane(hand)).status === "halted")
  const { id } = await issuingLane(hand)
  await hand.turn((t) => retryById(t, id))
  await hand.tick()
  await undo(stolen)
  proxy.faults.swallows = false
}

async function undo(hash: Hex): Promise<void> {
  const { client } = hand.stage.anvil
  const { blockNumber } = await client.getTransactionReceipt({ hash })
  const depth = Number((await client.getBlockNumber({ cacheTime: 0 })) - blockNumber) + 1
  await (client.request as (call: object) => Promise<unknown>)({
    ...{ method: "anvil_reorg", params: [depth, []] },
  })
  await client.dropTransaction({ hash }).catch(() => {})
}

async function deploymentsOnChain(): Promise<number> {
  const logs = await hand.stage.anvil.client.getLogs({
    ...{ address: hand.chain.config.factory_address, fromBlock: 0n },
  })
  return parseEventLogs({ abi: factoryAbi, eventName: "CollectionDeployed", logs }).length
}

/** A pool drops transactions that the service does not know, and the provider swallows whatever it gets from now on. */
async function forgetUnheard(): Promise<ProviderProxy> {
  const [proxy] = hand.stage.proxies
  if (!proxy) throw new Error("there is a provider")
  const forgotten = await sendByHand()
  await newCollection(hand)
  await hand.tick()
  await drop([forgotten])
  proxy.faults.swallows = true
  return proxy
}

/** Sends a transaction with the issuing signer's key outside the service; returns its hash. */
async function sendByHand(nonce?: number): Promise<Hex> {
  const account = accountAt(2)
  const { client } = hand.stage.anvil
  return await client.sendTransaction({
    account,
    chain: null,
    to: account.address,
    ...(nonce !== undefined && { nonce }),
  })
}

/** More than a lane sends in the blocks in which nonces are filled. */
const burst = 64

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let block = 0; block < 60; block++) {
    await hand.tick()
    if (await isSo()) return
    await hand.mine()
  }
  throw new Error(`not in 60 blocks: ${(await issuingLane(hand)).reason}`)
}

async function unitOf(id: string): Promise<UnitRow> {
  return await unitRowOf(hand.world.context.db.read, id)
}

async function drop(hashes: Hex[]): Promise<void> {
  for (const hash of hashes) await hand.stage.anvil.client.dropTransaction({ hash })
}

async function fillers() {
  const rows = await hand.transactionsOf(useUpNonce)
  return rows
    .toSorted((one, other) => one.nonce - other.nonce)
    .map(({ nonce, status }) => ({ nonce, status }))
}

async function collectionStatuses() {
  const rows = await hand.world.context.db.read.select().from(collections)
  return rows.map(({ status }) => status)
}
