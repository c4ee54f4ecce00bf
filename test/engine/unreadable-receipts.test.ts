import { afterEach, expect, test } from "bun:test"
import { inArray } from "drizzle-orm"
import type { Address } from "viem"
import { transactionAttempts, units } from "../../src/db/schema.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import type { Rpc } from "../../src/engine/chain/rpc.ts"
import type { Lane } from "../../src/engine/lanes/held-lane.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { findTransaction } from "../../src/engine/lanes/transactions.ts"
import {
  activeCollection,
  type ByHand,
  grant,
  mineAllWithoutRole,
  openByHand,
  outwaitNewestBlock,
  pairedUnit,
  type SentBytes,
  undoBlocks,
  undoFrom,
} from "../harness/by-hand.ts"

let hand: ByHand
afterEach(() => hand.close())

test("work that reverts behind a transaction with an unreadable receipt is not sent again before that can be read", async () => {
  hand = await openByHand()
  const { first, behind, lost } = await twoOnTheirWay()
  expect(await hand.transactionsOf("issueUnit")).toHaveLength(2)
  await revertAll()

  const blind = withoutReceipt(hand.lanes[1], lost)
  for (let block = 0; block < 20; block++) {
    await tickBlind(blind)
    await hand.mine()
  }
  expect(await hand.transactionsOf("issueUnit")).toHaveLength(2)
  for (let block = 0; block < 20; block++) {
    await hand.tick()
    await hand.mine()
  }
  const rows = await hand.world.context.db.read
    .select()
    .from(units)
    .where(inArray(units.id, [first, behind]))
  expect(rows.map(({ token_status }) => token_status)).toEqual(["active", "active"])
}, 60_000)

test("a serial assigned before an older transaction's receipt could be read stays with its unit if both are undone", async () => {
  hand = await openByHand({ confirmation_depth: 1, finality_depth: 50 })
  const { collection_id, first, behind, lost } = await twoOnTheirWay()
  await hand.mine()
  await tickBlind(withoutReceipt(hand.lanes[1], lost))
  expect(await serialsOf([first, behind])).toEqual([null, 2])

  await undoBlocks(hand)
  await revertAll()
  const next = await pairedUnit(hand, collection_id)
  await hand.settle()
  expect(await serialsOf([first, behind, next])).toEqual([1, 2, 3])
}, 60_000)

test("an issuance that is sent again and undone again does not hold up the one that it builds on", async () => {
  hand = await openByHand({ confirmation_depth: 4, finality_depth: 50 })
  const { address, first, behind, lost } = await twoOnTheirWay()
  await hand.mine(4)
  await tickBlind(withoutReceipt(hand.lanes[1], lost))
  expect(await serialsOf([first, behind])).toEqual([null, 2])

  await undoBlocks(hand, 4)
  await revertAll()
  await goOnUntil(async () => {
    const sent = await hand.transactionsOf("issueUnit")
    return sent.length === 4 && sent.every(({ hash }) => hash !== null)
  })
  expect(await serialsOf([first, behind])).toEqual([null, 2])
  const [, , next] = await hand.transactionsOf("issueUnit")
  await undoFrom(hand, Number(next?.block_number))
  await revertAll()
  await goOnUntil(async () => (await issuedOn(hand.chain, address as Address)) === 2)
  await hand.settle()
  expect(await serialsOf([first, behind])).toEqual([1, 2])
}, 60_000)

/** Two units of one collection, each with a transaction; the first one is the one to be lost. */
async function twoOnTheirWay() {
  const { id: collection_id, address } = await activeCollection(hand)
  const first = await pairedUnit(hand, collection_id)
  await hand.tick()
  const behind = await pairedUnit(hand, collection_id)
  await hand.tick()
  const [lost] = await hand.transactionsOf("issueUnit")
  return { collection_id, address, first, behind, lost: lost?.id ?? "" }
}

async function serialsOf(ids: string[]): Promise<(number | null | undefined)[]> {
  const rows = await hand.world.context.db.read.select().from(units).where(inArray(units.id, ids))
  return ids.map((id) => rows.find((row) => row.id === id)?.serial)
}

async function goOnUntil(isSo: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 20; round++) {
    await hand.tick()
    await hand.mine()
    if (await isSo()) return
  }
  throw new Error("it did not happen within 20 rounds")
}

/** Has the last two transactions mined while the key has no role. */
async function revertAll(): Promise<void> {
  const attempts = await hand.world.context.db.read.select().from(transactionAttempts)
  const [, issuing] = hand.lanes
  await mineAllWithoutRole(hand, issuing, attempts.slice(-2) as SentBytes[])
  await grant(hand, issuing.signer.address, 9n)
}

/** The same lane with a provider that fails for every receipt of one transaction. */
function withoutReceipt(lane: Lane, transactionId: string): Lane {
  const { rpc } = lane.chain
  const request = async (question: { method: string; params?: unknown[] }) => {
    const { attempts } = await findTransaction(hand.world.context.db.read, transactionId)
    const [asked] = question.params ?? []
    if (question.method === "eth_getTransactionReceipt" && attempts.some(({ hash }) => hash === asked))
      throw new Error("the history of this transaction is not available")
    return await rpc.request(question as never)
  }
  return { ...lane, chain: { ...lane.chain, rpc: { ...rpc, request: request as unknown as Rpc["request"] } } }
}

async function tickBlind(lane: Lane): Promise<void> {
  await outwaitNewestBlock()
  await tickLane(lane).catch(() => {})
}
