import { afterEach, expect, test } from "bun:test"
import { and, eq, isNotNull } from "drizzle-orm"
import { collections, effects, transactions, units } from "../../src/db/schema.ts"
import type { Lane } from "../../src/engine/lanes/held-lane.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { pairChip } from "../../src/resources/chips/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import { jobs } from "../../workers/jobs/jobs.ts"
import { keyAt, signers } from "../faults/stage.ts"
import {
  activeCollection,
  type ByHand,
  grant,
  openByHand,
  outwaitNewestBlock,
  pairedUnit,
} from "../harness/by-hand.ts"

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

test("a collection moves to the new keys' lane as soon as nothing of it is in flight with the old key", async () => {
  const hand = await openByHand({ confirmation_depth: 2, finality_depth: 6 })
  closers.push(hand.close)
  const { read } = hand.world.context.db
  await giveAllRoles(hand)
  const { id } = await activeCollection(hand)
  const first = await pairedUnit(hand, id)
  await hand.tick()
  const second = await pairedUnit(hand, id)

  const lanes = await exchangedLanes(hand)
  const [issuing] = lanes.filter(({ signer }) => signer.purpose === "issuance")
  expect(issuing?.signer.address).toBe(signers[0])
  const tick = async () => {
    await outwaitNewestBlock()
    for (const lane of lanes) await tickLane(lane)
  }
  await tick()
  await tick()
  const queueOf = async (unitId: string) => {
    const [effect] = await read.select().from(effects).where(eq(effects.actor_id, unitId))
    return effect?.queue
  }
  expect(await queueOf(first)).toBe(laneQueue(`31337:${signers[1]}`))
  expect(await queueOf(second)).toBe(laneQueue(`31337:${signers[0]}`))
  const [collection] = await read.select().from(collections).where(eq(collections.id, id))
  expect(collection?.lane_id).toBe(`31337:${signers[0]}`)
  // The first one may still revert, and take the second one's serial.
  const sent = () => read.select().from(transactions).where(eq(transactions.kind, "issueUnit"))
  expect(await sent()).toHaveLength(1)

  for (let round = 0; round < 8; round++) {
    await hand.mine()
    await tick()
  }
  const rows = await read.select().from(units).where(eq(units.collection_id, id))
  const serials = new Map(rows.map((unit) => [unit.id, unit.serial]))
  expect([serials.get(first), serials.get(second)]).toEqual([1, 2])
  expect((await sent()).map(({ lane_id }) => lane_id)).toEqual([`31337:${signers[1]}`, `31337:${signers[0]}`])
}, 30_000)

test("a unit requested under other keys keeps its place among those requested under the current ones", async () => {
  const hand = await openByHand({ confirmation_depth: 2, finality_depth: 6 })
  closers.push(hand.close)
  const { context } = hand.world
  await giveAllRoles(hand)
  const { id: collection_id } = await activeCollection(hand)
  const older = await hand.turn((t) => createUnit(t, hand.caller, { collection_id }))
  const lanes = await exchangedLanes(hand)
  const newLane = lanes.find(({ signer }) => signer.purpose === "issuance") as Lane
  await context.db.transaction((tx) => tx.update(collections).set({ lane_id: newLane.signer.lane_id }))
  const [first, last] = [
    await hand.turn((t) => createUnit(t, hand.caller, { collection_id })),
    await hand.turn((t) => createUnit(t, hand.caller, { collection_id })),
  ]
  for (const { id: unit_id } of [first, older, last])
    await hand.turn((t) =>
      pairChip(t, context.config.service_secret, hand.caller, { unit_id, is_test: true }),
    )
  const waiting = await context.db.read.select().from(effects).where(eq(effects.src, "issueUnit"))
  expect(new Set(waiting.map(({ queue }) => queue)).size).toBe(2)

  await tickLane(newLane)
  const [sent, ...more] = await hand.transactionsOf("issueUnit")
  const bound = waiting.find(({ actor_id }) => actor_id === first?.id)
  const [issuing] = await context.db.read
    .select()
    .from(effects)
    .where(and(eq(effects.src, "issueUnit"), isNotNull(effects.transaction_id)))
  expect(issuing).toMatchObject({ id: bound?.id, transaction_id: sent?.id })
  expect(more).toEqual([])

  const others = lanes.filter((lane) => lane !== newLane)
  for (let round = 0; round < 8; round++) {
    await outwaitNewestBlock()
    for (const lane of [...others, newLane]) await tickLane(lane)
    await hand.mine()
  }
  const rows = await context.db.read.select().from(units).where(eq(units.collection_id, collection_id))
  const serials = new Map(rows.map((unit) => [unit.id, unit.serial]))
  expect([first, older, last].map(({ id }) => serials.get(id))).toEqual([1, 2, 3])
}, 30_000)

async function giveAllRoles(hand: ByHand): Promise<void> {
  for (const address of signers) await grant(hand, address)
}

/** The lanes of a process that has the same keys in the opposite order. */
async function exchangedLanes(hand: ByHand): Promise<Lane[]> {
  const SIGNER_KEYS = [keyAt(2), keyAt(1)].join(",")
  const world = await openWorld(
    loadConfig({ ...hand.stage.environment, SIGNER_KEYS, LOG_LEVEL: "silent" }),
    tell,
  )
  closers.push(() => world.close())
  const chain = world.chains.get(31_337)
  if (!chain) throw new Error("the chain is configured")
  const claimant = { owner: "by hand", lease_milliseconds: 60_000 }
  return chain.signers.map(
    (signer): Lane => ({
      ...{ context: world.context, chain, signer, claimant, jobs },
      checkpoint() {},
      memory: {},
    }),
  )
}
