import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { effects } from "../../src/db/schema.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import {
  activeCollection,
  type ByHand,
  callAsOutsider,
  claimBeside,
  claimNow,
  friend,
  goOn,
  grant,
  issuedUnit,
  leavingOutLogs,
  openForEachTest,
  outsider,
  pairedUnit,
  person,
  preparedClaim,
  tickOf,
  twoIssuedUnits,
  withoutLogs,
} from "../harness/by-hand.ts"

// Providers that return no logs, as under a plan without them.

const open = openForEachTest()
const depths = { confirmation_depth: 1, finality_depth: 6 }

test("a rejected claim delays no other one if no node tells which transaction came first", async () => {
  const hand = await open(depths)
  const [taken, other] = [await issuedUnit(hand), await issuedUnit(hand)]
  const create = await preparedClaim(hand, taken.unit_id, person.address)
  await claimBeside(hand, taken.address, friend.address)
  await create()
  await goOn(hand, 1)
  await hand.mine(10)
  const { id } = await (await preparedClaim(hand, other.unit_id, person.address))()
  await goOnWithoutLogs(hand, 8)
  expect((await claimNow(hand, id)).status).toBe("claimed")
}, 30_000)

test("a claim gets its result although no node tells who came first at another one of its transaction", async () => {
  const hand = await open(depths)
  const { address, one, other } = await twoIssuedUnits(hand)
  const createTaken = await preparedClaim(hand, one, person.address)
  const create = await preparedClaim(hand, other, person.address)
  await grant(hand, outsider.address)
  await createTaken()
  const { id } = await create()
  await callAsOutsider(hand, address, "claim", [1n, friend.address])
  await goOnWithoutLogs(hand, 10)
  expect((await claimNow(hand, id)).status).toBe("claimed")
}, 30_000)

test("rejected claims of a collection are not sent over and over if no node tells who came first", async () => {
  const hand = await open(depths)
  const { id: collection_id, address } = await activeCollection(hand)
  const [one, other] = [await pairedUnit(hand, collection_id), await pairedUnit(hand, collection_id)]
  const free = await pairedUnit(hand, collection_id)
  await hand.settle()
  const createOne = await preparedClaim(hand, one, person.address)
  const createOther = await preparedClaim(hand, other, person.address)
  await grant(hand, outsider.address)
  await callAsOutsider(hand, address, "claim", [1n, friend.address])
  await callAsOutsider(hand, address, "claim", [2n, friend.address])
  await hand.mine()
  await createOne()
  await createOther()
  await goOnWithoutLogs(hand, 8)
  expect(await hand.transactionsOf("relayClaim")).toHaveLength(1)

  await (await preparedClaim(hand, free, person.address))()
  const [{ signer }] = hand.lanes
  for (let round = 0; round < 3; round++) {
    await hand.turn(({ tx, at }) =>
      tx
        .update(effects)
        .set({ due_at: at })
        .where(eq(effects.queue, laneQueue(signer.lane_id))),
    )
    await roundWithoutLogs(hand)()
  }
  expect(await hand.transactionsOf("relayClaim")).toHaveLength(2)
}, 30_000)

test("a claim that was made for its recipient before is not sent over and over if no node tells when", async () => {
  const hand = await open(depths)
  const { unit_id, address } = await issuedUnit(hand)
  const create = await preparedClaim(hand, unit_id, person.address)
  await claimBeside(hand, address, person.address)
  const { id } = await create()
  await goOnWithoutLogs(hand, 12)
  const sent = await hand.transactionsOf("relayClaim")
  expect(sent.map(({ status }) => status)).toEqual(["final"])
  expect((await claimNow(hand, id)).status).toBe("claimed")
}, 30_000)

test("a rejected claim whose node silently keeps no old logs waits, and says that one with all logs is needed", async () => {
  const hand = await open(depths)
  const { unit_id, address } = await issuedUnit(hand)
  const create = await preparedClaim(hand, unit_id, person.address)
  await claimBeside(hand, address, friend.address)
  const { id } = await create()
  const [owning] = hand.lanes
  await goOn({ ...hand, tick: tickOf({ ...owning, chain: leavingOutLogs(hand.chain) }) }, 12)
  expect((await claimNow(hand, id)).status).toBe("claiming")
  const { read } = hand.world.context.db
  const [waiting] = await read.select().from(effects).where(eq(effects.actor_id, id))
  expect(waiting?.last_error).toContain("AlreadyClaimed")
  expect(waiting?.last_error).toEndWith("then add one that has all logs to rpc_urls in CHAINS")
}, 30_000)

/** Rounds of the ownership lane, each followed by a block. */
async function goOnWithoutLogs(hand: ByHand, rounds: number): Promise<void> {
  await goOn({ ...hand, tick: roundWithoutLogs(hand) }, rounds)
}

function roundWithoutLogs(hand: ByHand): () => Promise<void> {
  const [owning] = hand.lanes
  const chain = withoutLogs(hand, "eth_getLogs is not available on your plan")
  return tickOf({ ...owning, chain })
}
