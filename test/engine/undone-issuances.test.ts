import { describe, expect, test } from "bun:test"
import { asc, eq, inArray } from "drizzle-orm"
import type { Address } from "viem"
import { effects, lanes, transactionAttempts, transactions, units } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { pairChipsInBulk } from "../../src/resources/chips/service.ts"
import {
  activeCollection,
  type ByHand,
  goOn,
  grant,
  mineAllWithoutRole,
  newUnit,
  numberOf,
  openForEachTest,
  outwaitNewestBlock,
  pairedUnit,
  reorganize,
  type SentBytes,
  undoFrom,
} from "../harness/by-hand.ts"
import { chipRowOf } from "../harness/unit-rows.ts"

// Issuances that reverted, and that a reorganization brings to where they succeed.

const open = openForEachTest()
const depths = { confirmation_depth: 1, finality_depth: 30 }

describe("units whose issuances reverted have the serials that they were told, whichever of these comes back", () => {
  test("if one has an older id than the unit before it, as after an API whose clock is behind", async () => {
    const hand = await open(depths)
    const { id, address } = await activeCollection(hand)
    await pairedUnit(hand, id)
    await hand.tick()
    const behind = await pairedUnit(hand, id)
    await makeOldest(hand, behind)
    await hand.tick()
    expect(await hand.transactionsOf("issueUnit")).toHaveLength(2)
    await revertSent(hand)
    await hand.settle()
    await comeBack(hand)
    await expectAsTold(hand, address, 2)
  }, 30_000)

  test("if a bulk request with older ids waits, none of which was tried", async () => {
    const hand = await open(depths)
    const { id, address } = await activeCollection(hand)
    await pairedUnit(hand, id)
    await hand.tick()
    await revertSent(hand)
    const { turn, world, caller } = hand
    const unit_id = await newUnit(hand, id)
    const secret = world.context.config.service_secret
    await turn((t) => pairChipsInBulk(t, secret, caller, { chips: [{ unit_id, is_test: true }] }))
    await makeOldest(hand, unit_id)
    await hand.settle()
    await comeBack(hand)
    await expectAsTold(hand, address, 2)
  }, 30_000)

  test("if a part of them was sent alone, and the rest with a new unit behind it", async () => {
    const hand = await open(depths)
    const { id, address } = await activeCollection(hand)
    const [, , last] = [await pairedUnit(hand, id), await pairedUnit(hand, id), await pairedUnit(hand, id)]
    await hand.tick()
    await revertSent(hand)
    await putOff(hand, last)
    await hand.tick()
    await hand.mine()
    await pairedUnit(hand, id)
    await makeDue(hand)
    await hand.settle()
    await comeBack(hand)
    await expectAsTold(hand, address, 4)
  }, 30_000)

  test("if a part of them was sent alone and reverted, too, and only that part comes back", async () => {
    const hand = await open(depths)
    const { id, address } = await activeCollection(hand)
    const [, last] = [await pairedUnit(hand, id), await pairedUnit(hand, id)]
    await hand.tick()
    await revertSent(hand)
    await putOff(hand, last)
    await hand.tick()
    const { number } = await hand.stage.anvil.client.getBlock()
    await revertSent(hand)
    await makeDue(hand)
    await hand.settle()
    await mineAgainFrom(hand, number + 1n)
    await goOn(hand, 6)
    await expectAsTold(hand, address, 2)
  }, 30_000)
})

test.each([
  ["a unit that waits while its reverted issuance succeeds", "waits"],
  ["a unit that was put off while its reverted issuance succeeds", "was put off"],
])(
  "%s is issued again if that is undone and its lane is halted until then",
  async (_name, unit) => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 8 })
    const [, { signer }] = hand.lanes
    const { id, address } = await activeCollection(hand)
    const reverted = await pairedUnit(hand, id)
    await hand.tick()
    await revertSent(hand)
    await makeOldest(hand, await pairedUnit(hand, id))
    if (unit === "was put off") await putOff(hand, reverted)
    await reorganize(hand, "deployCollection", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
    expect(await issuedOn(hand.chain, address as Address)).toBe(1)
    await hand.tick()

    const [issuance] = await hand.transactionsOf("issueUnit")
    await undoFrom(hand, issuance?.block_number as number)
    await revertAgain(hand)
    const statusOf = (status: "halted" | "open") =>
      hand.turn(({ tx }) => tx.update(lanes).set({ status }).where(eq(lanes.id, signer.lane_id)))
    await statusOf("halted")
    await hand.mine(8)
    await goOn(hand, 3)
    await statusOf("open")
    await grant(hand, signer.address)
    for (let round = 0; round < 10; round++) {
      await makeDue(hand)
      await goOn(hand, 1)
    }
    await expectAsTold(hand, address, 2)
  },
  30_000,
)

/** Mines what was sent and is in no block, after revoking the issuing signer's roles, and gives it them back. */
async function revertSent(hand: ByHand): Promise<void> {
  const [, { signer }] = hand.lanes
  await revertAgain(hand)
  await hand.tick()
  await grant(hand, signer.address)
}

/** Mines what was sent and is in no block after revoking the issuing signer's roles. */
async function revertAgain(hand: ByHand): Promise<void> {
  const [, issuing] = hand.lanes
  await mineAllWithoutRole(hand, issuing, await unmined(hand))
}

/** Replaces blocks by one that has all transactions of the service that were in them. */
async function mineAgainFrom(hand: ByHand, blockNumber: bigint): Promise<void> {
  const { client } = hand.stage.anvil
  await undoFrom(hand, blockNumber)
  for (const { raw } of await unmined(hand)) await client.sendRawTransaction({ serializedTransaction: raw })
  await hand.mine()
}

/** The bytes of the service that are in no block, in the order of their nonces. */
async function unmined({ world, stage }: ByHand): Promise<SentBytes[]> {
  const rows = await world.context.db.read
    .select({ hash: transactionAttempts.hash, raw: transactionAttempts.raw })
    .from(transactionAttempts)
    .innerJoin(transactions, eq(transactions.id, transactionAttempts.transaction_id))
    .orderBy(asc(transactions.nonce))
  const sent = rows as SentBytes[]
  const isMined = await Promise.all(
    sent.map(({ hash }) =>
      stage.anvil.client.getTransactionReceipt({ hash }).then(
        () => true,
        () => false,
      ),
    ),
  )
  return sent.filter((_attempt, index) => !isMined[index])
}

/** A reorganization to a chain on which the issuing signer never lost its roles. */
async function comeBack(hand: ByHand): Promise<void> {
  await reorganize(hand, "deployCollection", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
  await outwaitNewestBlock()
  await goOn(hand, 6)
}

/** Gives the issuance of a unit an id that is lower than all others. */
async function makeOldest({ turn }: ByHand, unitId: string): Promise<void> {
  const id = Bun.randomUUIDv7("hex", Date.now() - 60_000)
  await turn(({ tx }) => tx.update(effects).set({ id }).where(eq(effects.actor_id, unitId)))
}

/** Puts off the issuance of a unit, as after a call that reverted. */
async function putOff({ turn }: ByHand, unitId: string): Promise<void> {
  const due_at = new Date(Date.now() + 5 * 60_000)
  await turn(({ tx }) => tx.update(effects).set({ due_at }).where(eq(effects.actor_id, unitId)))
}

async function makeDue({ turn }: ByHand): Promise<void> {
  await turn(({ tx, at }) => tx.update(effects).set({ due_at: at }).where(eq(effects.status, "open")))
}

/** Expects that the chain has issued as many units, and to each unit's serial its chip. */
async function expectAsTold(hand: ByHand, address: string, count: number): Promise<void> {
  const { read } = hand.world.context.db
  const rows = await read
    .select()
    .from(units)
    .where(inArray(units.token_status, ["active"]))
  expect(rows).toHaveLength(count)
  expect(await issuedOn(hand.chain, address as Address)).toBe(count)
  for (const { id, serial } of rows) {
    const { chip_id } = await chipRowOf(read, id)
    const token = { address: address as Address, abi: collectionAbi, functionName: "chipOf" } as const
    const chip = await hand.stage.anvil.client.readContract({ ...token, args: [BigInt(serial as number)] })
    expect(chip).toBe(numberOf(chip_id))
  }
}
