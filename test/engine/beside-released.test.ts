import { expect, test } from "bun:test"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { accountAt } from "../faults/stage.ts"
import {
  claimNow,
  goOn,
  issuedUnit,
  numberOf,
  openForEachTest,
  outwaitNewestBlock,
  preparedClaim,
  readToken,
  reorganize,
  replaceChip,
  replacementNow,
  undoBlocks,
} from "../harness/by-hand.ts"

// Transactions that still contain work that they did not achieve, and that has moved on.

const open = openForEachTest()
const person = accountAt(6)

test("a claim waits for the replacement of its chip also if its earlier transaction is sent again for another claim", async () => {
  const hand = await open({ confirmation_depth: 2, finality_depth: 40 })
  const [owning, issuing] = hand.lanes
  const other = await issuedUnit(hand)
  const { unit_id, address } = await issuedUnit(hand)
  const swap = await replaceChip(hand, unit_id)
  await hand.settle()
  const createOther = await preparedClaim(hand, other.unit_id, person.address)
  const create = await preparedClaim(hand, unit_id, person.address)
  const { id: otherId } = await createOther()
  const { id } = await create()
  await hand.tick()
  await hand.mine()
  await hand.tick()
  const sent = await hand.transactionsOf("relayClaim")
  expect(sent.map(({ to, status }) => [to, status])).toEqual([
    [hand.chain.config.desk_address as string, "mined"],
  ])

  const only = (lane: typeof owning) => ({
    ...hand,
    async tick() {
      await outwaitNewestBlock()
      await tickLane(lane)
    },
  })
  // The unit and its collection are late.
  await reorganize(hand, "deployCollection", ({ kind, nonce }) => {
    if (kind === "replaceChip") return 2
    if (kind === "relayClaim") return 3
    return nonce < 2 ? nonce : null
  })
  await goOn(only(owning), 4)
  expect((await claimNow(hand, otherId)).status).toBe("claimed")

  const [first] = await hand.transactionsOf("relayClaim")
  const { number } = await hand.stage.anvil.client.getBlock()
  await undoBlocks(hand, Number(number) - Number(first?.block_number) + 1)
  await goOn(only(issuing), 6)
  await goOn(hand, 14)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(swap.chip_id))
  expect((await replacementNow(hand, swap.id)).status).toBe("confirmed")
  expect((await claimNow(hand, id)).status).toBe("claimed")
  expect(await readToken(hand, other.address, "ownerOf")).toBe(person.address)
}, 60_000)
