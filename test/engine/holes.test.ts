import { afterEach, describe, expect, test } from "bun:test"
import type { Hex } from "viem"
import { collections } from "../../src/db/schema.ts"
import { useUpNonce } from "../../src/engine/jobs/job.ts"
import { accountAt } from "../faults/stage.ts"
import { type ByHand, issuingLane, newCollection, openByHand } from "../harness/by-hand.ts"

let hand: ByHand
afterEach(() => hand.close())

describe("nonces that were left out for what the pools had", () => {
  test("and that fell out of them are used up by nothing, and what waits behind them is done", async () => {
    hand = await openByHand()
    const forgotten = [await sendByHand(), await sendByHand()]
    await newCollection(hand)
    await hand.tick()
    await drop(forgotten)
    await hand.settle()
    // Results that nobody waits for may come a round later.
    await hand.tick()
    expect(await collectionStatuses()).toEqual(["active"])
    expect(await fillers()).toEqual([
      { nonce: 0, status: "confirmed" },
      { nonce: 1, status: "confirmed" },
    ])
    expect((await hand.transactionsOf("deployCollection")).map(({ nonce }) => nonce)).toEqual([2])
    expect((await issuingLane(hand)).status).toBe("open")
  }, 30_000)

  test("and that are mined in time are not touched", async () => {
    hand = await openByHand()
    await sendByHand()
    await newCollection(hand)
    await hand.settle()
    expect(await collectionStatuses()).toEqual(["active"])
    expect(await fillers()).toEqual([])
  }, 30_000)

  test("and that are mined after all halt no lane that would have used them up", async () => {
    hand = await openByHand()
    const [proxy] = hand.stage.proxies
    if (!proxy) throw new Error("there is a provider")
    const forgotten = await sendByHand()
    await newCollection(hand)
    await hand.tick()
    await drop([forgotten])
    proxy.faults.swallows = true
    for (let round = 0; round < 40 && (await fillers()).length === 0; round++) {
      await hand.mine()
      await hand.tick()
    }
    await hand.tick()
    await sendByHand(0)
    await hand.mine()
    proxy.faults.swallows = false
    await hand.settle()
    expect(await collectionStatuses()).toEqual(["active"])
    for (let round = 0; round < 8; round++) {
      await hand.mine()
      await hand.tick()
    }
    expect(await fillers()).toEqual([{ nonce: 0, status: "final" }])
    expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
  }, 30_000)
})

/** What the issuing signer's key sends past the service: its hash. */
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
