import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { actors, effects } from "../../src/db/schema.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { PairChipBody } from "../../src/resources/chips/model.ts"
import { pairChip, pairChipsInBulk } from "../../src/resources/chips/service.ts"
import {
  activeCollection,
  type ByHand,
  goOn,
  grant,
  meetNoContract,
  mineWithoutRole,
  newUnit,
  openForEachTest,
} from "../harness/by-hand.ts"
import { importedChip, refusal } from "../harness/services.ts"

const open = openForEachTest()

describe("a bulk request makes way for the collection's next one once the chain has rejected its units", () => {
  test("before they were sent, for a chip of older stock with ID zero", async () => {
    const hand = await open()
    const { id } = await activeCollection(hand)
    const unit_id = await newUnit(hand, id)
    const secret = hand.world.context.config.service_secret
    const { chip_id, tag } = await importedChip({ secret, turn: hand.turn }, hand.caller, 0, "0000000000")
    await bulk(hand, [{ unit_id, chip_id, ...emitSun(tag, 1) }])
    expect(await refusal(nextBulk(hand, id))).toBe("chip.bulk_pending")
    // Postponed by one more block each time.
    for (let round = 0; round < 5; round++) {
      await goOn(hand, 1)
      await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }))
    }
    expect(await stateOf(hand, unit_id)).toBe("pending.stopped")
    expect(await nextBulk(hand, id)).toHaveLength(1)
  })

  test("in a block, however often it is retried", async () => {
    const hand = await open()
    const [, issuing] = hand.lanes
    const { id } = await activeCollection(hand)
    const unit_id = await newUnit(hand, id)
    await bulk(hand, [{ unit_id, is_test: true }])
    await hand.tick()
    await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 10 }).where(eq(effects.actor_id, unit_id)))
    await mineWithoutRole(hand, issuing)
    await goOn(hand, 8)
    expect(await stateOf(hand, unit_id)).toBe("pending.stopped")
    await grant(hand, issuing.signer.address)
    expect(await nextBulk(hand, id)).toHaveLength(1)
  })
})

test("a chip with ID zero does not block others that can be issued with it", async () => {
  const hand = await open()
  const { id } = await activeCollection(hand)
  const [refused, other] = [await newUnit(hand, id), await newUnit(hand, id)]
  const secret = hand.world.context.config.service_secret
  const { chip_id, tag } = await importedChip({ secret, turn: hand.turn }, hand.caller, 0, "0000000000")
  await bulk(hand, [
    { unit_id: other, is_test: true },
    { unit_id: refused, chip_id, ...emitSun(tag, 1) },
  ])
  for (let round = 0; round < 10; round++) {
    await goOn(hand, 1)
    await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }))
  }
  expect([await stateOf(hand, refused), await stateOf(hand, other)]).toEqual([
    "pending.stopped",
    "active.unclaimed",
  ])
  expect(await nextBulk(hand, id)).toHaveLength(1)
})

test("a chip with ID zero does not block others if its transaction reverts in a block", async () => {
  const hand = await open()
  const { id } = await activeCollection(hand)
  const before = await newUnit(hand, id)
  await bulk(hand, [{ unit_id: before, is_test: true }])
  await hand.tick()
  const [refused, other] = [await newUnit(hand, id), await newUnit(hand, id)]
  const secret = hand.world.context.config.service_secret
  const { chip_id, tag } = await importedChip({ secret, turn: hand.turn }, hand.caller, 0, "0000000000")
  await hand.turn((t) => pairChip(t, secret, hand.caller, { unit_id: refused, chip_id, ...emitSun(tag, 1) }))
  await hand.turn((t) => pairChip(t, secret, hand.caller, { unit_id: other, is_test: true }))
  // The outcome of the first is unknown, so nothing behind it is simulated before it is sent.
  await hand.tick()
  for (let round = 0; round < 14; round++) {
    await goOn(hand, 1)
    await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }))
  }
  expect([await stateOf(hand, refused), await stateOf(hand, other)]).toEqual([
    "pending.stopped",
    "active.unclaimed",
  ])
})

test("a unit that was retried often does not let others fail that met no contract with it", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
  const { id } = await activeCollection(hand)
  const [often, other] = [await newUnit(hand, id), await newUnit(hand, id)]
  await bulk(hand, [
    { unit_id: often, is_test: true },
    { unit_id: other, is_test: true },
  ])
  await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 5 }).where(eq(effects.actor_id, often)))
  await hand.tick()
  await meetNoContract(hand)
  await goOn(hand, 10)
  expect(await stateOf(hand, other)).toBe("active.unclaimed")
  expect(await stateOf(hand, often)).toBe("active.unclaimed")
})

async function nextBulk(hand: ByHand, collection_id: string) {
  return await bulk(hand, [{ unit_id: await newUnit(hand, collection_id), is_test: true }])
}

async function bulk({ world, turn, caller }: ByHand, entries: PairChipBody[]) {
  const secret = world.context.config.service_secret
  return await turn((t) => pairChipsInBulk(t, secret, caller, { chips: entries }))
}

async function stateOf({ world }: ByHand, unit_id: string): Promise<string | undefined> {
  const [actor] = await world.context.db.read.select().from(actors).where(eq(actors.id, unit_id))
  return actor?.state
}
