import { expect, test } from "bun:test"
import { SignerUnavailable } from "../../src/engine/chain/key-services/key-service-account.ts"
import type { Lane } from "../../src/engine/lanes/held-lane.ts"
import { activeCollection, issuingLane, openForEachTest, pairedUnit, tickOf } from "../harness/by-hand.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

const open = openForEachTest()

test("a key service that does not sign is asked once in a round, holds back no result, and costs one nonce", async () => {
  const hand = await open()
  const { id } = await activeCollection(hand)
  const early = await pairedUnit(hand, id)
  await hand.tick()
  await hand.mine(2)

  const [, issuing] = hand.lanes
  const statusOf = async (unit: string) => (await unitRowOf(hand.world.context.db.read, unit)).token_status
  const { lane, asked } = withoutAnswer(issuing)
  const late = [await pairedUnit(hand, id), await pairedUnit(hand, id)]
  for (let round = 1; round <= 3; round++) {
    await tickOf(lane)().catch(() => {})
    expect(asked).toHaveLength(round)
    expect((await issuingLane(hand)).reason).toContain("the key service did not sign")
    await hand.mine()
    late.push(await pairedUnit(hand, id))
  }
  expect(await statusOf(early)).toBe("active")
  expect(
    (await hand.transactionsOf("issueUnit")).filter(({ status }) => status === "allocated"),
  ).toHaveLength(1)

  await hand.settle()
  for (const unit of late) expect(await statusOf(unit)).toBe("active")
  expect((await issuingLane(hand)).reason).toBeNull()
})

function withoutAnswer(lane: Lane) {
  const asked: object[] = []
  const signTransaction = async (transaction: object) => {
    asked.push(transaction)
    throw new SignerUnavailable("the key service did not sign: it has not answered for 20 s")
  }
  const account = { ...lane.signer.account, signTransaction } as Lane["signer"]["account"]
  return { lane: { ...lane, signer: { ...lane.signer, account } }, asked }
}
