import { expect, test } from "bun:test"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import {
  callAsOutsider,
  grant,
  issuedUnit,
  mineWithoutRole,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  readToken,
  replaceChip,
  replacementNow,
  undoBlocks,
} from "../harness/by-hand.ts"

// What was done, and after a reorganization only by somebody else, or by what a restored back-up has forgotten.

const open = openForEachTest()

test("a chip replacement that another transaction has made meanwhile is made again where that one is undone, too", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  await grant(hand, outsider.address)
  const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
  await hand.tick()
  await hand.mine()
  await outwaitNewestBlock()
  await hand.tick()
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
  const [before, chip] = [Number.parseInt(previous_chip_id, 16), Number.parseInt(chip_id, 16)]
  await undoBlocks(hand)
  const [owning] = hand.lanes
  await mineWithoutRole(hand, owning)
  const swap = await callAsOutsider(hand, address, "replaceChip", [1n, before, chip])
  await hand.mine()
  await outwaitNewestBlock()
  await hand.tick()
  expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: swap })

  await undoBlocks(hand)
  expect(await readToken(hand, address, "chipOf")).toBe(before)
  await grant(hand, owning.signer.address)
  for (let round = 0; round < 4; round++) {
    await hand.tick()
    await hand.mine()
  }
  expect(await readToken(hand, address, "chipOf")).toBe(chip)
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
}, 30_000)

test("a chip replacement that finds its chip bound already is done also where nobody has the logs of that", async () => {
  const { hand, id } = await replacedByAnother()
  const { rpc } = hand.chain
  const getContractEvents = () => Promise.reject(new Error("history has been pruned for this block"))
  const chain = { ...hand.chain, rpc: { ...rpc, getContractEvents } as typeof rpc }
  for (let round = 0; round < 3; round++) {
    for (const lane of hand.lanes) await tickLane({ ...lane, chain })
    await hand.mine()
    await outwaitNewestBlock()
  }
  const [own] = await hand.transactionsOf("replaceChip")
  expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: own?.hash })
}, 30_000)

test("a chip replacement that finds its chip bound already names the transaction that bound it", async () => {
  const { hand, id, swap } = await replacedByAnother()
  await hand.settle()
  expect((await hand.transactionsOf("replaceChip")).map(({ status }) => status)).toEqual(["confirmed"])
  expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: swap })
}, 30_000)

/** A chip replacement that somebody else has made before its lane did, and the transaction of that. */
async function replacedByAnother() {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  await grant(hand, outsider.address)
  const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
  const [before, chip] = [Number.parseInt(previous_chip_id, 16), Number.parseInt(chip_id, 16)]
  const swap = await callAsOutsider(hand, address, "replaceChip", [1n, before, chip])
  await hand.mine()
  await outwaitNewestBlock()
  return { hand, id, swap }
}
