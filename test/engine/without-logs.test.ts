import { expect, test } from "bun:test"
import {
  type ByHand,
  callAsOutsider,
  claimBeside,
  claimNow,
  friend,
  goOn,
  grant,
  issuedUnit,
  openForEachTest,
  outsider,
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

/** Rounds of the ownership lane, each followed by a block. */
async function goOnWithoutLogs(hand: ByHand, rounds: number): Promise<void> {
  const [owning] = hand.lanes
  const chain = withoutLogs(hand, "eth_getLogs is not available on your plan")
  await goOn({ ...hand, tick: tickOf({ ...owning, chain }) }, rounds)
}
