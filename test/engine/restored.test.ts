import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import type { Address, Hex } from "viem"
import { lanes, transactionAttempts } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { useUpNonce } from "../../src/engine/jobs/job.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { maxInFlight } from "../../src/engine/lanes/turns.ts"
import { noteRestored } from "../../src/operator/verbs/restored.ts"
import { accountAt } from "../faults/stage.ts"
import {
  activeCollection,
  type ByHand,
  issuingLane,
  newCollection,
  openByHand,
  outwaitNewestBlock,
  pairedUnit,
} from "../harness/by-hand.ts"
import { chipRowOf, unitRowOf } from "../harness/unit-rows.ts"

const depths = { confirmation_depth: 2, finality_depth: 6 }

let hand: ByHand
beforeEach(async () => {
  hand = await openByHand(depths)
})
afterEach(() => hand.close())

describe("after operator restored has been run", () => {
  test("a chip that a lost transaction may yet issue is bound to one serial", async () => {
    const { id, address } = await activeCollection(hand)
    const unit_id = await pairedUnit(hand, id)
    const { chip_id } = await chipRowOf(hand.world.context.db.read, unit_id)
    // The pool has dropped the first of them, and would mine the second after whatever takes the first one's nonce.
    const { client } = hand.stage.anvil
    const hash = await issueByHand(address, { first: 1n, chip_id: "0400000001" })
    await issueByHand(address, { first: 2n, chip_id })
    await client.dropTransaction({ hash })
    await hand.turn(noteRestored)
    await settleAll()
    const unit = await unitRowOf(hand.world.context.db.read, unit_id)
    expect(unit).toMatchObject({ token_status: "active", serial: 1 })
    expect(await chipsOnChain(address)).toEqual([chip_id])
  }, 30_000)

  test("no lane sends new work before every possibly lost transaction's nonce is used and final", async () => {
    await hand.turn(noteRestored)
    await newCollection(hand)
    await hand.tick()
    expect(await issuingLane(hand)).toMatchObject({ status: "paused", next_nonce: 16 })
    await until(async () => (await minedFillers()).length === 32)
    expect(await hand.transactionsOf("deployCollection")).toEqual([])
    await settleAll()
    expect(await blocksBetween()).toBeGreaterThanOrEqual(depths.finality_depth)
    for (const lane of await allLanes())
      expect(lane).toMatchObject({ status: "open", reason: null, restored_at: null })
  }, 30_000)

  test("a lane that was reading its first nonce at that moment skips as many as any other", async () => {
    const [, issuing] = hand.lanes
    const { providers } = issuing.chain
    const askAll: typeof providers.askAll = async (question) => {
      const said = await providers.askAll(question)
      await hand.turn(noteRestored)
      return said
    }
    await tickLane({ ...issuing, chain: { ...issuing.chain, providers: { ...providers, askAll } } })
    expect(await issuingLane(hand)).toMatchObject({ next_nonce: null, restored_at: expect.any(Date) })
    await hand.tick()
    expect(await issuingLane(hand)).toMatchObject({ next_nonce: maxInFlight })
  }, 30_000)

  test("a problem in filling those nonces is reported until it is solved", async () => {
    const [proxy] = hand.stage.proxies
    if (!proxy) throw new Error("there is a provider")
    proxy.faults.says_to_sends = "txpool is full"
    await hand.turn(noteRestored)
    const reason = async () => (await issuingLane(hand)).reason ?? ""
    await until(async () => (await reason()).includes("nonce 0 has to wait: txpool is full"))
    const said = await reason()
    expect(said).toStartWith("a backup was restored: nothing new is sent until")
    await hand.tick()
    expect(await reason()).toBe(said)
    proxy.faults.says_to_sends = null
    await settleAll()
    expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
  }, 30_000)

  test("finality is awaited again if a reorganization moves the fillers to other blocks", async () => {
    await hand.turn(noteRestored)
    await newCollection(hand)
    await until(async () => (await minedFillers()).length === 32)
    const request = hand.stage.anvil.client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [4, []] })
    // They are mined again before the next round.
    for (const { raw } of await hand.world.context.db.read.select().from(transactionAttempts))
      await hand.stage.anvil.client.sendRawTransaction({ serializedTransaction: raw as Hex }).catch(() => {})
    await hand.mine()
    await settleAll()
    expect(await blocksBetween()).toBeGreaterThanOrEqual(depths.finality_depth)
  }, 30_000)

  test("a lost transaction is mined rather than replaced if a block takes it in time", async () => {
    const hash = await hand.stage.anvil.client.sendTransaction({
      ...{ account: accountAt(2), chain: null, to: accountAt(2).address },
    })
    await hand.turn(noteRestored)
    await hand.tick()
    await hand.mine()
    await settleAll()
    expect((await hand.stage.anvil.client.getTransactionReceipt({ hash })).status).toBe("success")
    expect(nonces(await usedUp())).not.toContain(`${await issuingLaneId()} 0`)
  }, 30_000)

  test("what the pools show only after nonces were skipped is outlived, too", async () => {
    const { client } = hand.stage.anvil
    await hand.turn(noteRestored)
    await newCollection(hand)
    await until(async () => (await minedFillers()).length === 2 * maxInFlight)
    await hand.mine(depths.finality_depth)
    // As if its provider had been behind until now.
    const hash = await client.sendTransaction({
      ...{ account: accountAt(2), chain: null, to: accountAt(2).address, nonce: maxInFlight },
    })
    await hand.tick()
    expect(await issuingLane(hand)).toMatchObject({ status: "paused", restored_at: expect.any(Date) })
    await settleAll()
    expect((await client.getTransactionReceipt({ hash })).status).toBe("success")
    expect(await blocksBetween()).toBeGreaterThanOrEqual(depths.finality_depth)
    expect(await minedFillers()).toHaveLength(3 * maxInFlight)
  }, 30_000)

  test("a lane without its key is waited for as long as pools hold a transaction of it", async () => {
    const [owning, issuing] = hand.lanes
    const chain = { ...issuing.chain, signers: [owning.signer] }
    const lanesNow = [
      { ...owning, chain },
      { ...issuing, chain, signer: { ...issuing.signer, account: null } },
    ]
    const hash = await hand.stage.anvil.client.sendTransaction({
      ...{ account: accountAt(2), chain: null, to: accountAt(2).address },
    })
    await hand.turn(noteRestored)
    const tick = async () => {
      await outwaitNewestBlock()
      for (const lane of lanesNow) await tickLane(lane)
    }
    for (let round = 0; round < 3; round++) await tick()
    expect(await issuingLane(hand)).toMatchObject({ status: "paused", restored_at: expect.anything() })
    expect((await issuingLane(hand)).reason).toContain("whose key is not in SIGNER_KEYS")
    await hand.mine()
    await tick()
    const { blockNumber } = await hand.stage.anvil.client.getTransactionReceipt({ hash })
    while ((await issuingLane(hand)).restored_at !== null) {
      await hand.mine()
      await tick()
    }
    const head = await hand.stage.anvil.client.getBlockNumber()
    expect(head - blockNumber + 1n).toBe(BigInt(depths.finality_depth))
  }, 30_000)
})

/** Issues with the signer's key, unknown to the database. */
async function issueByHand(
  address: string,
  { first, chip_id }: { first: bigint; chip_id: string },
): Promise<Hex> {
  return await hand.stage.anvil.client.writeContract({
    ...{ account: accountAt(2), chain: null, address: address as Address, abi: collectionAbi },
    ...{ functionName: "issue", args: [first, `0x${chip_id}`, false], gas: 300_000n },
  })
}

/** By serial. */
async function chipsOnChain(address: string): Promise<string[]> {
  const token = { address: address as Address, abi: collectionAbi } as const
  const { client } = hand.stage.anvil
  const count = Number(await client.readContract({ ...token, functionName: "issued" }))
  const bound = Array.from({ length: count }, (_, index) =>
    client.readContract({ ...token, functionName: "chipOf", args: [BigInt(index + 1)] }),
  )
  return (await Promise.all(bound)).map((chip) => chip.toString(16).padStart(10, "0").toUpperCase())
}

/** Mines blocks and runs rounds until no lane waits for lost transactions and nothing else is in flight. */
async function settleAll(): Promise<void> {
  await until(async () => (await allLanes()).every(({ restored_at }) => restored_at === null))
  await hand.settle()
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 40; round++) {
    await hand.tick()
    await hand.mine()
    if (await isSo()) return
  }
  throw new Error(`not in 40 rounds: ${JSON.stringify(await allLanes())}`)
}

async function allLanes() {
  return await hand.world.context.db.read.select().from(lanes)
}

async function issuingLaneId(): Promise<string> {
  return (await issuingLane(hand)).id
}

/** From the last filled nonce to the deployment. */
async function blocksBetween(): Promise<number> {
  const [deployment] = await hand.transactionsOf("deployCollection")
  const last = Math.max(...(await usedUp()).map(({ block_number }) => block_number ?? 0))
  return (deployment?.block_number ?? 0) - last
}

async function minedFillers() {
  return (await usedUp()).filter(({ status }) => ["mined", "confirmed", "final"].includes(status))
}

async function usedUp() {
  return await hand.transactionsOf(useUpNonce)
}

function nonces(rows: { lane_id: string; nonce: number }[]): string[] {
  return rows.map(({ lane_id, nonce }) => `${lane_id} ${nonce}`)
}
