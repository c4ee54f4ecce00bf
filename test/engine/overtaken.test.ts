import { describe, expect, test } from "bun:test"
import { and, asc, eq, isNull } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { effects, lanes, transactionAttempts, transactions } from "../../src/db/schema.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { effectsIn } from "../../src/engine/jobs/job.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { effectsOf } from "../../src/engine/lanes/transactions.ts"
import { retryById } from "../../src/operator/verbs/retry.ts"
import { prepareTransfer } from "../../src/resources/transfers/service.ts"
import { deployCollections } from "../../workers/jobs/deploy-collections.ts"
import { relayClaims } from "../../workers/jobs/relay-claims.ts"
import { accountAt } from "../faults/stage.ts"
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
  outwaitNewestBlock,
  overhear,
  pairedUnit,
  person,
  preparedClaim,
  putBeforeDeployment,
  readToken,
  reorganize,
  replaceChip,
  replacedChip,
  replacementNow,
  twoIssuedUnits,
} from "../harness/by-hand.ts"

// Work that was done already, by another sender or on another fork.

const open = openForEachTest()

const depths = { confirmation_depth: 1, finality_depth: 8 }

describe("a call that the chain rejects because its work is already done", () => {
  test("succeeds: a claim whose owner has since transferred the unit", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const create = await preparedClaim(hand, unit_id, person.address)
    const hash = await callAsOutsider(hand, address, "claim", [1n, person.address])
    await hand.mine()
    const body = { recipient: friend.address }
    const { authorization } = await prepareTransfer(hand.world.context, hand.caller, unit_id, body)
    const { transaction } = authorization
    const claim = await create()
    const sent = { account: person, chain: null, to: transaction.to as Hex, data: transaction.data as Hex }
    await hand.stage.anvil.client.sendTransaction({ ...sent, gas: 300_000n })
    await hand.mine()
    await hand.settle()
    expect(await claimNow(hand, claim.id)).toMatchObject({ status: "claimed", transaction_hash: hash })
  }, 30_000)

  test("succeeds: a chip replacement of a unit that has since got another chip and been claimed", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
    const [before, chip, last] = [numberOf(previous_chip_id), numberOf(chip_id), 0x77]
    const hash = await callAsOutsider(hand, address, "replaceChip", [1n, before, chip])
    await hand.mine()
    await callAsOutsider(hand, address, "replaceChip", [1n, chip, last])
    await hand.mine()
    await callAsOutsider(hand, address, "claim", [1n, person.address])
    await hand.settle()
    expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: hash })
  }, 30_000)
})

describe("a chip replacement undone by a reorganization", () => {
  test("is repeated before the later claim, which would lock in the wrong chip forever", async () => {
    const { hand, address, chip_id, claim } = await claimAfterReplacement()
    await hand.settle()
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
    // They are mined before the unit's issuance, which comes back behind them.
    await reorganize(hand, "issueUnit", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
    await goOn(hand, 10)
    await expectClaimedWith(hand, address, chip_id)
    // Each of the two claims twice.
    expect(await hand.transactionsOf("relayClaim")).toHaveLength(4)
  }, 30_000)

  test("is repeated before the claim also if someone else uses its nonce", async () => {
    const { hand, address, chip_id, claim } = await claimAfterReplacement()
    await hand.settle()
    await reorganize(hand, "replaceChip", () => null)
    await useNoncesOf(hand, "replaceChip")
    await goOn(hand, 3)
    expect(await readToken(hand, address, "ownerOf")).toBe(address)
    await hand.turn((t) => retryById(t, hand.lanes[0].signer.lane_id))
    await goOn(hand, 8)
    await expectClaimedWith(hand, address, chip_id)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("is repeated before a claim of which only the nonce was stored", async () => {
    const { hand, address, chip_id } = await claimAfterReplacement()
    await hand.tick()
    const [, claim] = await hand.transactionsOf("relayClaim")
    const id = claim?.id as string
    const isIts = eq(transactionAttempts.transaction_id, id)
    const sent = await hand.turn(async ({ tx }) => {
      await tx.update(transactions).set({ status: "allocated" }).where(eq(transactions.id, id))
      return await tx.delete(transactionAttempts).where(isIts).returning()
    })
    for (const { hash } of sent) await hand.stage.anvil.client.dropTransaction({ hash: hash as Hex })
    await reorganize(hand, "replaceChip", () => null)
    await useNoncesOf(hand, "replaceChip")
    await hand.tick()
    const signed = await hand.world.context.db.read.select().from(transactionAttempts).where(isIts)
    expect(signed.map(({ is_cancel }) => is_cancel)).toEqual([true])
    await hand.turn((t) => retryById(t, hand.lanes[0].signer.lane_id))
    await goOn(hand, 8)
    await expectClaimedWith(hand, address, chip_id)
  }, 30_000)

  test("takes one empty transaction for the claim, however long the chain refuses to repeat it", async () => {
    const { hand, address, chip_id } = await claimAfterReplacement()
    const { signer } = hand.lanes[0]
    await hand.settle()
    await reorganize(hand, "replaceChip", () => null)
    await useNoncesOf(hand, "replaceChip", "relayClaim")
    await goOn(hand, 3)
    await hand.turn((t) => retryById(t, signer.lane_id))
    await grant(hand, signer.address, 0n)
    await goOn(hand, 10)
    await grant(hand, signer.address)
    await goOn(hand, 8)
    await expectClaimedWith(hand, address, chip_id)
    const { read } = hand.world.context.db
    const isCancel = eq(transactionAttempts.is_cancel, true)
    expect(await read.select().from(transactionAttempts).where(isCancel)).toHaveLength(1)
  }, 30_000)

  test("is repeated before the claim also if the claim's empty transaction is undone with them", async () => {
    const { hand, address, chip_id } = await claimAfterReplacement()
    await hand.settle()
    await reorganize(hand, "replaceChip", () => null)
    await useNoncesOf(hand, "replaceChip")
    await goOn(hand, 3)
    await hand.turn((t) => retryById(t, hand.lanes[0].signer.lane_id))
    await goOn(hand, 8)
    await reorganize(hand, "relayClaim", () => null)
    await goOn(hand, 8)
    await expectClaimedWith(hand, address, chip_id)
  }, 30_000)

  test("is repeated before the claim also if it was mined before the unit's issuance", async () => {
    const { hand, address, chip_id } = await claimAfterReplacement()
    const [owning, issuing] = hand.lanes
    await hand.settle()
    await reorganize(hand, "issueUnit", ({ kind }) => (kind === "replaceChip" ? 0 : null))
    await outwaitNewestBlock()
    await tickLane(owning)
    await tickLane(issuing)
    await mineInTurn(hand, "issueUnit", "relayClaim")
    await goOn(hand, 10)
    await expectClaimedWith(hand, address, chip_id)
  }, 30_000)

  test("is waited for by a new claim also if the unit's issuance is undone, too, which one node has not seen", async () => {
    const { hand } = await claimAfterReplacement()
    await reorganize(hand, "issueUnit", () => null)
    await outwaitNewestBlock()
    const { read } = hand.world.context.db
    const isWaiting = and(eq(effects.src, "relayClaim"), isNull(effects.transaction_id))
    const waiting = effectsIn(await read.select().from(effects).where(isWaiting))
    const { rpc } = hand.chain
    const asBefore = `0x${"2".padStart(64, "0")}`
    const call = async (asked: Parameters<typeof rpc.call>[0]) =>
      "blockNumber" in asked ? await rpc.call(asked) : { data: asBefore as Hex }
    const chain = { ...hand.chain, rpc: { ...rpc, call } as typeof rpc }
    const plan = await relayClaims.plan(chain, read, waiting as Parameters<typeof relayClaims.plan>[2])
    expect<unknown>(plan).toEqual({ do: "wait", effects: waiting })
  }, 30_000)

  test("is not what a node sees that is still at the block before it", async () => {
    const { hand } = await claimAfterReplacement()
    await hand.tick()
    const [swap] = await hand.transactionsOf("replaceChip")
    const blockNumber = BigInt(swap?.block_number as number) - 1n
    const { rpc } = hand.chain
    const readContract = (asked: object) =>
      rpc.readContract({ blockNumber, ...asked, blockTag: undefined } as never)
    const chain = { ...hand.chain, rpc: { ...rpc, readContract } as typeof rpc }
    await outwaitNewestBlock()
    await tickLane({ ...hand.lanes[0], chain, memory: {} })
    const sent = await hand.world.context.db.read.select().from(transactionAttempts)
    expect(sent.filter(({ is_cancel }) => is_cancel)).toEqual([])
  }, 30_000)

  test("asks for the key of its lane if the claim before it can only be given up with it", async () => {
    const { hand } = await claimAfterReplacement()
    const [owning] = hand.lanes
    const retired = { ...owning, signer: { ...owning.signer, account: null }, memory: {} }
    await hand.settle()
    await reorganize(hand, "replaceChip", () => null)
    await useNoncesOf(hand, "replaceChip")
    await outwaitNewestBlock()
    await tickLane(retired)
    await hand.turn((t) => retryById(t, owning.signer.lane_id))
    for (let block = 0; block < 4; block++) {
      await hand.mine()
      await outwaitNewestBlock()
      await tickLane(retired)
    }
    const [row] = await hand.world.context.db.read
      .select()
      .from(lanes)
      .where(eq(lanes.id, owning.signer.lane_id))
    expect(row?.reason).toMatch(/^nonce 2 \(relayClaim\) .* SIGNER_KEYS/)
  }, 30_000)

  test("is repeated with the gas that it takes then", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
    const { address, chip_id } = await replacedChip(hand)
    await reorganize(hand, "issueUnit", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
    await hand.turn(({ tx }) => tx.update(transactions).set({ gas: 25_000 }))
    await goOn(hand, 6)
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
    expect(await hand.transactionsOf("replaceChip")).toHaveLength(2)
  }, 30_000)

  test("is waited for by the next one, which had no effect, as long as it takes", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 12 })
    const [owning] = hand.lanes
    const { unit_id, address } = await issuedUnit(hand)
    await replaceChip(hand, unit_id)
    await hand.settle()
    const { id, chip_id } = await replaceChip(hand, unit_id)
    await hand.tick()
    // Both are mined before the contract's deployment, and succeed; the first cannot be repeated.
    await putBeforeDeployment(hand, "replaceChip")
    await grant(hand, owning.signer.address, 0n)
    await goOn(hand, 16)
    await grant(hand, owning.signer.address)
    await hand.settle()
    expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", failure: null })
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
  }, 30_000)

  test("delays nothing behind it that waits for an unknown nonce to be filled", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
    const neighbour = await issuedUnit(hand)
    const { unit_id } = await issuedUnit(hand)
    await replaceChip(hand, unit_id)
    await hand.settle()
    // It is mined again without its unit's issuance, whose lane is stopped.
    const issuances = (await hand.transactionsOf("issueUnit")).map(({ nonce }) => nonce)
    const isLost = ({ kind, nonce }: { kind: string; nonce: number }) =>
      kind === "replaceChip" || nonce === Math.max(...issuances)
    await reorganize(hand, "issueUnit", (each) => (isLost(each) ? null : 0))
    const [owning] = hand.lanes
    await outwaitNewestBlock()
    await tickLane(owning)
    await hand.mine()
    await hand.turn(({ tx }) =>
      tx.update(lanes).set({ next_nonce: 2 }).where(eq(lanes.id, owning.signer.lane_id)),
    )
    const { id } = await (await preparedClaim(hand, neighbour.unit_id, person.address))()
    for (let block = 0; block < 60 && (await claimNow(hand, id)).status === "claiming"; block++) {
      await outwaitNewestBlock()
      await tickLane(owning)
      await hand.mine()
    }
    expect((await claimNow(hand, id)).status).toBe("claimed")
    expect(await hand.transactionsOf("useUpNonce")).toHaveLength(1)
  }, 30_000)

  test("ends if another sender claimed the unit first, once that is final, and an operator is told", async () => {
    const hand = await open(depths)
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const { id } = await replaceChip(hand, unit_id)
    await hand.settle()
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
    await reorganize(hand, "replaceChip", () => null)
    await callAsOutsider(hand, address, "claim", [1n, person.address])
    await hand.mine()
    const { lane, told } = overhear(hand)
    const statuses: string[] = []
    for (let block = 0; block < 20; block++) {
      await outwaitNewestBlock()
      await tickLane(lane)
      const [sent] = await hand.transactionsOf("replaceChip")
      statuses.push(sent?.status ?? "")
      await hand.mine()
    }
    expect(statuses.at(-1)).toBe("final")
    expect(told).toEqual([
      expect.objectContaining({ kind: "replaceChip", actor_ids: [id], reason: "ChipLocked" }),
    ])
    expect((await replacementNow(hand, id)).status).toBe("confirmed")
  }, 30_000)
})

describe("a chip replacement that reverted", () => {
  test("is confirmed with another transaction once no reorganization can undo that one", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 8 })
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
    await hand.tick()
    await mineWithoutRole(hand, hand.lanes[0])
    const swap = await callAsOutsider(hand, address, "replaceChip", [
      1n,
      numberOf(previous_chip_id),
      numberOf(chip_id),
    ])
    for (let block = 0; block < 6; block++) await hand.mine()
    await hand.tick()
    await hand.mine()
    await hand.tick()
    expect((await replacementNow(hand, id)).status).toBe("submitted")
    await hand.mine()
    await hand.tick()
    expect(await replacementNow(hand, id)).toMatchObject({ status: "confirmed", transaction_hash: swap })
  }, 30_000)
})

describe("a deployment that reverted", () => {
  test("counts as done by another transaction once no reorganization can undo that one", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 8 })
    await activeCollection(hand)
    const [transaction] = await hand.transactionsOf("deployCollection")
    if (!transaction) throw new Error("a collection is deployed")
    const { read } = hand.world.context.db
    const members = await effectsOf(read, transaction.id)
    const receipt = await hand.stage.anvil.client.getTransactionReceipt({ hash: transaction.hash as Hex })
    const reverted = { ...receipt, status: "reverted" as const, logs: [] }
    const mined = { transaction, effects: members, receipt: reverted } as Parameters<typeof results>[2]
    const { results } = deployCollections
    expect(await results(hand.chain, read, mined)).toEqual([{ error: expect.anything() }])
    await hand.mine(8)
    await outwaitNewestBlock()
    expect(await results(hand.chain, read, mined)).toEqual([
      { output: { transaction_hash: receipt.transactionHash }, block_number: Number(receipt.blockNumber) },
    ])
  }, 30_000)
})

test("an issuance that reverted leaves no later one stuck if it is mined again successfully", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { id, address } = await activeCollection(hand)
  await pairedUnit(hand, id)
  await hand.tick()
  await mineWithoutRole(hand, hand.lanes[1])
  await grant(hand, hand.lanes[1].signer.address)
  await pairedUnit(hand, id)
  await hand.settle()
  // Without the blocks that revoked the role, the first one issues the serial of those after it.
  await reorganize(hand, "deployCollection", ({ kind }) => (kind === "issueUnit" ? 1 : 0))
  await goOn(hand, 6)
  expect(await issuedOn(hand.chain, address as Address)).toBe(2)
}, 30_000)

/** A unit whose chip was replaced, and a claim of it that is not sent yet, behind a neighbour's that is. */
async function claimAfterReplacement() {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { address, one: unit_id, other: neighbour } = await twoIssuedUnits(hand)
  const { chip_id } = await replaceChip(hand, unit_id)
  await hand.settle()
  // A call behind another one to the same contract is sent with gas for any outcome.
  await (await preparedClaim(hand, neighbour, friend.address))()
  await hand.tick()
  const claim = await (await preparedClaim(hand, unit_id, person.address))()
  return { hand, address, chip_id, claim }
}

/** Mines the last bytes of the transactions that are in no block, those of each kind in a block of their own. */
async function mineInTurn(hand: ByHand, ...kinds: string[]): Promise<void> {
  const { client } = hand.stage.anvil
  const { read } = hand.world.context.db
  const rows = await read
    .select()
    .from(transactions)
    .innerJoin(transactionAttempts, eq(transactionAttempts.transaction_id, transactions.id))
    .orderBy(asc(transactions.nonce), asc(transactionAttempts.number))
  const last = new Map(rows.map((row) => [row.transactions.id, row]))
  const open = [...last.values()].filter(
    (row) => row.transactions.status === "sent" || row.transactions.block_hash === null,
  )
  for (const row of open) await client.dropTransaction({ hash: row.transaction_attempts.hash as Hex })
  for (const kind of kinds) {
    for (const row of open.filter(({ transactions: { kind: its } }) => its === kind))
      await client.sendRawTransaction({ serializedTransaction: row.transaction_attempts.raw as Hex })
    await hand.mine()
  }
}

/** Mines transactions of someone else who has the signer's key, with the nonces of the transactions of these kinds. */
async function useNoncesOf(hand: ByHand, ...kinds: string[]): Promise<void> {
  const rows = (await Promise.all(kinds.map(hand.transactionsOf))).flat()
  const { client } = hand.stage.anvil
  const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 9n, gas: 21_000n }
  const account = accountAt(1)
  for (const { nonce } of rows)
    await client.sendTransaction({ account, chain: null, nonce, to: outsider.address, ...fees })
  await hand.mine()
}

/** Expects serial 1 to be the claimant's, and locked to a chip. */
async function expectClaimedWith(hand: ByHand, address: string, chip_id: string): Promise<void> {
  expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
  expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
}
