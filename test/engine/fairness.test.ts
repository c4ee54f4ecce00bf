import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { collections, effects, units } from "../../src/db/schema.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import {
  activeCollection,
  type ByHand,
  issuedUnit,
  newCollection,
  openByHand,
  outwaitNewestBlock,
  pairedUnit,
} from "../harness/by-hand.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

// Fairness, measured in blocks with one round of each lane per block; bench/turns.ts measures larger numbers.

test("another organization's deployments do not delay an issuance by a single block", async () => {
  const hand = await openByHand({ confirmation_depth: 2, finality_depth: 6, block_time_seconds: 2 })
  try {
    const { id } = await newCollection(hand)
    await blocksUntil(hand, () => isActive(hand, id))
    const quiet = await blocksOfIssuance(hand, id)
    const other = await hand.newCaller()
    for (let each = 0; each < 40; each++) await newCollection(hand, other)
    // The other organization's first transactions are in flight.
    await hand.tick()
    const loaded = [await blocksOfIssuance(hand, id), await blocksOfIssuance(hand, id)]
    expect(loaded).toEqual([quiet, quiet])
    const { read } = hand.world.context.db
    const rows = await read
      .select()
      .from(collections)
      .where(eq(collections.organization_id, other.organization_id))
    expect(rows.some(({ status }) => status === "deploying")).toBe(true)
  } finally {
    await hand.close()
  }
}, 60_000)

test("a collection whose lost serials no provider can tell does not delay the issuance of another one", async () => {
  const hand = await openByHand({ confirmation_depth: 1, finality_depth: 8 })
  try {
    const { id } = await activeCollection(hand)
    const { unit_id } = await issuedUnit(hand)
    const { read } = hand.world.context.db
    const collection_id = (await unitRowOf(read, unit_id)).collection_id as string
    // As if a back-up older than the issuance had been restored.
    await hand.turn(async ({ tx }) => {
      await tx.update(units).set({ token_status: "pending", serial: null }).where(eq(units.id, unit_id))
      await tx.update(collections).set({ next_serial: 1 }).where(eq(collections.id, collection_id))
    })
    const own = await pairedUnit(hand, id)
    await pairedUnit(hand, collection_id)
    const getContractEvents = async () => {
      throw new Error("this range is refused")
    }
    const chain = { ...hand.chain, rpc: { ...hand.chain.rpc, getContractEvents } as never }
    await outwaitNewestBlock()
    await tickLane({ ...hand.lanes[1], chain, memory: {} })
    const [effect] = await read.select().from(effects).where(eq(effects.actor_id, own))
    expect(effect?.transaction_id).not.toBeNull()
  } finally {
    await hand.close()
  }
}, 60_000)

async function blocksOfIssuance(hand: ByHand, collection_id: string): Promise<number> {
  const unit_id = await pairedUnit(hand, collection_id)
  return await blocksUntil(hand, async () => {
    const unit = await unitRowOf(hand.world.context.db.read, unit_id)
    return unit.token_status === "active"
  })
}

async function isActive({ world }: ByHand, id: string): Promise<boolean> {
  const [row] = await world.context.db.read.select().from(collections).where(eq(collections.id, id))
  return row?.status === "active"
}

async function blocksUntil(hand: ByHand, isSo: () => Promise<boolean>): Promise<number> {
  for (let blocks = 0; blocks < 20; blocks++) {
    await hand.tick()
    if (await isSo()) return blocks
    await hand.mine()
    // The newest block is cached for a quarter of a second.
    await Bun.sleep(250)
  }
  throw new Error("it did not happen within 20 blocks")
}
