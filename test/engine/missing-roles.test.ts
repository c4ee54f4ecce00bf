import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { lanes } from "../../src/db/schema.ts"
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

test("work for which a key lacks the role does not hold up other work of the key", async () => {
  const hand = await open()
  const [{ signer }] = hand.lanes
  const [one, other] = [await issuedUnit(hand), await issuedUnit(hand)]
  const { id } = await (await preparedClaim(hand, one.unit_id, person.address))()
  const swap = await replaceChip(hand, other.unit_id)
  await grant(hand, signer.address, replace)
  await goOn(hand, 4)
  expect((await replacementNow(hand, swap.id)).status).toBe("confirmed")
  expect(await statusOf(hand)).toEqual(["paused", expect.stringContaining("operator chain roles")])

  await grant(hand, signer.address, claim)
  await goOn(hand, 4)
  expect((await claimNow(hand, id)).status).toBe("claimed")
  expect(await statusOf(hand)).toEqual(["open", null])
})

async function statusOf({ world, lanes: [{ signer }] }: ByHand): Promise<unknown[]> {
  const [lane] = await world.context.db.read.select().from(lanes).where(eq(lanes.id, signer.lane_id))
  return [lane?.status, lane?.reason]
}
