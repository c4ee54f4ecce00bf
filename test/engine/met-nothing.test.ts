import { describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { type Address, getAddress, type Hex } from "viem"
import { type AttemptRow, chips, effects, transactionAttempts } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { requestCancel } from "../../src/engine/lanes/transactions.ts"
import { createMetadataRefresh } from "../../src/resources/metadata-refreshes/service.ts"
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
  issuingLane,
  meetNoContract,
  numberOf,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  overhear,
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
  twoIssuedUnits,
  undoBlocks,
  undoFrom,
  withoutReceipts,
} from "../harness/by-hand.ts"

// Transactions that a reorganization moved before the contract's deployment: they succeed without effect.

const open = openForEachTest()

describe("a transaction without effect whose result was not given yet", () => {
  const depths = { confirmation_depth: 3, finality_depth: 30 }

  test("does not fail because of a claim that is undone: a chip replacement", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    const { id, chip_id } = await replaceChip(hand, unit_id)
    await hand.tick()
    await putBeforeDeployment(hand, "replaceChip")
    await hand.mine(depths.finality_depth)
    await judgeBesideClaim(hand, address)
    expect(await replacementNow(hand, id)).toMatchObject({ status: "submitted", failure: null })
    await undoBlocks(hand)
    await hand.settle()
    expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", failure: null })
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
  }, 30_000)

  test("does not fail because of a claim that is undone: a claim", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    const { id } = await (await preparedClaim(hand, unit_id, person.address))()
    await hand.tick()
    await putBeforeDeployment(hand, "relayClaim")
    await hand.mine(depths.finality_depth)
    await judgeBesideClaim(hand, address)
    expect(await claimNow(hand, id)).toMatchObject({ status: "claiming", failure: null })
    await undoBlocks(hand)
    await hand.settle()
    expect(await claimNow(hand, id)).toMatchObject({ status: "claimed", failure: null })
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
  }, 30_000)

  test("does not fail because of a claim that is undone: a claim joined with one that succeeds", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
    const { address, one, other } = await twoIssuedUnits(hand)
    const create = await preparedClaim(hand, one, person.address)
    const createOther = await preparedClaim(hand, other, person.address)
    await claimBeside(hand, address, friend.address)
    const [{ id }, { id: otherId }] = [await create(), await createOther()]
    await goOn(hand, 1)
    await outwaitNewestBlock()
    await hand.tick()
    expect((await claimNow(hand, otherId)).status).toBe("claimed")
    expect(await claimNow(hand, id)).toMatchObject({ status: "claiming", failure: null })
    await undoBlocks(hand, 2)
    await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }).where(eq(effects.actor_id, id)))
    await goOn(hand, 5)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 30_000)

  test("does not delay a claim joined with it that succeeds while no node can read a final block", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 8 })
    const { address, one, other } = await twoIssuedUnits(hand)
    await hand.mine(8)
    const create = await preparedClaim(hand, one, person.address)
    const createOther = await preparedClaim(hand, other, person.address)
    await claimBeside(hand, address, friend.address)
    const [{ id }, { id: otherId }] = [await create(), await createOther()]
    await goOn(hand, 1)
    await outwaitNewestBlock()
    const { number: newest } = await hand.stage.anvil.client.getBlock()
    await tickLane({ ...hand.lanes[0], chain: withoutOldState(hand, newest - 3n) })
    expect((await claimNow(hand, otherId)).status).toBe("claimed")
    expect(await claimNow(hand, id)).toMatchObject({ status: "claiming", failure: null })
    await hand.mine(8)
    await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }).where(eq(effects.actor_id, id)))
    await goOn(hand, 2)
    await hand.turn(({ tx, at }) => tx.update(effects).set({ due_at: at }).where(eq(effects.actor_id, id)))
    await goOn(hand, 2)
    expect((await claimNow(hand, id)).failure?.code).toBe("claim.already_claimed")
    expect(await hand.transactionsOf("relayClaim")).toHaveLength(1)
  }, 30_000)

  test("does not succeed because of what another sender did in the newest block", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
    await hand.tick()
    await putBeforeDeployment(hand, "replaceChip")
    await grant(hand, outsider.address)
    await callAsOutsider(hand, address, "replaceChip", [1n, numberOf(previous_chip_id), numberOf(chip_id)])
    await hand.mine()
    await hand.tick()
    expect((await replacementNow(hand, id)).status).toBe("submitted")
    await undoBlocks(hand)
    await goOn(hand, 10)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)

  test("fails once no reorganization can move its bytes elsewhere, and binds no chip after it has failed", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
    const { unit_id, address } = await issuedUnit(hand)
    const { id } = await replaceChip(hand, unit_id)
    await hand.tick()
    await putBeforeDeployment(hand, "replaceChip")
    await claimBeside(hand, address, friend.address)
    await hand.tick()
    // In their original order again, and without the claim.
    await reorganize(hand, "replaceChip", ({ kind }) => (kind === "replaceChip" ? 1 : 0))
    await goOn(hand, 10)
    const [chip] = await hand.world.context.db.read.select().from(chips).where(eq(chips.unit_id, unit_id))
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip?.chip_id ?? null))
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)
})

describe("work whose collection the chain has lost", () => {
  const depths = { confirmation_depth: 1, finality_depth: 30 }

  test("does not delay another collection's claim: a claim", async () => {
    const hand = await open(depths)
    const other = await issuedUnit(hand)
    const { unit_id } = await issuedUnit(hand)
    const create = await preparedClaim(hand, unit_id, person.address)
    const createOther = await preparedClaim(hand, other.unit_id, friend.address)
    await loseCollection(hand)
    await create()
    await requireClaimed(hand, (await createOther()).id)
  }, 30_000)

  test("does not delay another collection's claim: a chip replacement after another one", async () => {
    const hand = await open(depths)
    const other = await issuedUnit(hand)
    const { unit_id } = await issuedUnit(hand)
    await replaceChip(hand, unit_id)
    await hand.settle()
    const createOther = await preparedClaim(hand, other.unit_id, friend.address)
    await loseCollection(hand)
    await replaceChip(hand, unit_id)
    await requireClaimed(hand, (await createOther()).id)
  }, 30_000)

  test("is not sent in vain: claims that go together", async () => {
    const hand = await open(depths)
    const { id } = await activeCollection(hand)
    await pairedUnit(hand, id)
    await hand.settle()
    const [one, other] = [await pairedUnit(hand, id), await pairedUnit(hand, id)]
    await hand.settle()
    const create = await preparedClaim(hand, one, person.address)
    const createOther = await preparedClaim(hand, other, friend.address)
    const [first] = await hand.transactionsOf("issueUnit")
    await reorganize(hand, "issueUnit", ({ nonce }) => (nonce === first?.nonce ? 0 : null))
    const [claim] = [await create(), await createOther()]
    await goOnOwning(hand, 3)
    expect(await hand.transactionsOf("relayClaim")).toEqual([])
    await goOn(hand, 5)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
    expect(await hand.transactionsOf("relayClaim")).toHaveLength(1)
  }, 30_000)

  test("is sent anew once, when it can have an effect: claims that go together", async () => {
    const hand = await open(depths)
    const { id } = await activeCollection(hand)
    const [one, other] = [await pairedUnit(hand, id), await pairedUnit(hand, id)]
    await hand.settle()
    const create = await preparedClaim(hand, one, person.address)
    const createOther = await preparedClaim(hand, other, friend.address)
    const claims = [await create(), await createOther()]
    await hand.settle()
    await reorganize(hand, "issueUnit", ({ kind }) => (kind === "issueUnit" ? null : 0))
    await goOnOwning(hand, 5)
    await goOn(hand, 5)
    for (const claim of claims) expect((await claimNow(hand, claim.id)).status).toBe("claimed")
    expect((await hand.transactionsOf("relayClaim")).map(({ status }) => status)).toEqual([
      "reverted",
      "confirmed",
    ])
  }, 30_000)

  /** Undoes the last collection's deployment, and everything that followed it. */
  async function loseCollection(hand: ByHand): Promise<void> {
    const deployments = await hand.transactionsOf("deployCollection")
    const last = Math.max(...deployments.map(({ nonce }) => nonce))
    await reorganize(hand, "deployCollection", ({ kind, nonce }) =>
      kind === "replaceChip" || nonce >= last ? null : 0,
    )
  }

  async function requireClaimed(hand: ByHand, id: string): Promise<void> {
    await goOnOwning(hand, 4)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }

  /** The other lane, which issues and deploys, stands still. */
  async function goOnOwning({ lanes: [owning], mine }: ByHand, rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      await outwaitNewestBlock()
      await tickLane(owning)
      await mine()
    }
  }
})

describe("a transaction without effect, behind a claim, whose result was already given", () => {
  const depths = { confirmation_depth: 1, finality_depth: 30 }

  test("is repeated if the other sender's claim is undone: a claim", async () => {
    const hand = await open(depths)
    const { address, id } = await relayedClaim(hand)
    await putBeforeDeployment(hand, "relayClaim")
    await judgeBesideClaim(hand, address)
    await undoBlocks(hand)
    expect(await readToken(hand, address, "ownerOf")).toBe(getAddress(address))
    await goOn(hand, 10)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 30_000)

  test("is repeated if the other sender's claim is undone: a chip replacement", async () => {
    const hand = await open(depths)
    const { address, id, chip_id } = await replacedChip(hand)
    await putBeforeDeployment(hand, "replaceChip")
    await judgeBesideClaim(hand, address)
    await undoBlocks(hand)
    await goOn(hand, 10)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)

  test("after a repetition is lost once its own block is final, which an operator is told", async () => {
    const hand = await open(depths)
    const { address, id } = await replacedChip(hand)
    await reorganize(hand, "issueUnit", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
    await hand.tick()
    await hand.mine()
    await outwaitNewestBlock()
    await hand.tick()
    expect(await hand.transactionsOf("replaceChip")).toMatchObject([
      { nonce: 0 },
      { nonce: 1, status: "sent" },
    ])
    await putBeforeDeployment(hand, "replaceChip")
    await claimBeside(hand, address, friend.address)
    const { lane, told } = overhear(hand)
    await outwaitNewestBlock()
    await tickLane(lane)
    expect(told).toEqual([])
    await hand.mine(depths.finality_depth)
    await outwaitNewestBlock()
    await tickLane(lane)
    expect(told).toEqual([
      expect.objectContaining({
        kind: "replaceChip",
        actor_ids: [id],
        reason: "chip_replacement.locked",
      }),
    ])
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)
})

describe("a transaction without effect in a final block, behind another sender's, whose result was already given", () => {
  const depths = { confirmation_depth: 1, finality_depth: 8 }

  test("is repeated if the other one alone is undone: a claim", async () => {
    const hand = await open(depths)
    const { address, id } = await relayedClaim(hand)
    await putBeforeDeployment(hand, "relayClaim")
    await hand.mine(depths.finality_depth)
    await judgeBesideClaim(hand, address)
    await undoBlocks(hand)
    await goOn(hand, 10)
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
    expect((await claimNow(hand, id)).status).toBe("claimed")
  }, 30_000)

  test("is repeated if the other one alone is undone: a chip replacement after a claim", async () => {
    const hand = await open(depths)
    const { address, chip_id } = await replacedChip(hand)
    await putBeforeDeployment(hand, "replaceChip")
    await hand.mine(depths.finality_depth)
    await judgeBesideClaim(hand, address)
    await undoBlocks(hand)
    await goOn(hand, 10)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
  }, 30_000)

  test("is repeated if the other one alone is undone: a chip replacement after a swap", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    const { previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
    await hand.settle()
    await putBeforeDeployment(hand, "replaceChip")
    await hand.mine(depths.finality_depth)
    await grant(hand, outsider.address)
    await callAsOutsider(hand, address, "replaceChip", [1n, numberOf(previous_chip_id), 0x77])
    await hand.mine()
    await hand.tick()
    await undoBlocks(hand)
    await goOn(hand, 10)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
  }, 30_000)
})

test("a chip replacement without effect is repeated, however often it was planned before", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  const { id, chip_id } = await replaceChip(hand, unit_id)
  await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 5 }).where(eq(effects.actor_id, id)))
  await hand.settle()
  await putBeforeDeployment(hand, "replaceChip")
  await goOn(hand, 10)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
}, 30_000)

test("an issuance without effect is repeated, however often it was planned before", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { id: collection_id, address } = await activeCollection(hand)
  await pairedUnit(hand, collection_id)
  await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 5 }).where(eq(effects.src, "issueUnit")))
  await hand.settle()
  await meetNoContract(hand)
  await goOn(hand, 10)
  expect(await issuedOn(hand.chain, address as Address)).toBe(1)
}, 30_000)

test("a metadata refresh without effect is repeated, however often it was planned before", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { id: collection_id, address } = await activeCollection(hand)
  const { id } = await hand.turn((turn) => createMetadataRefresh(turn, hand.caller, collection_id))
  await hand.turn(({ tx }) => tx.update(effects).set({ attempts: 5 }).where(eq(effects.actor_id, id)))
  await hand.settle()
  await meetNoContract(hand)
  await goOn(hand, 10)
  const said = { address: address as Address, abi: collectionAbi, eventName: "ContractURIUpdated" } as const
  expect(await hand.stage.anvil.client.getContractEvents({ ...said, fromBlock: 0n })).toHaveLength(1)
}, 30_000)

test("a chip replacement that waits to be repeated is not taken for done while no node has its receipt", async () => {
  const finality_depth = 12
  const hand = await open({ confirmation_depth: 1, finality_depth })
  const [owning] = hand.lanes
  const { address, chip_id } = await replacedChip(hand)
  const [deployment] = await hand.transactionsOf("deployCollection")
  const [replacement] = await hand.transactionsOf("replaceChip")
  // At its original height, followed by what it builds on.
  const height = Number(replacement?.block_number) - Number(deployment?.block_number)
  await reorganize(hand, "deployCollection", ({ kind }) => (kind === "replaceChip" ? height : height + 1))
  await grant(hand, owning.signer.address, 0n)
  await goOn(hand, finality_depth + 2)
  await goOnAfterPruning(hand)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
}, 30_000)

test("a chip replacement that waits to be repeated once more is not taken for done while no node has its receipt", async () => {
  const finality_depth = 12
  const hand = await open({ confirmation_depth: 1, finality_depth })
  const [owning] = hand.lanes
  const { address, chip_id } = await replacedChip(hand)
  await putBeforeDeployment(hand, "replaceChip")
  await goOn(hand, 2)
  await putBeforeDeployment(hand, "replaceChip")
  await grant(hand, owning.signer.address, 0n)
  await goOn(hand, finality_depth + 2)
  expect((await hand.transactionsOf("replaceChip")).map(({ status }) => status)).toEqual([
    "final",
    "confirmed",
  ])
  await goOnAfterPruning(hand)
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
}, 30_000)

test("an issuance without effect that another transaction achieved is repeated if only that transaction is undone", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const [, issuing] = hand.lanes
  const { client } = hand.stage.anvil
  const { unit_id, address } = await issuedUnit(hand)
  const [chip] = await hand.world.context.db.read.select().from(chips).where(eq(chips.unit_id, unit_id))
  await meetNoContract(hand)
  // Its own block is final, the other one's is not.
  await hand.mine(30)
  await grant(hand, outsider.address)
  const contract = { address: address as Address, abi: collectionAbi }
  while ((await client.getCode(contract)) === undefined) {
    await outwaitNewestBlock()
    await tickLane(issuing)
    await hand.mine()
  }
  await client.writeContract({
    ...{ ...contract, account: outsider, chain: null, functionName: "issue" },
    args: [1n, `0x${chip?.chip_id}`, false],
  })
  await hand.mine()
  await hand.tick()
  await undoBlocks(hand)
  await goOn(hand, 10)
  expect(await issuedOn(hand.chain, address as Address)).toBe(1)
}, 30_000)

test("an issuance without effect that was planned again is over if its cancel is mined on another fork", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { client } = hand.stage.anvil
  const { read } = hand.world.context.db
  const [, { signer }] = hand.lanes
  const { id, address } = await activeCollection(hand)
  await pairedUnit(hand, id)
  await hand.tick()
  const [issuance] = await hand.transactionsOf("issueUnit")
  const ofIssuance = eq(transactionAttempts.transaction_id, issuance?.id ?? "")
  const [call] = await read.select().from(transactionAttempts).where(ofIssuance)
  await client.dropTransaction({ hash: call?.hash as Hex })
  await hand.turn((t) => requestCancel(t, issuance?.id ?? ""))
  await goOn(hand, 1)
  await hand.tick()
  const [deployment] = await hand.transactionsOf("deployCollection")
  const onFork = async (isOnIt: (attempt: AttemptRow) => boolean) => {
    const attempts = await read
      .select()
      .from(transactionAttempts)
      .orderBy(asc(transactionAttempts.created_at))
    for (const { raw } of attempts.filter(isOnIt))
      await client.sendRawTransaction({ serializedTransaction: raw as Hex })
    await hand.mine()
  }

  await undoFrom(hand, Number(deployment?.block_number))
  const { number: common } = await client.getBlock()
  await grant(hand, signer.address, 0n)
  await onFork(({ is_cancel }) => !is_cancel)
  await grant(hand, signer.address)
  await hand.settle()
  await goOn(hand, 3)
  expect((await hand.transactionsOf("issueUnit")).map(({ status }) => status)).toEqual([
    "confirmed",
    "confirmed",
  ])
  await undoFrom(hand, common + 1n)
  await onFork(({ hash }) => hash !== call?.hash)
  await goOn(hand, 22)
  expect((await hand.transactionsOf("issueUnit")).map(({ status }) => status)).toEqual(["final", "final"])
  expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
  expect(await issuedOn(hand.chain, address as Address)).toBe(1)
}, 30_000)

/** A round while no node has receipts; then the ownership lane may send again. */
async function goOnAfterPruning(hand: ByHand): Promise<void> {
  const [owning] = hand.lanes
  await outwaitNewestBlock()
  await tickLane({ ...owning, chain: withoutReceipts(hand) })
  await grant(hand, owning.signer.address)
  await goOn(hand, 5)
}

/** The chain as seen through a node that cannot read the state of blocks up to a height, in words of its own. */
function withoutOldState({ chain }: ByHand, height: bigint): ByHand["chain"] {
  const call = async (question: { blockNumber?: bigint }) => {
    if ((question.blockNumber ?? height + 1n) <= height) throw new Error("that block is gone")
    return await chain.rpc.call(question as never)
  }
  return { ...chain, rpc: { ...chain.rpc, call } as never }
}

/** One round of every lane after another sender claimed serial 1 for a friend in the newest block. */
async function judgeBesideClaim(hand: ByHand, address: string): Promise<void> {
  await claimBeside(hand, address, friend.address)
  expect(await readToken(hand, address, "ownerOf")).toBe(friend.address)
  await outwaitNewestBlock()
  await hand.tick()
}
