import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { getAddress, type Hex } from "viem"
import { chips, effects } from "../../src/db/schema.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { prepareTransfer } from "../../src/resources/transfers/service.ts"
import {
  activeCollection,
  type ByHand,
  callAsOutsider,
  claimBeside,
  claimNow,
  friend,
  goOn,
  grant,
  issuedUnit,
  mineWithoutRole,
  numberOf,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  pairedUnit,
  person,
  preparedClaim,
  putBeforeDeployment,
  readToken,
  relayedClaim,
  reorganize,
  replaceChip,
  replacedChip,
  replacementNow,
  tickOf,
  undoBlocks,
  undoFrom,
} from "../harness/by-hand.ts"

// Calls that the contract rejects because of something that a reorganization may yet undo.

const open = openForEachTest()

describe("work that another transaction did before this lane sent anything", () => {
  const depths = { confirmation_depth: 1, finality_depth: 30 }

  test("is done by this lane if both are undone: a claim whose owner has transferred the unit", async () => {
    const hand = await open(depths)
    const { client } = hand.stage.anvil
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const create = await preparedClaim(hand, unit_id, person.address)
    const before = await client.getBlock()
    await callAsOutsider(hand, address, "claim", [1n, person.address])
    await hand.mine()
    const { caller, world } = hand
    const { authorization } = await prepareTransfer(world.context, caller, unit_id, {
      recipient: friend.address,
    })
    const { to, data } = authorization.transaction as { to: Hex; data: Hex }
    const { id } = await create()
    await client.sendTransaction({ account: person, chain: null, to, data, gas: 300_000n })
    await hand.mine()
    await outliveDelay(hand, id)
    await undoFrom(hand, before.number + 1n)
    expect(await readToken(hand, address, "ownerOf")).toBe(getAddress(address))
    await goOn(hand, 12)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 30_000)

  test("is done by this lane if both are undone: a chip replacement that another one followed", async () => {
    const hand = await open(depths)
    const { client } = hand.stage.anvil
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
    const [previous, chip] = [numberOf(previous_chip_id), numberOf(chip_id)]
    const before = await client.getBlock()
    await callAsOutsider(hand, address, "replaceChip", [1n, previous, chip])
    await hand.mine()
    await callAsOutsider(hand, address, "replaceChip", [1n, chip, 0x77])
    await hand.mine()
    await outliveDelay(hand, id)
    await undoFrom(hand, before.number + 1n)
    expect(await readToken(hand, address, "chipOf")).toBe(previous)
    await goOn(hand, 12)
    expect(await readToken(hand, address, "chipOf")).toBe(chip)
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)
})

describe("work whose result was given, that reverts after a reorganization and is rejected in the newest block", () => {
  const depths = { confirmation_depth: 2, finality_depth: 8 }

  test("is repeated if that block is undone: a claim", async () => {
    const hand = await open(depths)
    const { address, id } = await relayedClaim(hand)
    await revertForLong(hand, "relayClaim")
    await refuseInNewest(hand, address)
    await goOn(hand, 8)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 30_000)

  test("is repeated if that block is undone: a chip replacement", async () => {
    const hand = await open(depths)
    const { address, id, chip_id } = await replacedChip(hand)
    await revertForLong(hand, "replaceChip")
    await refuseInNewest(hand, address)
    await goOn(hand, 8)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)

  test("is repeated if another collection's unit, with which the desk claimed it, is somebody else's for good", async () => {
    const finality_depth = 20
    const hand = await open({ confirmation_depth: 1, finality_depth })
    const [owning] = hand.lanes
    const taken = await issuedUnit(hand)
    const undone = await issuedUnit(hand)
    const create = await preparedClaim(hand, undone.unit_id, person.address)
    const createTaken = await preparedClaim(hand, taken.unit_id, person.address)
    const [{ id }] = [await create(), await createTaken()]
    await hand.settle()
    const [sent, ...others] = await hand.transactionsOf("relayClaim")
    expect(others).toEqual([])
    expect(sent?.to).toBe(hand.chain.config.desk_address as string)

    // The first collection and its unit are back at once, and nothing else.
    await reorganize(hand, "deployCollection", ({ kind, nonce }) =>
      kind !== "relayClaim" && nonce < 2 ? nonce : null,
    )
    await claimBeside(hand, taken.address, friend.address)
    // The other lane, which deploys the collection again, is late.
    await goOn({ ...hand, tick: tickOf(owning) }, finality_depth + 4)
    await goOn(hand, 12)
    expect(await readToken(hand, undone.address, "ownerOf")).toBe(person.address)
    expect(await readToken(hand, taken.address, "ownerOf")).toBe(friend.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 60_000)

  /** A reorganization after which it is mined without its signer's role, for longer than the finality depth. */
  async function revertForLong(hand: ByHand, kind: string): Promise<void> {
    const [sent] = await hand.transactionsOf(kind)
    await undoFrom(hand, Number(sent?.block_number))
    await mineWithoutRole(hand, hand.lanes[0])
    await goOn(hand, depths.finality_depth + 2)
    await grant(hand, outsider.address)
    await grant(hand, hand.lanes[0].signer.address)
  }

  /** Another sender is quicker, in a block that does not stay. */
  async function refuseInNewest(hand: ByHand, address: string): Promise<void> {
    await callAsOutsider(hand, address, "claim", [1n, friend.address])
    await hand.mine()
    await hand.tick()
    await undoBlocks(hand)
  }
})

test("a claim that was often rejected for another reason does not fail because of a claim in the newest block", async () => {
  const hand = await open({ confirmation_depth: 3, finality_depth: 60 })
  const [owning] = hand.lanes
  const { unit_id, address } = await issuedUnit(hand)
  const { id } = await (await preparedClaim(hand, unit_id, person.address))()
  await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 3 }).where(eq(effects.actor_id, id)))
  await claimBeside(hand, address, friend.address)
  await outwaitNewestBlock()
  await tickLane(owning)
  expect((await claimNow(hand, id)).status).toBe("claiming")
  await undoBlocks(hand)
  await outliveDelay(hand, id)
  await hand.settle()
  expect((await claimNow(hand, id)).status).toBe("claimed")
}, 30_000)

test("a rejected claim delays no other one if a node cannot tell whether it was rejected before", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const [{ unit_id, address }, other] = [await issuedUnit(hand), await issuedUnit(hand)]
  const { id } = await (await preparedClaim(hand, unit_id, person.address))()
  await claimBeside(hand, address, friend.address)
  await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 1 }).where(eq(effects.actor_id, id)))
  await (await preparedClaim(hand, other.unit_id, person.address))()
  const { rpc } = hand.chain
  const call = (question: { blockNumber?: bigint }) =>
    question.blockNumber === undefined
      ? rpc.call(question as never)
      : Promise.reject(new Error("header not found"))
  await outwaitNewestBlock()
  await tickLane({ ...hand.lanes[0], chain: { ...hand.chain, rpc: { ...rpc, call } as typeof rpc } })
  expect(await hand.transactionsOf("relayClaim")).toHaveLength(1)
  await outliveDelay(hand, id)
  expect((await claimNow(hand, id)).status).toBe("failed")
}, 30_000)

describe("work that failed in a block while its bytes are public", () => {
  const depths = { confirmation_depth: 1, finality_depth: 30 }

  test("does not fail before they can no longer bind a chip", async () => {
    await replaceBesideClaim(await open(depths))
  }, 30_000)

  test("does not fail before that in another key's lane either", async () => {
    const hand = await open(depths)
    const [owning, issuing] = hand.lanes
    await grant(hand, issuing.signer.address)
    const chain = { ...hand.chain, ownershipLaneId: () => issuing.signer.lane_id }
    await replaceBesideClaim({
      ...hand,
      chain,
      lanes: [
        { ...owning, chain },
        { ...issuing, chain },
      ],
    })
  }, 30_000)

  test("is not superseded before they can no longer claim a unit", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    const [chip] = await chipsOf(hand, unit_id)
    const { id } = await (await preparedClaim(hand, unit_id, person.address))()
    await hand.tick()
    await putBeforeDeployment(hand, "relayClaim")
    await grant(hand, outsider.address)
    await callAsOutsider(hand, address, "replaceChip", [1n, numberOf(chip?.chip_id ?? null), 0x77])
    await hand.mine()
    await hand.tick()
    await reorganize(hand, "relayClaim", ({ kind }) => (kind === "relayClaim" ? 1 : 0))
    await goOn(hand, 10)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 30_000)

  test("does not fail before they can no longer claim a unit, among others in the same transaction", async () => {
    const hand = await open(depths)
    const { id: collection_id, address } = await activeCollection(hand)
    const [one, other] = [await pairedUnit(hand, collection_id), await pairedUnit(hand, collection_id)]
    await hand.settle()
    const [chip] = await chipsOf(hand, other)
    const create = await preparedClaim(hand, one, person.address)
    const createOther = await preparedClaim(hand, other, person.address)
    const [{ id }, { id: otherId }] = [await create(), await createOther()]
    await hand.tick()
    await putBeforeDeployment(hand, "relayClaim")
    await grant(hand, outsider.address)
    // The other one has to wait, so that each is rejected separately.
    await callAsOutsider(hand, address, "replaceChip", [2n, numberOf(chip?.chip_id ?? null), 0x77])
    const [owning] = hand.lanes
    await grant(hand, owning.signer.address, 0n)
    await hand.tick()
    await callAsOutsider(hand, address, "claim", [1n, friend.address])
    await grant(hand, owning.signer.address)
    await goOn(hand, 5)
    await reorganize(hand, "relayClaim", ({ kind }) => (kind === "relayClaim" ? 1 : 0))
    await goOn(hand, 10)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
    expect((await claimNow(hand, otherId)).status).toBe("claimed")
  }, 30_000)

  /** A swap that reverts for lack of a role, and a claim after it: both blocks are undone. */
  async function replaceBesideClaim(hand: ByHand): Promise<void> {
    const { client } = hand.stage.anvil
    const [owning, issuing] = hand.lanes
    const tick = tickOf(owning, issuing)
    const { unit_id, address } = await issuedUnit(hand)
    const before = await client.getBlock()
    await replaceChip(hand, unit_id)
    await hand.tick()
    await mineWithoutRole(hand, owning)
    await outwaitNewestBlock()
    await tickLane(owning)
    await grant(hand, owning.signer.address)
    await claimBeside(hand, address, friend.address)
    await goOn({ ...hand, tick }, 3)
    await undoFrom(hand, before.number + 1n)
    await goOn({ ...hand, tick }, 12)
    const [chip] = await chipsOf(hand, unit_id)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip?.chip_id ?? null))
  }
})

async function chipsOf({ world }: ByHand, unitId: string) {
  return await world.context.db.read.select().from(chips).where(eq(chips.unit_id, unitId))
}

/** It was rejected once, and is retried. */
async function outliveDelay(hand: ByHand, actorId: string): Promise<void> {
  await hand.tick()
  await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }).where(eq(effects.actor_id, actorId)))
  await goOn(hand, 2)
}
