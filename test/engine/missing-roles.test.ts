import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { lanes } from "../../src/db/schema.ts"
import { findStuck } from "../../src/operator/verbs/stuck.ts"
import {
  type ByHand,
  claimNow,
  goOn,
  grant,
  issuedUnit,
  openForEachTest,
  person,
  preparedClaim,
  replaceChip,
  replacementNow,
} from "../harness/by-hand.ts"

const open = openForEachTest()
/** As bits in the factory. */
const [claim, replace] = [2n, 4n]

test("work for which a key lacks the role neither holds up other work of the key nor shows that as stuck", async () => {
  const hand = await open()
  const [{ signer }] = hand.lanes
  const [one, other] = [await issuedUnit(hand), await issuedUnit(hand)]
  const { id } = await (await preparedClaim(hand, one.unit_id, person.address))()
  const swap = await replaceChip(hand, other.unit_id)
  await grant(hand, signer.address, replace)
  await hand.tick()
  const { read } = hand.world.context.db
  expect((await findStuck(read, new Date())).map(({ id: stuck }) => stuck)).not.toContain(swap.id)
  await goOn(hand, 4)
  expect((await replacementNow(hand, swap.id)).status).toBe("confirmed")
  expect(await statusOf(hand)).toEqual(["open", expect.stringContaining("operator chain roles")])

  await grant(hand, signer.address, claim)
  await goOn(hand, 4)
  expect((await claimNow(hand, id)).status).toBe("claimed")
  expect(await statusOf(hand)).toEqual(["open", null])
})

test("money that a key lacks is reported although it lacks the role for other work, too", async () => {
  const hand = await open()
  const [{ signer }] = hand.lanes
  const [one, other] = [await issuedUnit(hand), await issuedUnit(hand)]
  await (await preparedClaim(hand, one.unit_id, person.address))()
  const swap = await replaceChip(hand, other.unit_id)
  await grant(hand, signer.address, replace)
  const { address } = signer
  const value = await hand.stage.anvil.client.getBalance({ address })
  await hand.stage.anvil.client.setBalance({ address, value: 1n })
  await goOn(hand, 2)
  expect(await statusOf(hand)).toEqual(["paused", expect.stringContaining("send it at least that")])

  await hand.stage.anvil.client.setBalance({ address, value })
  await goOn(hand, 4)
  expect((await replacementNow(hand, swap.id)).status).toBe("confirmed")
  expect(await statusOf(hand)).toEqual(["open", expect.stringContaining("operator chain roles")])
}, 30_000)

async function statusOf({ world, lanes: [{ signer }] }: ByHand): Promise<unknown[]> {
  const [lane] = await world.context.db.read.select().from(lanes).where(eq(lanes.id, signer.lane_id))
  return [lane?.status, lane?.reason]
}
