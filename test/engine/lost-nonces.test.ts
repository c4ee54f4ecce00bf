import { expect, test } from "bun:test"
import type { Address, Hex } from "viem"
import { transactions } from "../../src/db/schema.ts"
import type { Question } from "../../src/engine/chain/endpoint.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { inLane } from "../../src/engine/lanes/held-lane.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { takeLease } from "../../src/engine/lanes/leases.ts"
import { compareWithChain } from "../../src/engine/lanes/nonces.ts"
import {
  activeCollection,
  type ByHand,
  issuedUnit,
  issuingLane,
  openForEachTest,
  outwaitNewestBlock,
  pairedUnit,
} from "../harness/by-hand.ts"

const open = openForEachTest()

test.each<[where: string, said: string[], voices: number, halts: boolean]>([
  ["if both providers lost it", ["0x0", "0x0"], 2, true],
  ["if the only provider lost it", ["0x0"], 1, true],
  ["but not if one provider has it", ["0x0", "0x9"], 2, false],
  ["but not if one provider is silent", ["0x0"], 2, false],
])("a lane halts for a final transaction that was lost, %s", async (_where, said, voices, halts) => {
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
  if (!halts) expect(notices[0]).toContain("or until the wrong one is removed from CHAINS")
})

test("a lane halts if the chain ends far below a final transaction, and its nodes lack that block", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 3 })
  await issuedUnit(hand)
  await hand.mine(6)
  const [, lane] = hand.lanes
  await tickLane(lane)
  await hand.turn(({ tx }) => tx.update(transactions).set({ block_number: 1_000 }))
  const row = await issuingLane(hand)
  const leased = await inLane(lane, (turn) => takeLease(turn, row.id, lane.claimant, undefined))
  if (!leased) throw new Error("nobody else holds the lane")
  const askAll = async ({ params }: Question) => {
    if ((params as unknown[])[1] !== "latest") throw new ChainUnreachable("header not found")
    return ["0x0"]
  }
  const chain = { ...lane.chain, providers: { ...lane.chain.providers, askAll } }
  const head = await hand.stage.anvil.client.getBlockNumber()
  const held = { ...lane, chain, lease: leased.lease, head, used_nonces: 0 }
  expect((await compareWithChain(held as never, leased.row)).halt).toContain(
    "make sure that its providers are right",
  )
})

test.each([
  ["also when it is queried again", 2n],
  ["and another node behind the same URL responds then", 0n],
])(
  "a lane does not halt for a node that lags by some blocks on a chain where each block is final, %s",
  async (_when, behind) => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 1 })
    const { id } = await activeCollection(hand)
    await pairedUnit(hand, id)
    await hand.tick()
    for (const _block of ["its own", "the one after it"]) {
      await hand.mine()
      await hand.tick()
    }
    expect((await hand.transactionsOf("issueUnit"))[0]?.status).toBe("final")
    await pairedUnit(hand, id)
    const [, lane] = hand.lanes
    await outwaitNewestBlock()
    const round = tickLane({ ...lane, chain: await asAnswered(hand, { first: 2n, next: behind }) })
    await expect(round).rejects.toThrow(ChainUnreachable)
    const { status, reason } = await issuingLane(hand)
    expect([status, reason]).toEqual(["open", null])
    await hand.settle()
  },
)

/**
 * A chain whose nodes lack the newest blocks: so many when a signer's transactions are first counted, and so many
 * later.
 */
async function asAnswered({ chain, stage }: ByHand, lacks: { first: bigint; next: bigint }) {
  const { client } = stage.anvil
  const newest = await client.getBlockNumber()
  const getTransactionCount = (of: { address: Address }) =>
    client.getTransactionCount({ ...of, blockNumber: newest - lacks.first })
  async function askAll(question: Question): Promise<unknown[]> {
    if (question.method !== "eth_getTransactionCount") return await chain.providers.askAll(question)
    const [address, block] = question.params as [Address, Hex | "latest"]
    const blockNumber = block === "latest" ? newest - lacks.next : BigInt(block)
    if (blockNumber > newest - lacks.next) throw new ChainUnreachable("header not found")
    return [await client.getTransactionCount({ address, blockNumber })]
  }
  return {
    ...chain,
    rpc: { ...chain.rpc, getTransactionCount } as unknown as typeof chain.rpc,
    providers: { ...chain.providers, askAll },
  }
}
