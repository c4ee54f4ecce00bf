import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { foundry } from "viem/chains"
import { chainCursors } from "../../src/db/chain-schema.ts"
import { events } from "../../src/db/event-schema.ts"
import { readCursor } from "../../workers/watches/chain-cursor.ts"
import { watchAuthorizations } from "../../workers/watches/watch-authorizations.ts"
import { accountAt } from "../faults/stage.ts"
import {
  type ByHand,
  claimBeside,
  issuedUnit,
  openForEachTest,
  outwaitNewestBlock,
} from "../harness/by-hand.ts"
import { until } from "../harness/engine.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

// A provider that synchronizes, or was set up from an older snapshot, can lag by any number of blocks.

const open = openForEachTest()
const depths = { confirmation_depth: 1, finality_depth: 4 }
const owner = accountAt(6).address

test.each([1, 2])(
  "owners do not change while the first of %d providers lags back to before the claim",
  async (providers) => {
    const { hand, unit_id, told } = await claimedLongAgo(providers)
    const [behind] = hand.stage.proxies
    if (behind) behind.faults.lag_blocks = 45
    for (let round = 0; round < 3; round++) await watch(hand)
    expect(await unitRowOf(hand.world.context.db.read, unit_id)).toMatchObject({ owner, claimed: true })
    expect(await told()).toBe(1)
  },
  30_000,
)

test("owners do not change while a provider lags far behind and blocks above it still have to be read again", async () => {
  const { hand, unit_id, told } = await claimedLongAgo(1)
  const { db } = hand.world.context
  const { client } = hand.stage.anvil
  const newest = await client.getBlock()
  const before = await client.getBlock({ blockNumber: newest.number - 44n })
  await db.transaction((tx) =>
    tx.update(chainCursors).set({
      ...{ owners_block_number: Number(before.number), owners_block_hash: before.hash },
      ...{ asked_block_number: Number(newest.number), asked_block_hash: newest.hash },
    }),
  )
  const [behind] = hand.stage.proxies
  if (behind) behind.faults.lag_blocks = 43
  for (let round = 0; round < 3; round++) await watch(hand)
  expect(await unitRowOf(db.read, unit_id)).toMatchObject({ owner, claimed: true })
  if (behind) behind.faults.lag_blocks = 0
  await hand.mine(8)
  for (let round = 0; round < 3; round++) await watch(hand)
  expect(await unitRowOf(db.read, unit_id)).toMatchObject({ owner, claimed: true })
  expect(await told()).toBe(1)
}, 30_000)

test("another provider is queried if the first one lags far behind, even if no work waits for the chain", async () => {
  const { hand } = await claimedLongAgo(2)
  const [behind] = hand.stage.proxies
  if (behind) behind.faults.lag_blocks = 45
  await hand.mine(3)
  const { number } = await hand.stage.anvil.client.getBlock()
  const readTo = async () => (await readCursor(hand.world.context.db.read, foundry.id))?.block_number
  await until(async () => {
    await watch(hand)
    return (await readTo()) === Number(number)
  }, 15_000)
}, 30_000)

test("a provider that lags by one block, as is usual with fast blocks, does not cause all providers to be queried each round", async () => {
  const { hand } = await claimedLongAgo(2)
  const [behind] = hand.stage.proxies
  if (behind) behind.faults.lag_blocks = 1
  let ranked = 0
  const count = async () => {
    ranked += 1
  }
  const { chain } = hand
  const providers = { ...chain.providers, rank: count }
  for (let round = 0; round < 3; round++) await watch({ ...hand, chain: { ...chain, providers } })
  expect(ranked).toBe(0)
}, 30_000)

test("a chain that ends far below with different blocks is read again", async () => {
  const { hand, unit_id } = await claimedLongAgo(1)
  const request = hand.stage.anvil.client.request as (call: object) => Promise<unknown>
  await request({ method: "anvil_rollback", params: [45] })
  await hand.mine(20)
  await watch(hand)
  expect(await unitRowOf(hand.world.context.db.read, unit_id)).toMatchObject({ owner: null, claimed: false })
}, 30_000)

/** A unit claimed outside the service forty blocks ago, and how often its owner was reported. */
async function claimedLongAgo(providers: number) {
  const hand = await open(depths, providers)
  const { unit_id, address } = await issuedUnit(hand)
  await watch(hand)
  await hand.mine(10)
  await claimBeside(hand, address, owner)
  // Read step by step as the chain grows.
  for (let blocks = 0; blocks < 40; blocks += 5) {
    await hand.mine(5)
    await watch(hand)
  }
  const { read } = hand.world.context.db
  const told = async () => {
    const isOfOwner = and(eq(events.unit_id, unit_id), eq(events.type, "ownership.changed"))
    return (await read.select().from(events).where(isOfOwner)).length
  }
  return { hand, unit_id, told }
}

/** A round of the watch that requests the newest block even if nothing is open; no provider lags ten blocks of these. */
async function watch({ world, chain }: ByHand): Promise<void> {
  await outwaitNewestBlock()
  const headers = { ...chain.headers, followIdly: chain.headers.follow }
  const config = { ...chain.config, block_time_seconds: 1 }
  await watchAuthorizations(world.context, { ...chain, headers, config }, () => {})
}
