import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { type Hex, parseTransaction } from "viem"
import { type AttemptRow, chipReplacements, transactionAttempts } from "../../src/db/schema.ts"
import { gasOf } from "../../src/engine/lanes/attempts.ts"
import type { Lane } from "../../src/engine/lanes/held-lane.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import type { Checkpoint, Step } from "../../src/engine/lanes/step.ts"
import { cancelById } from "../../src/operator/verbs/cancel.ts"
import type { Faults } from "../faults/proxy.ts"
import { signers } from "../faults/stage.ts"
import {
  type ByHand,
  issuedUnit,
  issuingLane,
  newCollection,
  openByHand,
  outwaitNewestBlock,
  replaceChip,
} from "../harness/by-hand.ts"

// What happens, block by block, to a signed transaction that is not mined.

let hand: ByHand
let faults: Faults
beforeEach(async () => {
  hand = await openByHand({ confirmation_depth: 2, finality_depth: 6, bump_after_blocks: 3 })
  const [proxy] = hand.stage.proxies
  if (!proxy) throw new Error("there is a provider")
  faults = proxy.faults
}, 30_000)
afterEach(() => hand.close())

describe("a transaction that a pool accepted and dropped", () => {
  test("is sent again after two blocks, and at a higher price for the lowest nonce after a configured number", async () => {
    faults.swallows = true
    for (let made = 0; made < 2; made++) {
      await newCollection(hand)
      await hand.tick()
    }
    const seen: number[][][] = []
    for (let blocks = 1; blocks <= 3; blocks++) {
      await nextBlock()
      seen.push(await sends())
    }
    expect(seen).toEqual([
      [[1], [1]],
      [[2], [2]],
      [[2, 1], [2]],
    ])
    const [first, dearer] = await attemptsOf(0)
    expect(costOf(dearer) * 10n).toBeGreaterThanOrEqual(costOf(first) * 11n)

    faults.swallows = false
    await hand.settle()
    const [lowest] = await hand.transactionsOf("deployCollection")
    expect(lowest?.hash).toBe(String(dearer?.hash))
  }, 30_000)

  test("is sent again at once if a pool lacks its nonce below another one", async () => {
    faults.swallows = true
    await newCollection(hand)
    await hand.tick()
    faults.swallows = false
    await newCollection(hand)
    await hand.tick()
    expect((await attemptsOf(1))[0]?.last_outcome).toBe("nonce_high")
    await nextBlock()
    expect(await sends()).toEqual([[2], [2]])
    await hand.mine()
    expect(await hand.stage.anvil.client.getTransactionCount({ address: signers[1] })).toBe(2)
  }, 30_000)

  test("stays in play at the highest allowed price, and a person is told", async () => {
    faults.swallows = true
    await newCollection(hand)
    await hand.tick()
    const config = { ...hand.chain.config, max_fee_per_gas_gwei: 0.001 }
    const thrifty = { ...hand.lanes[1], chain: { ...hand.chain, config } }
    await nextBlock(3, thrifty)
    expect((await issuingLane(hand)).reason).toContain("nonce 0 is not mined even at the highest fee")
    expect(await sends()).toEqual([[2]])
    const [sent] = await hand.transactionsOf("deployCollection")
    await hand.turn((t) => cancelById(t, String(sent?.id)))
    await nextBlock(2, thrifty)
    expect((await issuingLane(hand)).reason).toContain("the empty transaction with nonce 0 is not mined even")
    expect(await sends()).toEqual([[3]])
  }, 30_000)

  test("that is given up without its key says that it needs the key, and is sent again unchanged", async () => {
    faults.swallows = true
    await newCollection(hand)
    await hand.tick()
    const keyless = { ...hand.lanes[1], signer: { ...hand.lanes[1].signer, account: null } }
    const [sent] = await hand.transactionsOf("deployCollection")
    await hand.turn((t) => cancelById(t, String(sent?.id)))
    await nextBlock(2, keyless)
    expect((await issuingLane(hand)).reason).toContain(
      `nonce 0 is given up, but the key of ${signers[1]}, which has to sign the empty transaction for it, is no longer in SIGNER_KEYS`,
    )
    expect(await sends()).toEqual([[2]])
  }, 30_000)

  test("is sent at no more than the allowed price, and its cancellation at up to twice that", async () => {
    faults.swallows = true
    await newCollection(hand)
    await hand.tick()
    const [first] = await attemptsOf(0)
    const config = { ...hand.chain.config, max_fee_per_gas_gwei: Number(first?.max_fee_per_gas) / 1e9 }
    const thrifty = { ...hand.lanes[1], chain: { ...hand.chain, config } }
    await nextBlock(3, thrifty)
    expect(await sends()).toEqual([[2]])
    const [sent] = await hand.transactionsOf("deployCollection")
    await hand.turn((t) => cancelById(t, String(sent?.id)))
    await nextBlock(1, thrifty)
    const [, cancel] = await attemptsOf(0)
    expect(cancel?.is_cancel).toBe(true)
    expect(costOf(cancel, 1n)).toBeGreaterThan(costOf(first, 1n))
    expect(costOf(cancel, 1n)).toBeLessThanOrEqual(2n * costOf(first, 1n))
  }, 30_000)
})

describe("a chip replacement", () => {
  test("names its transaction once it is mined, if the process died before it could do so", async () => {
    const { unit_id } = await issuedUnit(hand)
    const { id } = await replaceChip(hand, unit_id)
    const [owning] = hand.lanes
    await hand.mine()
    await outwaitNewestBlock()
    await expect(tickLane({ ...owning, checkpoint: dyingAt("broadcast") })).rejects.toThrow(
      "the process dies",
    )
    expect(await namedHash(id)).toBeNull()
    await nextBlock()
    const [transaction] = await hand.transactionsOf("replaceChip")
    expect(transaction).toMatchObject({ status: "mined" })
    expect(await namedHash(id)).toBe(String(transaction?.hash))
  }, 30_000)

  test("whose nonce is given up is sent with the next one, and never names the filler", async () => {
    const { unit_id } = await issuedUnit(hand)
    faults.says_to_sends = "txpool is full"
    const { id } = await replaceChip(hand, unit_id)
    await hand.tick()
    const [given] = await hand.transactionsOf("replaceChip")
    await hand.turn((t) => cancelById(t, id))
    await nextBlock()
    const [first, cancel] = await attemptsFor("replaceChip")
    const { to, nonce, data, value } = parseTransaction(cancel?.raw as Hex)
    expect({ to, nonce }).toEqual({ to: signers[0].toLowerCase() as Hex, nonce: Number(given?.nonce) })
    expect([data, value]).toEqual([undefined, undefined])
    expect(costOf(cancel, 1n) * 10n).toBeGreaterThanOrEqual(costOf(first, 1n) * 11n)

    faults.says_to_sends = null
    await nextBlock()
    await nextBlock()
    expect(await hand.transactionsOf("replaceChip")).toMatchObject([{ status: "mined", hash: cancel?.hash }])
    expect(await namedHash(id)).toBeNull()
    await hand.settle()
    const [used, anew] = await hand.transactionsOf("replaceChip")
    expect([used?.status, anew?.status]).toEqual(["reverted", "confirmed"])
    expect(anew?.nonce).toBe(Number(given?.nonce) + 1)
    expect(await namedHash(id)).toBe(String(anew?.hash))
  }, 30_000)
})

describe("a transaction that a node rejects", () => {
  test("for too little gas gets twice as much if no estimate says more", async () => {
    faults.least_gas = 100_000_000
    await newCollection(hand)
    await hand.tick()
    const [first] = await attemptsOf(0)
    faults.least_gas = Number(first && gasOf(first)) + 1
    await nextBlock()
    const [, second] = await attemptsOf(0)
    expect(second && gasOf(second)).toBe(2n * ((first && gasOf(first)) ?? 0n))
    await hand.settle()
    const rows = await hand.transactionsOf("deployCollection")
    expect(rows).toMatchObject([{ status: "confirmed", hash: second?.hash }])
  }, 30_000)

  test("with an unknown message is sent again unchanged, and the round reports it as a failure", async () => {
    faults.says_to_sends = "the moon is too low"
    await newCollection(hand)
    await expect(hand.tick()).rejects.toThrow("the moon is too low")
    expect(await issuingLane(hand)).toMatchObject({
      status: "open",
      reason: "nonce 0 is not accepted yet, and the same bytes are sent again: the moon is too low",
    })
    faults.says_to_sends = null
    await nextBlock()
    expect(await sends()).toEqual([[2]])
    expect((await issuingLane(hand)).reason).toBeNull()
  }, 30_000)

  test("because its signer has no money waits until it has", async () => {
    const { client } = hand.stage.anvil
    faults.says_to_sends = "insufficient funds for gas * price + value"
    await newCollection(hand)
    await hand.tick()
    expect(await issuingLane(hand)).toMatchObject({
      status: "paused",
      reason: expect.stringContaining(`${signers[1]} cannot pay the`),
    })
    await client.setBalance({ address: signers[1], value: 1n })
    await nextBlock()
    expect((await issuingLane(hand)).reason).toContain("but its next transaction may cost")
    expect(await sends()).toEqual([[1]])

    await client.setBalance({ address: signers[1], value: 10n ** 18n })
    faults.says_to_sends = null
    await nextBlock()
    expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
    // Today's price, which has fallen.
    expect(await sends()).toEqual([[1, 1]])
  }, 30_000)

  test("because its pool requires a higher tip offers that tip with the next block", async () => {
    // As Bor does on Polygon, whose nodes may suggest less than they accept.
    faults.says_to_sends =
      "transaction gas price below minimum: gas tip cap 1000000000, minimum needed 25000000000"
    await newCollection(hand)
    await hand.tick()
    faults.says_to_sends = null
    await nextBlock()
    const [refused, taken] = await attemptsOf(0)
    expect(Number(refused?.max_priority_fee_per_gas)).toBeLessThan(25e9)
    expect(taken).toMatchObject({ max_priority_fee_per_gas: "25000000000", last_outcome: "known" })
  }, 30_000)

  test("because its signer lacks a cost that only the node knows is sent again unchanged, whatever prices do", async () => {
    const { client } = hand.stage.anvil
    // As on the OP Stack, where an L1 data fee is added to the gas cost.
    faults.says_to_sends = "insufficient funds for gas * price + value: balance 9, tx cost 10, overshot 1"
    await newCollection(hand)
    await hand.tick()
    for (let block = 1n; block <= 12n; block++) {
      await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1_000_000_000n + block })
      await nextBlock()
    }
    expect((await issuingLane(hand)).status).toBe("paused")
    expect((await attemptsOf(0)).length).toBeLessThanOrEqual(2)

    faults.says_to_sends = null
    await nextBlock(2)
    expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
    await hand.settle()
    expect((await hand.transactionsOf("deployCollection")).map(({ status }) => status)).toEqual(["confirmed"])
  }, 40_000)

  test("because it is too expensive becomes cheaper, and so do later ones for fifty blocks", async () => {
    const { client } = hand.stage.anvil
    faults.says_to_sends = "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)"
    await newCollection(hand)
    await hand.tick()
    const { number: refusedAt } = await client.getBlock()
    expect((await issuingLane(hand)).reason).toMatch(/^nonce 0 is too expensive for the node at 0\.\d+ ETH: /)
    faults.says_to_sends = null
    await nextBlock()
    const [refused, cheaper] = await attemptsOf(0)
    expect(costOf(cheaper) * 10n).toBeLessThanOrEqual(costOf(refused) * 9n)

    await nextBlock(47)
    for (const [blocks, isCheap] of [
      [49n, true],
      [50n, false],
    ] as const) {
      await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 2_000_000_000n })
      await newCollection(hand)
      await nextBlock()
      expect((await client.getBlock()).number).toBe(refusedAt + blocks)
      const latest = (await hand.transactionsOf("deployCollection")).toSorted((a, b) => b.nonce - a.nonce)[0]
      const [first] = await attemptsOf(latest?.nonce ?? 0)
      expect(costOf(first) < costOf(refused)).toBe(isCheap)
    }
  }, 30_000)
})

describe("a lane whose key is gone", () => {
  test("sends its signed transactions again unchanged, and reports unsigned ones", async () => {
    faults.swallows = true
    const [, own] = hand.lanes
    const keyless = withoutKey(own)
    await newCollection(hand)
    await expect(tickLane({ ...own, checkpoint: dyingAt("allocate") })).rejects.toThrow("the process dies")
    await nextBlock(1, keyless)
    expect((await issuingLane(hand)).reason).toContain("nonce 0 (deployCollection) was never signed")
    expect(await sends()).toEqual([[]])

    await nextBlock()
    expect(await sends()).toEqual([[1]])
    await nextBlock(3, keyless)
    expect(await sends()).toEqual([[2]])
    const { lease_owner, reason } = await issuingLane(hand)
    expect([lease_owner, reason]).toEqual([null, null])
  }, 30_000)

  test("reports a signed transaction that is too cheap, which it cannot replace, for as long as it is", async () => {
    const { client } = hand.stage.anvil
    faults.swallows = true
    await newCollection(hand)
    await nextBlock()
    const [signed] = await attemptsOf(0)
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: BigInt(signed?.max_fee_per_gas ?? 0) + 1_000n })
    const keyless = withoutKey(hand.lanes[1])
    await nextBlock(1, keyless)
    expect((await issuingLane(hand)).reason).toContain(
      "nonce 0 (deployCollection) was signed with fees that are now too low, and the key of",
    )

    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1_000_000_000n })
    await nextBlock(1, keyless)
    expect((await issuingLane(hand)).reason).toBeNull()
  }, 30_000)
})

function withoutKey(lane: Lane): Lane {
  return { ...lane, chain: { ...hand.chain, signers: [] }, signer: { ...lane.signer, account: null } }
}

/** Mines blocks, and runs a round after them. */
async function nextBlock(blocks = 1, lane = hand.lanes[1]): Promise<void> {
  await hand.mine(blocks)
  if (lane === hand.lanes[1]) return await hand.tick()
  await outwaitNewestBlock()
  await tickLane(lane)
}

function dyingAt(last: Step): Checkpoint {
  return (step) => {
    if (step === last) throw new Error("the process dies")
  }
}

/** How often each attempt of each deployment was sent, by nonce. */
async function sends(): Promise<number[][]> {
  const rows = await hand.transactionsOf("deployCollection")
  const attempts = await Promise.all(
    rows
      .map(({ nonce }) => nonce)
      .toSorted()
      .map(attemptsOf),
  )
  return attempts.map((each) => each.map(({ send_count }) => send_count))
}

async function attemptsOf(nonce: number): Promise<AttemptRow[]> {
  const rows = await hand.transactionsOf("deployCollection")
  return await attemptsWith(String(rows.find((row) => row.nonce === nonce)?.id))
}

/** Of the only transaction of a kind. */
async function attemptsFor(kind: string): Promise<AttemptRow[]> {
  const [row] = await hand.transactionsOf(kind)
  return await attemptsWith(String(row?.id))
}

async function attemptsWith(transactionId: string): Promise<AttemptRow[]> {
  return await hand.world.context.db.read
    .select()
    .from(transactionAttempts)
    .where(eq(transactionAttempts.transaction_id, transactionId))
    .orderBy(asc(transactionAttempts.number))
}

function costOf(attempt: AttemptRow | undefined, gas = attempt ? gasOf(attempt) : 0n): bigint {
  return gas * BigInt(attempt?.max_fee_per_gas ?? 0)
}

async function namedHash(id: string): Promise<string | null | undefined> {
  const [row] = await hand.world.context.db.read
    .select()
    .from(chipReplacements)
    .where(eq(chipReplacements.id, id))
  return row?.transaction_hash
}
