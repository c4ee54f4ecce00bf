import { expect, test } from "bun:test"
import { inLane } from "../../src/engine/lanes/held-lane.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { takeLease } from "../../src/engine/lanes/leases.ts"
import { compareWithChain } from "../../src/engine/lanes/nonces.ts"
import { issuedUnit, issuingLane, openForEachTest } from "../harness/by-hand.ts"

const open = openForEachTest()

test.each<[where: string, said: string[], voices: number, halts: boolean]>([
  ["where both providers have lost it", ["0x0", "0x0"], 2, true],
  ["where the only provider has", ["0x0"], 1, true],
  ["but not where one has it", ["0x0", "0x9"], 2, false],
  ["but not where one is silent", ["0x0"], 2, false],
])("a lane halts for what was final and is lost, %s", async (_where, said, voices, halts) => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 3 })
  await issuedUnit(hand)
  await hand.mine(6)
  const [, lane] = hand.lanes
  await tickLane(lane)
  const row = await issuingLane(hand)
  const leased = await inLane(lane, (turn) => takeLease(turn, row.id, lane.claimant, undefined))
  if (!leased) throw new Error("nobody else holds the lane")
  const providers = { ...lane.chain.providers, askAll: async () => said, voices: () => voices }
  const head = await hand.stage.anvil.client.getBlockNumber()
  const held = {
    ...lane,
    ...{ lease: leased.lease, head, used_nonces: 0 },
    chain: { ...lane.chain, providers },
  }
  const { halt, failure, notices } = await compareWithChain(held as never, leased.row)
  expect(halt !== null).toBe(halts)
  expect(failure !== null).toBe(!halts)
  if (!halts) expect(notices[0]).toContain("or the wrong one is removed from CHAINS")
})
