import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { getAddress } from "viem"
import { effects, lanes } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { relayClaims } from "../../workers/jobs/relay-claims.ts"
import { accountAt } from "../faults/stage.ts"
import {
  callAsOutsider,
  claimNow,
  goOn,
  grant,
  issuedUnit,
  leavingOutLogs,
  mineWithoutRole,
  numberOf,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  preparedClaim,
  putBeforeDeployment,
  readToken,
  replaceChip,
  replacementNow,
  tickOf,
  undoBlocks,
  undoFrom,
  withoutLogs,
  withoutReceipts,
} from "../harness/by-hand.ts"

// A result that, after a reorganization, another sender's transaction or one lost in a restore has achieved.

const open = openForEachTest()
const pruned = "history has been pruned for this block"
const recipient = accountAt(6).address

test("a chip replacement that another transaction achieved meanwhile is repeated if that transaction is undone, too", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  await grant(hand, outsider.address)
  const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
  await hand.tick()
  await hand.mine()
  await outwaitNewestBlock()
  await hand.tick()
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
  const [before, chip] = [numberOf(previous_chip_id), numberOf(chip_id)]
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
  await goOn(hand, 4)
  expect(await readToken(hand, address, "chipOf")).toBe(chip)
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
}, 30_000)

test("a chip replacement whose chip is already bound is confirmed even if no node has the logs of the other transaction", async () => {
  const { hand, id } = await replacedByAnother()
  const chain = withoutLogs(hand, pruned)
  for (let round = 0; round < 3; round++) {
    for (const lane of hand.lanes) await tickLane({ ...lane, chain })
    await hand.mine()
    await outwaitNewestBlock()
  }
  const [own] = await hand.transactionsOf("replaceChip")
  expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: own?.hash })
}, 30_000)

test("a chip replacement mined before the deployment and then achieved by another transaction is repeated even if no node has the logs of that", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
  const [before, chip] = [numberOf(previous_chip_id), numberOf(chip_id)]
  await hand.tick()
  await putBeforeDeployment(hand, "replaceChip")
  // Its own block is final, the other one's is not.
  await hand.mine(30)
  await grant(hand, outsider.address)
  await callAsOutsider(hand, address, "replaceChip", [1n, before, chip])
  await hand.mine()
  await outwaitNewestBlock()
  const [owning] = hand.lanes
  await tickLane({ ...owning, chain: withoutLogs(hand, pruned) })
  await undoBlocks(hand)
  await goOn(hand, 10)
  expect(await readToken(hand, address, "chipOf")).toBe(chip)
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
}, 30_000)

test("a chip replacement whose chip is already bound names the transaction that bound it", async () => {
  const { hand, id, swap } = await replacedByAnother()
  await hand.settle()
  expect((await hand.transactionsOf("replaceChip")).map(({ status }) => status)).toEqual(["confirmed"])
  expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: swap })
}, 30_000)

test("a claim mined before the deployment and then achieved by another transaction is repeated if that one is undone", async () => {
  const scene = await claimedByAnother()
  await tickLane(scene.lane)
  expect(await scene.claimNow()).toMatchObject({ status: "claimed", transaction_hash: scene.other })
  await undoOther(scene)
  expect(await scene.ownerNow()).toBe(recipient)
}, 30_000)

test("a claim that another transaction achieved does not fail while a node that is behind leaves out that one's logs", async () => {
  const { lane, ...scene } = await claimedByAnother()
  await tickLane({ ...lane, chain: leavingOutLogs(lane.chain) })
  expect(await scene.claimNow()).toMatchObject({ status: "claimed" })
}, 30_000)

test("who claimed a unit first is not told by a node that is behind and leaves out that transaction's logs", async () => {
  const { hand, lane, other, effectNow } = await claimedByAnother()
  const { read } = hand.world.context.db
  const earlier = async (chain: ConnectedChain) => await relayClaims.earlier?.(chain, read, await effectNow())
  await expect(earlier(leavingOutLogs(lane.chain))).rejects.toThrow("a provider of chain 31337 is behind")
  expect(await earlier(lane.chain)).toMatchObject({ output: { transaction_hash: other } })
}, 30_000)

test("a lane continues if another transaction achieved its claim and no node has the receipt of its own transaction any more", async () => {
  const { hand, lane } = await claimedByAnother()
  await tickLane(lane)
  await hand.mine(80)
  await outwaitNewestBlock()
  const { chain } = lane
  const head = await hand.stage.anvil.client.getBlockNumber({ cacheTime: 0 })
  const getTransactionCount: typeof chain.rpc.getTransactionCount = async (asked) => {
    if (asked.blockNumber !== undefined && asked.blockNumber < head - 20n)
      throw new Error("missing trie node")
    return await chain.rpc.getTransactionCount(asked)
  }
  const unreceipted = withoutReceipts(hand)
  const rpc = { ...unreceipted.rpc, getTransactionCount } as typeof chain.rpc
  const forgetful = { ...unreceipted, rpc }
  for (let round = 0; round < 3; round++) {
    await tickLane({ ...lane, chain: forgetful, memory: {} })
    await hand.mine()
    await outwaitNewestBlock()
  }
  const { read } = hand.world.context.db
  const [row] = await read.select().from(lanes).where(eq(lanes.id, lane.signer.lane_id))
  expect(row).toMatchObject({ status: "open", reason: null })
  expect((await hand.transactionsOf("relayClaim"))[0]?.status).toBe("final")
}, 30_000)

/** A relayed claim mined before the deployment, because of a reorganization, and then made by another sender. */
async function claimedByAnother() {
  const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
  const { client } = hand.stage.anvil
  const [lane, issuing] = hand.lanes
  await grant(hand, outsider.address)
  const before = await client.getBlock()
  const { unit_id, address } = await issuedUnit(hand)
  const { id } = await (await preparedClaim(hand, unit_id, recipient))()
  await tickOf(lane)()
  await undoFrom(hand, before.number + 1n)
  await hand.mine()
  const isIssued = () => readToken(hand, address, "chipOf").catch(() => null)
  while ((await isIssued()) === null) {
    await outwaitNewestBlock()
    await tickLane(issuing)
    await hand.mine()
  }
  const other = await callAsOutsider(hand, address, "claim", [1n, recipient])
  await hand.mine()
  await outwaitNewestBlock()
  const ownerNow = () => readToken(hand, address, "ownerOf")
  const effectNow = async () => {
    const rows = await hand.world.context.db.read.select().from(effects).where(eq(effects.actor_id, id))
    return rows[0] as Effect<"relayClaim">
  }
  return { hand, lane, address, other, ownerNow, effectNow, claimNow: () => claimNow(hand, id) }
}

/** Undoes the other transaction with a reorganization, and runs some rounds. */
async function undoOther({ hand, address, ownerNow }: Awaited<ReturnType<typeof claimedByAnother>>) {
  await undoBlocks(hand)
  expect(await ownerNow()).toBe(getAddress(address))
  await goOn(hand, 6)
}

/** A chip replacement that another sender made before the lane did, and that transaction's hash. */
async function replacedByAnother() {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  await grant(hand, outsider.address)
  const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
  const [before, chip] = [numberOf(previous_chip_id), numberOf(chip_id)]
  const swap = await callAsOutsider(hand, address, "replaceChip", [1n, before, chip])
  await hand.mine()
  await outwaitNewestBlock()
  return { hand, id, swap }
}
