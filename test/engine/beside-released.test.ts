import { expect, test } from "bun:test"
import { asc, desc, eq } from "drizzle-orm"
import type { Hex } from "viem"
import { chips, effects, transactionAttempts } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import {
  activeCollection,
  type ByHand,
  callAsOutsider,
  claimNow,
  friend,
  goOn,
  grant,
  issuedUnit,
  mineWithoutRole,
  numberOf,
  openForEachTest,
  outsider,
  overhear,
  pairedUnit,
  person,
  preparedClaim,
  readToken,
  reorganize,
  replaceChip,
  replacementNow,
  tickOf,
  twoIssuedUnits,
  undoBlocks,
  undoFrom,
} from "../harness/by-hand.ts"

// Transactions that still contain work that they did not achieve, and that has moved on.

const open = openForEachTest()

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

  // The unit and its collection are late.
  await reorganize(hand, "deployCollection", ({ kind, nonce }) => {
    if (kind === "replaceChip") return 2
    if (kind === "relayClaim") return 3
    return nonce < 2 ? nonce : null
  })
  await goOn({ ...hand, tick: tickOf(owning) }, 4)
  expect((await claimNow(hand, otherId)).status).toBe("claimed")

  const [first] = await hand.transactionsOf("relayClaim")
  await undoFrom(hand, Number(first?.block_number))
  await goOn({ ...hand, tick: tickOf(issuing) }, 6)
  await goOn(hand, 14)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(swap.chip_id))
  expect((await replacementNow(hand, swap.id)).status).toBe("confirmed")
  expect((await claimNow(hand, id)).status).toBe("claimed")
  expect(await readToken(hand, other.address, "ownerOf")).toBe(person.address)
}, 60_000)

test("a claim that failed beside another one is not among those that an operator is told of once that is lost", async () => {
  const hand = await open({ confirmation_depth: 2, finality_depth: 4 })
  const { client } = hand.stage.anvil
  const { lane, told } = overhear(hand)
  const [taken, lost] = [await issuedUnit(hand), await issuedUnit(hand)]
  const createTaken = await preparedClaim(hand, taken.unit_id, person.address)
  const create = await preparedClaim(hand, lost.unit_id, person.address)
  await grant(hand, outsider.address)
  const { id: takenId } = await createTaken()
  const { id } = await create()
  const tick = tickOf(lane)
  await tick()
  const serializedTransaction = await takeFromPool(hand)
  await callAsOutsider(hand, taken.address, "claim", [1n, friend.address])
  await hand.mine(6)
  await client.sendRawTransaction({ serializedTransaction })
  await hand.mine(2)
  await tick()
  expect((await claimNow(hand, takenId)).status).toBe("failed")
  expect((await claimNow(hand, id)).status).toBe("claimed")

  await undoBlocks(hand, 2)
  await callAsOutsider(hand, lost.address, "claim", [1n, friend.address])
  await hand.mine()
  await goOn({ ...hand, tick }, 12)
  expect(told).toMatchObject([{ actor_ids: [id], reason: "AlreadyClaimed" }])
}, 60_000)

test("an issuance for two collections of which the chain lost one is sent again once that is back, and not before", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
  const { client } = hand.stage.anvil
  const [, { signer }] = hand.lanes
  const [one, other] = [await activeCollection(hand), await activeCollection(hand)]
  await pairedUnit(hand, one.id)
  const unit_id = await pairedUnit(hand, other.id)
  await hand.settle()
  const attempts = await hand.world.context.db.read
    .select()
    .from(transactionAttempts)
    .orderBy(asc(transactionAttempts.created_at))
  const [deployment] = await hand.transactionsOf("deployCollection")
  await undoFrom(hand, Number(deployment?.block_number))

  // The second collection is not deployed again while the signer may only issue.
  for (const [index, { raw }] of attempts.entries()) {
    if (index === 1) await grant(hand, signer.address, 1n)
    await client.sendRawTransaction({ serializedTransaction: raw as Hex })
    await hand.mine()
  }
  await goOn(hand, 6)
  expect(await hand.transactionsOf("issueUnit")).toHaveLength(1)

  await grant(hand, signer.address)
  await goOn(hand, 6)
  expect(await hand.transactionsOf("issueUnit")).toHaveLength(2)
  expect(await readToken(hand, other.address, "ownerOf")).toBe(other.address)
  const [chip] = await hand.world.context.db.read.select().from(chips).where(eq(chips.unit_id, unit_id))
  expect(await readToken(hand, other.address, "chipOf")).toBe(numberOf(chip?.chip_id ?? null))
}, 60_000)

test("a claim does not fail while a transaction that is sent again for another one may still make it", async () => {
  const hand = await open({ confirmation_depth: 2, finality_depth: 6 })
  const [owning] = hand.lanes
  const { client } = hand.stage.anvil
  const { address, one, other } = await twoIssuedUnits(hand)
  const createKept = await preparedClaim(hand, one, person.address)
  const create = await preparedClaim(hand, other, person.address)
  await grant(hand, outsider.address)
  await createKept()
  const { id } = await create()
  await hand.tick()
  const serializedTransaction = await takeFromPool(hand)
  const { number: before } = await client.getBlock()
  const claimForFriend = async () => {
    await callAsOutsider(hand, address, "claim", [2n, friend.address])
    await hand.mine()
  }
  await claimForFriend()
  await client.sendRawTransaction({ serializedTransaction })
  await hand.mine(2)
  await hand.tick()

  // What their transaction made, the other claim, is undone for long.
  await undoFrom(hand, before + 1n)
  await mineWithoutRole(hand, owning)
  await goOn(hand, 8)
  await grant(hand, owning.signer.address)
  const { number: early } = await client.getBlock()
  await claimForFriend()
  await postpone(60_000)
  await goOn(hand, 2)
  await postpone(0)
  await hand.tick()
  await undoFrom(hand, early + 1n)
  await postpone(60_000)
  await goOn(hand, 4)
  await postpone(0)
  await goOn(hand, 4)
  const ownerOf = { address: address as Hex, abi: collectionAbi, functionName: "ownerOf" } as const
  expect(await client.readContract({ ...ownerOf, args: [2n] })).toBe(person.address)
  expect((await claimNow(hand, id)).status).toBe("claimed")

  async function postpone(milliseconds: number): Promise<void> {
    await hand.turn(async ({ tx, at }) => {
      const due_at = new Date(at.getTime() + milliseconds)
      await tx.update(effects).set({ due_at, attempts: 3 }).where(eq(effects.actor_id, id))
    })
  }
}, 60_000)

/** Takes the transaction signed last out of the pool; returns its bytes. */
async function takeFromPool({ world, stage }: ByHand): Promise<Hex> {
  const [last] = await world.context.db.read
    .select()
    .from(transactionAttempts)
    .orderBy(desc(transactionAttempts.created_at))
    .limit(1)
  const { hash, raw } = last as { hash: Hex; raw: Hex }
  await stage.anvil.client.dropTransaction({ hash })
  return raw
}
