import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Hex } from "viem"
import { chipReplacements } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import {
  callAsOutsider,
  grant,
  issuedUnit,
  mineWithoutRole,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  replaceChip,
  undoNewestBlock,
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
  const replacement = async () => {
    const { read } = hand.world.context.db
    return (await read.select().from(chipReplacements).where(eq(chipReplacements.id, id)))[0]
  }
  expect((await replacement())?.status).toBe("confirmed")
  const [before, chip] = [Number.parseInt(previous_chip_id, 16), Number.parseInt(chip_id, 16)]
  await undoNewestBlock(hand)
  const [owning] = hand.lanes
  await mineWithoutRole(hand, owning)
  const swap = await callAsOutsider(hand, address, "replaceChip", [1n, before, chip])
  await hand.mine()
  await outwaitNewestBlock()
  await hand.tick()
  expect(await replacement()).toMatchObject({ status: "confirmed", transaction_hash: swap })

  await undoNewestBlock(hand)
  expect(await chipNow()).toBe(before)
  await grant(hand, owning.signer.address)
  for (let round = 0; round < 4; round++) {
    await hand.tick()
    await hand.mine()
  }
  expect(await chipNow()).toBe(chip)
  expect((await replacement())?.status).toBe("confirmed")

  async function chipNow() {
    const call = { address: address as Hex, abi: collectionAbi, functionName: "chipOf", args: [1n] } as const
    return await hand.stage.anvil.client.readContract(call)
  }
}, 30_000)
