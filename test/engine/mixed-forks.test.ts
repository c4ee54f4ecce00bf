import { expect, test } from "bun:test"
import { type Address, encodeFunctionResult, zeroAddress } from "viem"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import {
  type ByHand,
  claimNow,
  goOn,
  issuedUnit,
  meetNoContract,
  numberOf,
  openForEachTest,
  person,
  preparedClaim,
  putBeforeDeployment,
  readToken,
  relayedClaim,
  reorganize,
  replacedChip,
  replacementNow,
  tickOf,
  withoutLogs,
} from "../harness/by-hand.ts"

// Nodes behind one URL, of which one still follows a fork that is gone and answers what is read by a block's number.

const open = openForEachTest()
const depths = { confirmation_depth: 1, finality_depth: 30 }

test("an issuance without effect is repeated even if a node on the previous fork says that it has one", async () => {
  const hand = await open(depths)
  const { address } = await issuedUnit(hand)
  const before = await onThisFork(hand, address)
  await meetNoContract(hand)
  await roundOn(hand, before)
  await goOn(hand, 10)
  expect(await issuedOn(hand.chain, address as Address)).toBe(1)
}, 30_000)

test("a claim that reverted is repeated even if a node on the previous fork says that it was made", async () => {
  const hand = await open(depths)
  const { address, id } = await relayedClaim(hand)
  const before = await onThisFork(hand, address)
  await mineBeforeIssuance(hand)
  await roundOn(hand, before)
  await goOn(hand, 6)
  expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
  expect((await claimNow(hand, id)).status).toBe("claimed")
}, 30_000)

test("a chip replacement that reverted is repeated even if a node on the previous fork says that it was made", async () => {
  const hand = await open(depths)
  const { address, id, chip_id } = await replacedChip(hand)
  const before = await onThisFork(hand, address)
  await mineBeforeIssuance(hand)
  await roundOn(hand, before)
  await goOn(hand, 6)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
}, 30_000)

test("a claim without effect is repeated even if only the owner that a node on the previous fork names tells that it was made", async () => {
  const hand = await open({ ...depths, confirmation_depth: 2 })
  const { unit_id, address } = await issuedUnit(hand)
  const { id } = await (await preparedClaim(hand, unit_id, person.address))()
  await hand.tick()
  await hand.mine()
  const before = await onThisFork(hand, address)
  await putBeforeDeployment(hand, "relayClaim")
  await roundOn(hand, withoutLogs({ ...hand, chain: before }, "pruned"))
  expect((await claimNow(hand, id)).status).toBe("claimed")
  await goOn(hand, 10)
  expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
}, 30_000)

test("a chip replacement without effect is repeated even if only the chip that a node on the previous fork names tells that it was made", async () => {
  const hand = await open(depths)
  const { address, chip_id } = await replacedChip(hand)
  const before = await onThisFork(hand, address)
  await putBeforeDeployment(hand, "replaceChip")
  await roundOn(hand, withoutLogs({ ...hand, chain: before }, "pruned"))
  await goOn(hand, 10)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
}, 30_000)

/** A reorganization after which everything else is mined in the block before the unit's issuance. */
async function mineBeforeIssuance(hand: ByHand): Promise<void> {
  await reorganize(hand, "issueUnit", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
}

/** The chain as seen from now on through nodes of which one, which has the present fork, answers for state and logs. */
async function onThisFork({ stage, chain }: ByHand, address: string): Promise<ConnectedChain> {
  const contract = { address: address as Address, abi: collectionAbi } as const
  const { client } = stage.anvil
  const issued = await client.readContract({ ...contract, functionName: "issued" })
  const chipOf = await client.readContract({ ...contract, functionName: "chipOf", args: [1n] })
  const ownerOf = await client.readContract({ ...contract, functionName: "ownerOf", args: [1n] })
  const logs = await client.getContractEvents({ ...contract, fromBlock: 0n })
  const rpc = {
    ...chain.rpc,
    call: async () => ({
      data: encodeFunctionResult({ abi: collectionAbi, functionName: "issued", result: issued }),
    }),
    readContract: async ({ functionName }: { functionName: "chipOf" | "ownerOf" }) =>
      ({ chipOf, ownerOf })[functionName],
    getContractEvents: async ({ eventName }: { eventName: string }) =>
      logs.filter((log) => log.eventName === eventName && !isIssuance(log)),
  }
  return { ...chain, rpc: rpc as never }
}

function isIssuance({ args }: { args: object }): boolean {
  return "from" in args && args.from === zeroAddress
}

/** One round of every lane. */
async function roundOn({ lanes: [owning, issuing] }: ByHand, chain: ConnectedChain): Promise<void> {
  await tickOf({ ...owning, chain }, { ...issuing, chain })()
}
