import { describe, expect, test } from "bun:test"
import { and, asc, eq, isNotNull } from "drizzle-orm"
import { AbiDecodingZeroDataError, type Address, encodeFunctionData, type Hex, numberToHex } from "viem"
import { chainCursors, chainMarks, foundSerials } from "../../src/db/chain-schema.ts"
import { events } from "../../src/db/event-schema.ts"
import { actorEvents, actors, claims, collections, effects, units } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { createHeaderChain, mostBehind } from "../../src/engine/chain/headers.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { retryById } from "../../src/operator/verbs/retry.ts"
import { findStuck } from "../../src/operator/verbs/stuck.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createTransfer, prepareTransfer } from "../../src/resources/transfers/service.ts"
import { readCursor } from "../../workers/watches/chain-cursor.ts"
import { readOwnershipChanges } from "../../workers/watches/ownership-changes.ts"
import { watchAuthorizations } from "../../workers/watches/watch-authorizations.ts"
import { accountAt } from "../faults/stage.ts"
import {
  activeCollection,
  type ByHand,
  callAsOutsider,
  claimBeside,
  goOn,
  grant,
  issuedUnit,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  pairedUnit,
  replaceChip,
  undoBlocks,
  undoFrom,
} from "../harness/by-hand.ts"
import { chipRowOf, unitRowOf } from "../harness/unit-rows.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

// The block at which something counts as having happened, block by block.

const open = openForEachTest()

describe("an authorization", () => {
  test("is used at the confirmation depth and not a block before, and then the unit's other one is superseded", async () => {
    const hand = await open({ confirmation_depth: 3, finality_depth: 12 })
    const { unit_id } = await issuedUnit(hand)
    const [unused, used] = [await ownClaim(hand, unit_id, 6), await ownClaim(hand, unit_id, 7)]
    await watch(hand)
    await send(hand, used)
    const seen: string[][] = []
    for (let depth = 1; depth <= 3; depth++) {
      await hand.mine()
      await watch(hand)
      seen.push([(await claimNow(hand, unused.id)).status, (await claimNow(hand, used.id)).status])
    }
    expect(seen).toEqual([
      ["claiming", "claiming"],
      ["claiming", "claiming"],
      ["failed", "claimed"],
    ])
    expect((await claimNow(hand, unused.id)).failure?.code).toBe("claim.superseded")
  }, 30_000)

  test("may be used in the last second before its deadline, and expires with the next", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { id, expires_at } = await ownClaim(hand, (await issuedUnit(hand)).unit_id, 7)
    const deadline = BigInt(Math.floor((expires_at?.getTime() ?? 0) / 1_000))
    const seen: string[] = []
    for (const timestamp of [deadline, deadline + 1n]) {
      await hand.stage.anvil.client.setNextBlockTimestamp({ timestamp })
      await hand.mine()
      await watch(hand)
      seen.push((await claimNow(hand, id)).status)
    }
    expect(seen).toEqual(["claiming", "expired"])
  }, 30_000)

  test("shared by two claims prepared at the same time is used once, by the first", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    const prepared = [await preparedClaim(hand, unit_id, 7), await preparedClaim(hand, unit_id, 7)]
    const made: Awaited<ReturnType<(typeof prepared)[0]>>[] = []
    for (const create of prepared) made.push(await create())
    const [first, second] = made as [(typeof made)[0], (typeof made)[0]]
    await send(hand, second)
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, first.id)).status).toBe("claimed")
    expect(await claimNow(hand, second.id)).toMatchObject({
      status: "failed",
      failure: { code: "claim.superseded" },
    })
  }, 30_000)

  test("used long ago is found through a provider with a small block range", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const claim = await ownClaim(hand, (await issuedUnit(hand)).unit_id, 7)
    await send(hand, claim)
    await hand.mine(120)
    const refuse = () => Promise.reject(new Error("eth_getLogs is limited to a 10 range"))
    const limited = withLogs(hand, async (query, ask) => {
      const isWide = Number(query.toBlock) - Number(query.fromBlock) >= 10
      return isWide ? refuse() : await ask()
    })
    await watch(limited)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("is found even if its provider allows few requests a second, each for few blocks", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const claim = await ownClaim(hand, (await issuedUnit(hand)).unit_id, 7)
    await hand.mine(300)
    await send(hand, claim)
    await hand.mine(60)
    let left = 0
    const limited = withLogs(hand, async (query, ask) => {
      if (left-- <= 0) throw new Error("too many requests")
      if (Number(query.toBlock) - Number(query.fromBlock) >= 10)
        throw new Error("eth_getLogs is limited to a 10 range")
      return await ask()
    })
    for (let second = 0; second < 20; second++) {
      left = 6
      await watch(limited).catch(() => {})
    }
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 60_000)

  test("whose use a reorganization moves into a block that was already read is still found", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { client } = hand.stage.anvil
    const claim = await ownClaim(hand, (await issuedUnit(hand)).unit_id, 7)
    await hand.mine(3)
    await watch(hand)
    const { to, data } = claim.transaction as Payload
    const raw = await accountAt(7).signTransaction({
      ...{ to, data, gas: 300_000n, nonce: 0, chainId: 31_337, type: "eip1559" },
      ...{ maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n },
    })
    const request = client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [2, [[raw, 0]]] })
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("whose use a reorganization moved to another transaction while no worker ran gets that transaction's hash", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 6 })
    const { client } = hand.stage.anvil
    const { claim } = await claimedUnit(hand)
    await undoBlocks(hand)
    const { to, data } = claim.transaction as Payload
    const again = { account: accountAt(7), chain: null, to, data, gas: 250_000n }
    const transaction_hash = await client.sendTransaction(again)
    await hand.mine()
    const { context } = hand.world
    const clock = () => new Date(Date.now() + 2 * 3_600_000)
    await watch({ ...hand, world: { ...hand.world, context: { ...context, clock } } })
    expect(await claimNow(hand, claim.id)).toMatchObject({ status: "claimed", transaction_hash })
  }, 30_000)

  test("used in a block that is read together with the next owner's lets each owner be told once, in order", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 6 })
    const { unit_id } = await issuedUnit(hand)
    await watch(hand)
    await send(hand, await ownClaim(hand, unit_id, 7))
    await hand.mine()
    const { id, transaction } = await ownTransfer(hand, unit_id)
    await send(hand, { account: 7, transaction })
    await hand.mine()
    await watch(hand)
    expect((await transferNow(hand, id)).status).toBe("confirmed")
    const isOfOwner = and(eq(events.unit_id, unit_id), eq(events.type, "ownership.changed"))
    const told = await hand.world.context.db.read
      .select()
      .from(events)
      .where(isOfOwner)
      .orderBy(asc(events.id))
    const owners = told.map(({ data }) => (data.ownership as { owner: string | null }).owner)
    expect(owners).toEqual([accountAt(7).address, accountAt(6).address])
  }, 30_000)

  test("whose use was recorded is not read again for blocks without a use", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 6 })
    await claimedUnit(hand)
    await hand.mine()
    const read: string[] = []
    const { context } = hand.world
    const db = watchedDatabase(context.db, ({ text, rows }) => read.push(...rows.map(() => text)))
    await watch({ ...hand, world: { ...hand.world, context: { ...context, db } } })
    expect(read.filter((text) => text.includes('"claims"'))).toEqual([])
    expect(read.length).toBeGreaterThan(0)
  }, 30_000)

  test("whose use was missed on another fork for longer than the finality depth is still found", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await watch(hand)
    await send(hand, claim)
    await hand.mine(8)
    await followAnotherFork(hand)
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
    const unit = await unitRowOf(hand.world.context.db.read, unit_id)
    expect(unit.owner).toBe(accountAt(7).address)
  }, 30_000)

  test("is not used because of a block that another worker has since seen replaced", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { unit_id } = await issuedUnit(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await watch(hand)
    await send(hand, claim)
    await hand.mine()
    await watch(
      overtaken(hand, async () => {
        await undoBlocks(hand)
        await hand.mine()
        await watch(hand)
      }),
    )
    expect((await claimNow(hand, claim.id)).status).toBe("claiming")
    const unit = await unitRowOf(hand.world.context.db.read, unit_id)
    expect(unit).toMatchObject({ claimed: false, owner: null })
  }, 30_000)

  test("is not used because of blocks that another worker has since lost without being able to read on", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { unit_id } = await issuedUnit(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await hand.mine()
    await watch(hand)
    await send(hand, claim)
    await hand.mine()
    const withoutLogs = withLogs(hand, () => Promise.reject(new Error("the node is busy")))
    await watch(
      overtaken(hand, async () => {
        await undoBlocks(hand, 2)
        await hand.mine()
        await expect(watch(withoutLogs)).rejects.toThrow("the node is busy")
      }),
    )
    expect((await claimNow(hand, claim.id)).status).toBe("claiming")
  }, 30_000)

  test("is used even if another worker always reads on first and finds nothing", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await watch(hand)
    await send(hand, claim)
    await hand.mine()
    const blind = withLogs(hand, async () => [])
    await watch(overtaken(hand, () => watch(blind)))
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
    const unit = await unitRowOf(hand.world.context.db.read, unit_id)
    expect(unit).toMatchObject({ claimed: true, owner: accountAt(7).address })
  }, 30_000)

  test("that is checked again leaves the chain read as far as another worker has read it", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
    const claim = await ownClaim(hand, (await issuedUnit(hand)).unit_id, 7)
    await watch(hand)
    await send(hand, claim)
    await hand.mine(55)
    const head = Number(await hand.stage.anvil.client.getBlockNumber())
    const read: (number | null | undefined)[] = []
    const noting = withLogs(hand, async (_query, ask) => {
      const [cursor] = await hand.world.context.db.read.select().from(chainCursors)
      read.push(cursor?.owners_block_number)
      return await ask()
    })
    await watch(overtaken(noting, () => watch(hand)))
    const since = read.slice(read.indexOf(head))
    expect(since.length).toBeGreaterThan(1)
    expect(new Set(since)).toEqual(new Set([head]))
  }, 30_000)

  test("waits if blocks were lost and providers follow different forks", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const claim = await ownClaim(hand, (await issuedUnit(hand)).unit_id, 7)
    await watch(hand)
    await send(hand, claim)
    await hand.mine(8)
    await followAnotherFork(hand)
    await hand.mine()
    const torn = tornApart(hand)
    await expect(watch(torn)).rejects.toThrow("not all providers of chain 31337 agree on block")
    expect((await claimNow(hand, claim.id)).status).toBe("claiming")
    await watch(hand)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("that could only be issued because a provider lagged is superseded half a minute later, not at its deadline", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    const createLate = await preparedClaim(hand, unit_id, 7)
    await replaceChip(hand, unit_id)
    await hand.settle()
    await watch(hand)
    const { id } = await createLate()
    await leaveUnused(hand)
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, id)).failure?.code).toBe("claim.superseded")
  }, 30_000)

  test("is not superseded by what only a provider on another fork has", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { unit_id, address } = await issuedUnit(hand)
    await watch(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await claimBeside(hand, address, accountAt(6).address)
    const { rpc } = hand.chain
    const transfers = { address: address as Address, abi: collectionAbi, eventName: "Transfer" } as const
    const logs = await rpc.getContractEvents({ ...transfers, fromBlock: 0n })
    await undoBlocks(hand)
    await hand.mine()
    await leaveUnused(hand)
    const readContract = async (question: { functionName: string }) =>
      question.functionName === "authorizationNonce" ? 1n : await rpc.readContract(question as never)
    const getContractEvents = async ({ eventName }: { eventName: string }) =>
      eventName === "Transfer" ? logs : []
    const getTransactionReceipt = async () => ({ logs: [] })
    const other = { ...rpc, readContract, getContractEvents, getTransactionReceipt } as unknown as typeof rpc
    const torn = tornApart(hand)
    await watch({ ...torn, chain: { ...torn.chain, rpc: other } })
    expect((await claimNow(hand, claim.id)).status).toBe("claiming")
    await send(hand, claim)
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("for a unit that went to another owner on another fork is superseded once that is final", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 6 })
    const { unit_id, address } = await claimedUnit(hand)
    const { id } = await ownTransfer(hand, unit_id)
    await undoBlocks(hand)
    await callAsOutsider(hand, address, "claim", [1n, accountAt(9).address])
    const seen: string[] = []
    for (let block = 0; block < 10 && seen.at(-1) !== "failed"; block++) {
      await hand.mine()
      await watch(hand)
      seen.push((await transferNow(hand, id)).status)
      await leaveUnused(hand)
    }
    // Five blocks above the claim make it final.
    expect(seen).toEqual([...Array(5).fill("prepared"), "failed"])
    const { snapshot } = await transferNow(hand, id)
    expect(snapshot).toMatchObject({ context: { failure: { code: "transfer.superseded" } } })
  }, 30_000)

  test("is queried once, and then only when its unit changes", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    await watch(hand)
    await ownClaim(hand, unit_id, 7)
    await leaveUnused(hand)
    let asked = 0
    const { rpc } = hand.chain
    const readContract = async (question: object) => {
      if ((question as { functionName: string }).functionName === "authorizationNonce") asked += 1
      return await rpc.readContract(question as never)
    }
    const counted = { ...hand, chain: { ...hand.chain, rpc: { ...rpc, readContract } as typeof rpc } }
    for (let round = 0; round < 4; round++) {
      await hand.mine()
      await watch(counted)
    }
    expect(asked).toBe(1)
  }, 30_000)

  test("that was queried, and whose use a node left out of its logs, is queried again when an operator retries it", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    await watch(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await leaveUnused(hand)
    await hand.mine()
    await watch(hand)
    await send(hand, claim)
    await hand.mine()
    await watch(withLogs(hand, async () => []))
    await hand.turn((t) => retryById(t, claim.id))
    const [retried] = await hand.world.context.db.read
      .select()
      .from(effects)
      .where(eq(effects.actor_id, claim.id))
    // Operators see since when it is due.
    expect(Date.now() - Number(retried?.due_at)).toBeLessThan(600_000)
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("is used, not superseded, if its transaction is mined in place of a block at which its nonce has just been read", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await claimedUnit(hand)
    await hand.mine(8)
    const { id, transaction } = await ownTransfer(hand, unit_id)
    await hand.mine()
    await watch(hand)
    await leaveUnused(hand)
    await hand.mine()
    await watch(replacedAfter(hand, "authorizationNonce", { depth: 1, transaction }))
    await hand.mine()
    await leaveUnused(hand)
    await watch(hand)
    expect((await transferNow(hand, id)).state).toBe("confirmed")
  }, 30_000)

  test("that no provider can tell about delays no other one", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const [silent, other] = [await issuedUnit(hand), await issuedUnit(hand)]
    const claims = [await ownClaim(hand, silent.unit_id, 6), await ownClaim(hand, other.unit_id, 7)]
    const { rpc } = hand.chain
    const readContract = async (question: object) => {
      if ((question as { address: string }).address === silent.address) throw new Error("no such state")
      return await rpc.readContract(question as never)
    }
    const over = Math.floor((claims[1]?.expires_at?.getTime() ?? 0) / 1_000) + 1
    await hand.stage.anvil.client.setNextBlockTimestamp({ timestamp: BigInt(over) })
    await hand.mine()
    await watch({ ...hand, chain: { ...hand.chain, rpc: { ...rpc, readContract } as typeof rpc } })
    const seen = await Promise.all(claims.map(({ id }) => claimNow(hand, id)))
    expect(seen.map(({ status }) => status)).toEqual(["claiming", "expired"])
    const [stuck] = await findStuck(hand.world.context.db.read, hand.world.context.clock())
    expect(stuck?.reason).toContain("no such state")
  }, 30_000)

  test("is not superseded by an older change if a provider lacks the newest logs", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    await replaceChip(hand, unit_id)
    await hand.settle()
    const claim = await ownClaim(hand, unit_id, 7)
    await watch(hand)
    await send(hand, claim)
    await hand.mine(8)
    const { rpc } = hand.chain
    const getContractEvents = async (question: object) => {
      const logs: unknown = await rpc.getContractEvents(question as never)
      return (logs as Move[]).filter((log) => log.eventName !== "Transfer" || BigInt(log.args.from) === 0n)
    }
    const getLogs = async () => []
    const lacking = { ...rpc, getContractEvents, getLogs } as unknown as typeof rpc
    await followAnotherFork(hand)
    await hand.mine()
    await watch({ ...hand, chain: { ...hand.chain, rpc: lacking } })
    expect((await claimNow(hand, claim.id)).status).toBe("claiming")
    const [stuck] = await findStuck(hand.world.context.db.read, hand.world.context.clock())
    expect(stuck).toMatchObject({
      id: claim.id,
      reason: expect.stringContaining("some of its logs are missing"),
    })
    // Without another change of its unit, a provider with the logs is asked a moment later.
    await leaveUnused(hand)
    await hand.mine()
    await watch(hand)
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  }, 30_000)

  test("is not superseded by an older change whose state was pruned if a provider lacks the newest logs", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { client } = hand.stage.anvil
    const { unit_id } = await claimedUnit(hand)
    const { id, transaction } = await ownTransfer(hand, unit_id)
    await leaveUnused(hand)
    await hand.mine(20)
    await send(hand, { account: 7, transaction })
    await hand.mine()
    const { number: newest } = await client.getBlock()
    const { rpc } = hand.chain
    const getContractEvents = async (question: object) => {
      const logs = (await rpc.getContractEvents(question as never)) as { blockNumber: bigint }[]
      return logs.filter(({ blockNumber }) => blockNumber < newest)
    }
    const readContract = async (question: { blockHash?: Hex }) => {
      const { number } = await client.getBlock({ blockHash: question.blockHash as Hex })
      if (number < newest - 16n) throw new Error("missing trie node")
      return await rpc.readContract(question as never)
    }
    const config = { ...hand.chain.config, block_time_seconds: 1 }
    const headers = createHeaderChain(rpc, config)
    const lacking = { ...rpc, getContractEvents, readContract } as never
    await watch({ ...hand, chain: { ...hand.chain, config, headers, rpc: lacking } })
    expect((await transferNow(hand, id)).state).toBe("confirmed")
  }, 30_000)
})

describe("a unit that was claimed and no longer has an owner", () => {
  test("is queried until the chain names one", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { unit_id } = await issuedUnit(hand)
    await watch(hand)
    await send(hand, await ownClaim(hand, unit_id, 7))
    await hand.mine()
    await watch(hand)
    // As while a reorganization has undone its claim.
    await hand.turn(({ tx }) => tx.update(units).set({ owner: null, owner_block: 1 }))
    await hand.mine()
    await watch(hand)
    expect(await unitRowOf(hand.world.context.db.read, unit_id)).toMatchObject({
      claimed: true,
      owner: accountAt(7).address,
    })
  }, 30_000)

  test("keeps the owner that another worker found while an earlier one was being queried", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { unit_id } = await claimedUnit(hand)
    await hand.turn(({ tx }) => tx.update(units).set({ owner: null, owner_block: 1 }))
    const { transaction } = await ownTransfer(hand, unit_id)
    await hand.mine()
    const { rpc } = hand.chain
    let isOvertaken = false
    const readContract = async (question: object) => {
      const answer: unknown = await rpc.readContract(question as never)
      if (isOvertaken) return answer
      isOvertaken = true
      await send(hand, { account: 7, transaction })
      await hand.mine()
      await watch(hand)
      return answer
    }
    await watch({ ...hand, chain: { ...hand.chain, rpc: { ...rpc, readContract } as typeof rpc } })
    expect(isOvertaken).toBe(true)
    await hand.mine()
    await watch(hand)
    expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
  }, 30_000)

  test("has none if its claim was found in a block that was never read and is gone", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
    const { unit_id } = await issuedUnit(hand)
    await watch(hand)
    const claim = await ownClaim(hand, unit_id, 7)
    await leaveUnused(hand)
    await hand.mine(20)
    await send(hand, claim)
    await hand.mine()
    await expect(watch(busySoon(hand))).rejects.toThrow("the node is busy")
    expect((await claimNow(hand, claim.id)).status).toBe("claimed")
    await undoBlocks(hand)
    await hand.mine()
    await watch(hand)
    expect(await knownOwner(hand, unit_id)).toBe(null)
  }, 30_000)

  test("is queried only while providers agree, because one on the previous fork still names the owner", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { unit_id } = await claimedUnit(hand)
    await undoBlocks(hand)
    await hand.mine()
    await watch(hand)
    await hand.mine()
    const { rpc } = hand.chain
    const readContract = async (question: { functionName: string }) =>
      question.functionName === "ownerOf" ? accountAt(7).address : await rpc.readContract(question as never)
    const torn = tornApart(hand)
    await watch({ ...torn, chain: { ...torn.chain, rpc: { ...rpc, readContract } as typeof rpc } })
    await hand.mine()
    await watch(hand)
    expect(await knownOwner(hand, unit_id)).toBe(null)
  }, 30_000)

  test("can be claimed again once no wallet can bring its claim back, which an operator is told", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 6 })
    const { unit_id, address, claim } = await claimedUnit(hand)
    await undoBlocks(hand)
    const { chip_id = "" } = await chipRowOf(hand.world.context.db.read, unit_id)
    const chip = Number.parseInt(chip_id, 16)
    await callAsOutsider(hand, address, "replaceChip", [1n, chip, 0x77])
    const told: object[] = []
    const log = { ...hand.world.context.log, error: (fields: object) => void told.push(fields) }
    const listening = { ...hand, world: { ...hand.world, context: { ...hand.world.context, log } } }
    const seen: boolean[] = []
    for (let block = 0; block < 8; block++) {
      await hand.mine()
      await watch(listening)
      seen.push((await unitRowOf(hand.world.context.db.read, unit_id)).claimed)
    }
    expect([seen[0], seen.at(-1)]).toEqual([true, false])
    expect(told).toEqual([{ unit_id, actor_ids: [claim.id] }])
    await callAsOutsider(hand, address, "replaceChip", [1n, 0x77, chip])
    await hand.mine()
    const { recipient, ...again } = await ownClaim(hand, unit_id, 6)
    await send(hand, again)
    await hand.mine()
    await watch(hand)
    expect(await unitRowOf(hand.world.context.db.read, unit_id)).toMatchObject({
      claimed: true,
      owner: recipient,
    })
  }, 30_000)
})

test("a claimed token whose collection the chain has lost delays no authorization of another one", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const other = await issuedUnit(hand)
  await claimedUnit(hand)
  const [, deployment] = await hand.transactionsOf("deployCollection")
  const claim = await ownClaim(hand, other.unit_id, 6)
  await undoFrom(hand, Number(deployment?.block_number))
  await send(hand, claim)
  await hand.mine(20)
  await watch(hand)
  expect((await claimNow(hand, claim.id)).status).toBe("claimed")
}, 30_000)

test("a claimed token stays claimed while a provider that is behind answers for a block as if it were empty", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedUnit(hand)
  await claimBeside(hand, address, accountAt(7).address)
  await watch(hand)
  await hand.mine()
  await watch(hand)
  const known = await unitRowOf(hand.world.context.db.read, unit_id)
  expect(known).toMatchObject({ claimed: true, owner: accountAt(7).address })
  await undoBlocks(hand)
  await hand.mine()
  await watch(behind(hand)).catch(() => {})
  await hand.mine()
  await watch(hand)
  const { claimed, owner, ownership_updated_at } = await unitRowOf(hand.world.context.db.read, unit_id)
  expect({ claimed, owner, ownership_updated_at }).toEqual({
    claimed: true,
    owner: known.owner,
    ownership_updated_at: known.ownership_updated_at,
  })
}, 30_000)

test("a token that moved while a provider followed another fork for longer than the finality depth has its new owner", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
  const { unit_id } = await claimedUnit(hand)
  const { id, transaction } = await ownTransfer(hand, unit_id)
  // As if a back-up older than the transfer had been restored.
  await hand.turn(({ tx }) => tx.delete(effects).where(eq(effects.actor_id, id)))
  await send(hand, { account: 7, transaction })
  await hand.mine(20)
  await followAnotherFork(hand)
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

test("owners are queried again even if another worker does so, too, and each query takes longer than a block", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  await claimedUnit(hand)
  await hand.mine(3)
  await followAnotherFork(hand)
  const { rpc } = hand.chain
  let asked = 0
  const readContract = async (question: object) => {
    asked += 1
    await Bun.sleep(300)
    await hand.mine()
    return await rpc.readContract(question as never)
  }
  const slow = { ...hand, chain: { ...hand.chain, rpc: { ...rpc, readContract } as typeof rpc } }
  await hand.mine()
  const other = Bun.sleep(150)
    .then(() => hand.mine())
    .then(() => watch(slow))
  await Promise.all([watch(slow), other])
  expect(asked).toBeLessThan(4)
}, 30_000)

test("a token that moved on a fork that appeared while owners were being queried has its new owner", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  const { id, transaction } = await ownTransfer(hand, unit_id)
  await hand.turn(({ tx }) => tx.delete(effects).where(eq(effects.actor_id, id)))
  await hand.mine(3)
  await followAnotherFork(hand)
  await hand.mine()
  await watch(replacedAfter(hand, "ownerOf", { depth: 2, transaction }))
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

test("a token that moved has its new owner even if its provider was on another fork while owners were queried again", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  const { transaction } = await ownTransfer(hand, unit_id)
  await send(hand, { account: 7, transaction })
  await hand.mine(3)
  await followAnotherFork(hand)
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
  const newest = await hand.stage.anvil.client.getBlockNumber()
  await expect(watch(onForkWithoutMove(hand, newest))).rejects.toThrow("the fork is gone")
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(7).address)
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

test("a token that moved has its new owner even if it was queried on a fork that is gone, below blocks that are not", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  const { transaction } = await ownTransfer(hand, unit_id)
  await send(hand, { account: 7, transaction })
  await hand.mine(3)
  await watch(hand)
  const { number, parentHash } = await hand.stage.anvil.client.getBlock()
  await followAnotherFork(hand)
  await hand.turn(async ({ tx }) => {
    const asked = Number(number) - 2
    await tx.update(units).set({ owner: accountAt(7).address, owner_block: asked })
    await tx.update(chainCursors).set({ asked_block_number: asked, asked_block_hash: `0x${"ef".repeat(32)}` })
    const read = { block_number: Number(number) - 1, block_hash: parentHash }
    await tx.insert(chainMarks).values({ chain_id: 31_337, ...read, kept_until: 1_000 })
  })
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

test("a token whose move was undone has its owner even if each worker that queried owners again stopped half-way", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  const { transaction } = await ownTransfer(hand, unit_id)
  await hand.mine(8)
  await send(hand, { account: 7, transaction })
  await hand.mine()
  await followAnotherFork(hand)
  await hand.mine()
  const newest = await hand.stage.anvil.client.getBlock()
  const stopped = withLogs(hand, async ({ blockHash }, ask) => {
    if (blockHash === newest.hash) throw new ChainUnreachable("no logs")
    return await ask()
  })
  await expect(watch(stopped)).rejects.toThrow("no logs")
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
  await undoBlocks(hand, 3)
  await hand.mine()
  const readContract = () => Promise.reject(new ChainUnreachable("no state"))
  const silent = { ...hand.chain, rpc: { ...hand.chain.rpc, readContract } as never }
  await expect(watch({ ...hand, chain: silent })).rejects.toThrow("no state")
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(7).address)
}, 30_000)

test("a token has its owner even if a worker reads on while another one sees that the chain was replaced once more", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  await hand.mine(8)
  await watch(hand)
  await hand.mine()
  await noteLoss(hand)
  const [before, newest] = await newestBlocks(hand)
  // The first one asked on a fork that is gone since, the other one has not asked yet.
  const meanwhile = overtaken(hand, async () => {
    const owned = { owner: accountAt(6).address, owner_block: Number(newest.number) }
    await hand.turn(async ({ tx }) => {
      await tx.update(chainCursors).set(askedAt(before))
      await tx.update(units).set(owned)
    })
  })
  await watch(meanwhile)
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(7).address)
}, 30_000)

test("owners are queried at the block at which another worker does, and by none whose provider lacks it", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  await hand.mine(4)
  const [, newest] = await newestBlocks(hand)
  await noteLoss(hand, newest)
  const ownerBlock = async () => (await unitRowOf(hand.world.context.db.read, unit_id)).owner_block
  const before = await ownerBlock()
  await watch(lagging(hand, 2n))
  expect(await ownerBlock()).toBe(before)
  await hand.mine(2)
  await watch(hand)
  expect(await ownerBlock()).toBe(Number(newest.number))
}, 30_000)

test("owners are queried at a new block if nobody finished querying them for long", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 40 })
  const { unit_id } = await claimedUnit(hand)
  const [, asked] = await newestBlocks(hand)
  await noteLoss(hand, asked)
  await hand.mine(Number(mostBehind(hand.chain.config)) + 1)
  const [, newest] = await newestBlocks(hand)
  await watch(hand)
  const { owner_block } = await unitRowOf(hand.world.context.db.read, unit_id)
  expect(owner_block).toBe(Number(newest.number))
}, 30_000)

test("an owner that was queried is not forgotten for another one that is found ahead of the blocks that were read", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
  const { unit_id } = await issuedUnit(hand)
  await watch(hand)
  const claim = await ownClaim(hand, unit_id, 7)
  await leaveUnused(hand)
  await hand.mine(20)
  const [, asked] = await newestBlocks(hand)
  await hand.turn(({ tx }) => tx.update(chainCursors).set(askedAt(asked)))
  await send(hand, claim)
  await hand.mine()
  await expect(watch(busySoon(hand))).rejects.toThrow("the node is busy")
  expect(await readCursor(hand.world.context.db.read, 31_337)).toMatchObject(askedAt(asked))
  await hand.mine()
  await watch(hand)
  expect((await claimNow(hand, claim.id)).status).toBe("claimed")
}, 30_000)

test("an owner found ahead of the blocks that were read is that of the block by which later blocks are checked", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
  const { unit_id } = await issuedUnit(hand)
  await watch(hand)
  const claim = await ownClaim(hand, unit_id, 7)
  await leaveUnused(hand)
  await hand.mine(20)
  await send(hand, claim)
  await hand.mine(4)
  const [, newest] = await newestBlocks(hand)
  await watch(hand)
  expect(await readCursor(hand.world.context.db.read, 31_337)).toMatchObject(askedAt(newest))
  const unit = await unitRowOf(hand.world.context.db.read, unit_id)
  expect(unit).toMatchObject({ owner: accountAt(7).address, owner_block: Number(newest.number) })
}, 30_000)

test("blocks that do not follow those that are still there after a reorganization are not read", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  await hand.mine(20)
  await watch(hand)
  await noteLoss(hand)
  const [, { number }] = await newestBlocks(hand)
  await hand.turn(({ tx }) => tx.update(units).set({ owner_block: Number(number) }))
  await hand.mine()
  const replaced = watch(replacedAfter(hand, "ownerOf", { depth: 12, transaction: null }))
  await expect(replaced).rejects.toThrow("does not follow the block before it")
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(7).address)
}, 30_000)

test("a token whose move was undone has its owner even if that happens while a slower worker reads again", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
  const { unit_id } = await claimedUnit(hand)
  const { transaction } = await ownTransfer(hand, unit_id)
  await hand.mine()
  await watch(hand)
  await send(hand, { account: 7, transaction })
  await hand.mine()
  const [, read] = await newestBlocks(hand)
  let isReadByOther = false
  const slower = overtaken(hand, async () => {
    await watch(hand)
    expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
    await hand.mine()
    await outwaitNewestBlock()
    isReadByOther = true
  })
  const { headers } = slower.chain
  const at = async (block: bigint) => {
    const header = await headers.at(block)
    if (!isReadByOther || block !== read.number) return header
    isReadByOther = false
    await undoBlocks(hand, 3)
    await outwaitNewestBlock()
    await headers.follow()
    return header
  }
  const replaced = watch({ ...slower, chain: { ...slower.chain, headers: { ...headers, at } } })
  await expect(replaced).rejects.toThrow("blocks were replaced while they were read")
  await hand.mine()
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(7).address)
}, 30_000)

test("a unit whose claim a reorganization undid can be claimed again, even if a node on the previous fork is asked for its owner", async () => {
  const hand = await open({ confirmation_depth: 2, finality_depth: 6 })
  const { client } = hand.stage.anvil
  const { unit_id } = await issuedUnit(hand)
  await hand.mine(4)
  const claim = await ownClaim(hand, unit_id, 7)
  await send(hand, claim)
  await hand.mine(2)
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(7).address)

  const { number: height, timestamp } = await client.getBlock()
  await undoBlocks(hand, 2)
  await hand.mine()
  const { rpc } = hand.chain
  let asked = 0
  // It knows by its own number what it does not know by hash.
  const readContract = async (question: { blockNumber?: bigint }) => {
    asked += 1
    if (question.blockNumber === undefined || question.blockNumber > height)
      throw new ChainUnreachable("header not found")
    return accountAt(7).address
  }
  const mixed = { ...hand.chain, rpc: { ...rpc, readContract } as never }
  await watch({ ...hand, chain: mixed }).catch(() => {})
  expect(asked).toBeGreaterThan(0)
  await client.setNextBlockTimestamp({ timestamp: timestamp + 3_600n })
  for (let round = 0; round < 8; round++) {
    await hand.mine()
    await watch(hand)
  }
  const unit = await unitRowOf(hand.world.context.db.read, unit_id)
  expect([unit.claimed, unit.owner]).toEqual([false, null])
  await ownClaim(hand, unit_id, 8)
}, 30_000)

describe("a token that moved has its new owner even if its block", () => {
  test("was reported differently by a node on another fork", async () => {
    const { hand, ownerNow, reorganize } = await beforeMove()
    await hand.mine()
    const other = await hand.stage.anvil.client.getBlock()
    await reorganize(1)
    await hand.mine()
    const { rpc, config } = hand.chain
    let isAsked = false
    const getBlock = async (question: { blockNumber?: bigint }) => {
      if (question.blockNumber !== other.number) return await rpc.getBlock(question as never)
      isAsked = true
      return other
    }
    const getLogs = async (question: { blockHash?: Hex }) =>
      question.blockHash === other.hash ? [] : await rpc.getLogs(question as never)
    // A new process whose first node does not respond for a moment.
    const headers = createHeaderChain({ ...rpc, getBlock } as typeof rpc, config)
    const torn = { ...hand.chain, headers, rpc: { ...rpc, getLogs } as typeof rpc }
    await watch({ ...hand, chain: torn }).catch(() => {})
    expect(isAsked).toBe(true)
    expect(await ownerNow()).toBe(accountAt(6).address)
  }, 30_000)

  test("replaced one that had just been found to be canonical", async () => {
    const { hand, ownerNow, reorganize } = await beforeMove()
    await hand.mine()
    const { headers } = hand.chain
    let isReplaced = false
    const at: typeof headers.at = async (number) => {
      const header = await headers.at(number)
      if (isReplaced) return header
      isReplaced = true
      await reorganize(2)
      // As a lane of the same process does.
      await outwaitNewestBlock()
      await headers.follow()
      return header
    }
    await watch({ ...hand, chain: { ...hand.chain, headers: { ...headers, at } } }).catch(() => {})
    expect(await ownerNow()).toBe(accountAt(6).address)
  }, 30_000)

  /** A unit that is claimed outside the service by a reorganization of the newest blocks. */
  async function beforeMove() {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { client } = hand.stage.anvil
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    await hand.mine()
    await watch(hand)
    const args = [1n, accountAt(6).address] as const
    const reorganize = async (depth: number) => {
      const raw = await outsider.signTransaction({
        ...{ to: address as Address, gas: 300_000n, nonce: 0, chainId: 31_337, type: "eip1559" },
        data: encodeFunctionData({ abi: collectionAbi, functionName: "claim", args }),
        ...{ maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n },
      })
      const request = client.request as (call: object) => Promise<unknown>
      await request({ method: "anvil_reorg", params: [depth, [[raw, 0]]] })
    }
    const ownerNow = async () => {
      await hand.mine()
      await watch(hand)
      return await knownOwner(hand, unit_id)
    }
    return { hand, ownerNow, reorganize }
  }
})

test("a token has its owner even if its collection's deployment had failed in the restored back-up", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
  const { id, address } = await activeCollection(hand)
  await grant(hand, outsider.address)
  await watch(hand)
  const { read } = hand.world.context.db
  const setStatus = (status: "active" | "failed") =>
    hand.turn(({ tx }) => tx.update(collections).set({ status }).where(eq(collections.id, id)))
  // Its chip is paired again only later, which makes no difference: no lane has a round before.
  const unit_id = await pairedUnit(hand, id)
  const { chip_id } = await chipRowOf(read, unit_id)
  await setStatus("failed")
  await hand.stage.anvil.client.writeContract({
    ...{ account: outsider, chain: null, address: address as Address, abi: collectionAbi },
    ...{ functionName: "issue", args: [1n, `0x${chip_id.toLowerCase()}`, false] },
  })
  await hand.mine()
  await callAsOutsider(hand, address, "claim", [1n, accountAt(6).address])
  await hand.mine(8)
  await watch(hand)
  // As after a retry.
  await setStatus("active")
  await hand.settle()
  await watch(hand)
  expect(await unitRowOf(read, unit_id)).toMatchObject({
    serial: 1,
    claimed: true,
    owner: accountAt(6).address,
  })
}, 30_000)

test("a chain with fast blocks is read two seconds' worth of blocks at a time, others four blocks", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 80 })
  await issuedUnit(hand)
  await watch(hand)
  for (const [block_time_seconds, together] of [
    [0.25, 8],
    [2, 4],
  ] as const) {
    await hand.mine(30)
    const { rpc, mostAtOnce } = countedLogs(hand)
    const config = { ...hand.chain.config, block_time_seconds }
    await watch({ ...hand, chain: { ...hand.chain, config, rpc } })
    expect(mostAtOnce()).toBe(together)
  }
}, 30_000)

test("many collections are queried concurrently, with at most sixteen requests", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
  const { address } = await issuedUnit(hand)
  const transaction_hash = await claimBeside(hand, address, accountAt(6).address)
  await outwaitNewestBlock()
  const newest = await hand.chain.headers.follow()
  const others = Array.from({ length: 10_000 }, (_, index) => numberToHex(index + 1, { size: 20 }))
  for (const is_final of [true, false]) {
    const { rpc, mostAtOnce } = countedLogs(hand)
    const span = { first: newest.number, last: newest.number, is_final, before: null, is_doubtful: false }
    const addresses = [...others, address as Address]
    const changes = await readOwnershipChanges({ ...hand.chain, rpc }, addresses, span, newest.hash)
    expect(changes).toMatchObject([{ serial: 1n, transaction_hash }])
    expect(mostAtOnce()).toBe(16)
  }
}, 30_000)

test("changes are in the order of the chain even if a node returns logs in another one", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
  const { unit_id, address } = await issuedUnit(hand)
  await send(hand, await ownClaim(hand, unit_id, 7))
  await hand.mine()
  await outwaitNewestBlock()
  const last = await hand.chain.headers.follow()
  const reversed = withLogs(hand, async (_query, ask) => (await ask()).toReversed())
  for (const is_final of [true, false]) {
    const span = { first: 1n, last: last.number, is_final, before: null, is_doubtful: false }
    const read = ({ chain }: ByHand) => readOwnershipChanges(chain, [address as Address], span, last.hash)
    const changes = await read(hand)
    expect(changes).toHaveLength(3)
    expect(await read(reversed)).toEqual(changes)
  }
}, 30_000)

test("a chain that was never read, as in a restored back-up, is read from its oldest collection on", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
  const { unit_id } = await issuedUnit(hand)
  await hand.mine(20)
  const claim = await ownClaim(hand, unit_id, 7)
  await send(hand, claim)
  await hand.mine(90)
  const { read } = hand.world.context.db
  expect(await read.select().from(chainCursors)).toEqual([])
  await watch(hand)
  expect((await claimNow(hand, claim.id)).status).toBe("claimed")
  const unit = await unitRowOf(read, unit_id)
  expect(unit.owner).toBe(accountAt(7).address)
}, 30_000)

test("a chain whose oldest collection a reorganization moved lower is read from there on", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 8 })
  const { unit_id, address } = await issuedUnit(hand)
  await claimBeside(hand, address, accountAt(6).address)
  const { number } = await hand.stage.anvil.client.getBlock()
  await hand.turn(({ tx }) => tx.update(collections).set({ deployed_block: Number(number) + 2 }))
  await hand.mine(4)
  await watch(hand)
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

test("an owner stays known if each block is final and a node lags by a block", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 1 })
  const { unit_id, address } = await issuedUnit(hand)
  await watch(hand)
  await claimBeside(hand, address, accountAt(6).address)
  await watch(hand)
  const { headers } = hand.chain
  const follow = async () => await headers.at((await headers.follow()).number - 1n)
  await watch({ ...hand, chain: { ...hand.chain, headers: { ...headers, follow } } })
  expect(await unitRowOf(hand.world.context.db.read, unit_id)).toMatchObject({
    owner: accountAt(6).address,
    claimed: true,
  })
  const { read } = hand.world.context.db
  const told = await read.select().from(actorEvents).where(eq(actorEvents.actor_id, unit_id))
  expect(told.map(({ event }) => event.type)).not.toContain("RETURNED")
}, 30_000)

test("a token that moved is found if each block is final, even if a node omits blocks that it lacks from a range", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 1 })
  const { unit_id, address } = await issuedUnit(hand)
  await watch(hand)
  await claimBeside(hand, address, accountAt(6).address)
  await watch(withLogs(hand, async ({ blockHash }, ask) => (blockHash ? await ask() : [])))
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

test("a token that moved is found on a chain of fast blocks even if a node that lags by seconds omits them from a range", async () => {
  const hand = await open({ confirmation_depth: 1, finality_depth: 1, block_time_seconds: 0.25 })
  const { unit_id, address } = await issuedUnit(hand)
  await watch(hand)
  await claimBeside(hand, address, accountAt(6).address)
  await hand.mine(30)
  await watch(withLogs(hand, async ({ blockHash }, ask) => (blockHash ? await ask() : [])))
  expect(await knownOwner(hand, unit_id)).toBe(accountAt(6).address)
}, 30_000)

describe("a serial that only the chain has", () => {
  const depths = { confirmation_depth: 3, finality_depth: 8 }

  test("is recorded once it is final, and nothing is issued before", async () => {
    const { hand, unitNow, foundNow, errorsNow } = await issuedByAnother()
    const seen: [found: number, sent: number][] = []
    for (let depth = 1; depth <= depths.finality_depth; depth++) {
      await hand.mine()
      await hand.tick()
      seen.push([await foundNow(), (await hand.transactionsOf("issueUnit")).length])
    }
    expect(seen.slice(0, -1).every(([found, sent]) => found === 0 && sent === 0)).toBe(true)
    expect(seen.at(-1)?.[0]).toBe(1)
    expect(await errorsNow()).toEqual([])
    await hand.settle()
    expect((await unitNow())?.serial).toBe(2)
  }, 30_000)

  test("goes to the next unit if a reorganization deeper than the confirmation depth undoes it", async () => {
    const { hand, unitNow } = await issuedByAnother()
    await goOn(hand, depths.confirmation_depth + 1)
    await undoBlocks(hand, depths.confirmation_depth + 1)
    await hand.settle()
    expect(await unitNow()).toMatchObject({ serial: 1, token_status: "active" })
  }, 30_000)

  test("is not told before it is final even if the unit of its chip waits for it", async () => {
    const { hand, unitNow } = await issuedByAnother({ is_its_chip: true })
    await goOn(hand, depths.confirmation_depth + 1)
    expect((await unitNow()).token_status).toBe("pending")
    await undoBlocks(hand, depths.confirmation_depth + 1)
    await hand.settle()
    expect(await unitNow()).toMatchObject({ serial: 1, token_status: "active" })
  }, 30_000)

  /**
   * A unit that waits, and a serial issued by another sender with the role, as the service may have done before a
   * restore.
   */
  async function issuedByAnother({ is_its_chip } = { is_its_chip: false }) {
    const hand = await open(depths)
    const { id, address } = await activeCollection(hand)
    await grant(hand, outsider.address)
    const unit_id = await pairedUnit(hand, id)
    const { read } = hand.world.context.db
    const chip = is_its_chip ? (await chipRowOf(read, unit_id)).chip_id : "0000000063"
    await hand.stage.anvil.client.writeContract({
      ...{ account: outsider, chain: null, address: address as Address, abi: collectionAbi },
      ...{ functionName: "issue", args: [1n, `0x${chip}`, false] },
    })
    const unitNow = () => unitRowOf(read, unit_id)
    const foundNow = async () =>
      (await read.select().from(foundSerials).where(eq(foundSerials.collection_id, id))).length
    const errorsNow = async () => await read.select().from(effects).where(isNotNull(effects.last_error))
    return { hand, unitNow, foundNow, errorsNow }
  }
})

type Move = { eventName: string; args: { from: Address } }
type Payload = { to: Address; data: Hex }

/** The same chain, with its logs requested through `answer`. */
function withLogs(
  hand: ByHand,
  answer: (query: LogQuery, ask: () => Promise<unknown[]>) => Promise<unknown[]>,
): ByHand {
  const { chain } = hand
  const getLogs = (query: LogQuery) => answer(query, () => chain.rpc.getLogs(query as never))
  return { ...hand, chain: { ...chain, rpc: { ...chain.rpc, getLogs } as typeof chain.rpc } }
}

type LogQuery = { fromBlock?: unknown; toBlock?: unknown; blockHash?: Hex }

/** The same chain through a node that is busy after it has returned the logs of as many blocks as are read together. */
function busySoon(hand: ByHand): ByHand {
  let left = 14
  return withLogs(hand, async (_query, ask) => {
    if (left-- <= 0) throw new Error("the node is busy")
    return await ask()
  })
}

/** The same chain, in which a transaction of its owner replaces the newest blocks right after one first question. */
function replacedAfter(
  hand: ByHand,
  functionName: string,
  { depth, transaction }: { depth: number; transaction: unknown },
): ByHand {
  const { chain, stage } = hand
  const { client } = stage.anvil
  const signed = async () => {
    const { to, data } = transaction as Payload
    return await accountAt(7).signTransaction({
      ...{ to, data, gas: 300_000n, chainId: 31_337, type: "eip1559" },
      nonce: await client.getTransactionCount({ address: accountAt(7).address }),
      ...{ maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n },
    })
  }
  let isReplaced = false
  const readContract = async (question: { functionName: string }) => {
    const answer: unknown = await chain.rpc.readContract(question as never)
    if (isReplaced || question.functionName !== functionName) return answer
    isReplaced = true
    const request = client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [depth, transaction ? [[await signed(), 0]] : []] })
    await outwaitNewestBlock()
    await chain.headers.follow()
    return answer
  }
  return { ...hand, chain: { ...chain, rpc: { ...chain.rpc, readContract } as never } }
}

/** The same chain through a provider that lacks its newest blocks. */
function lagging(hand: ByHand, blocks: bigint): ByHand {
  const { headers } = hand.chain
  const follow = async () => await headers.at((await headers.follow()).number - blocks)
  return { ...hand, chain: { ...hand.chain, headers: { ...headers, follow } } }
}

/** The same chain, with one provider on another fork. */
function tornApart(hand: ByHand): ByHand {
  const { chain } = hand
  const blockHashes = async (block: bigint) => [...(await chain.providers.blockHashes(block)), "0xab" as Hex]
  return { ...hand, chain: { ...chain, providers: { ...chain.providers, blockHashes } } }
}

/** The same chain on a fork of its newest blocks, on which a token never moved, and which is gone once that was said. */
function onForkWithoutMove(hand: ByHand, fork: bigint): ByHand {
  const { chain } = hand
  const { headers } = chain
  let isGone = false
  const refuse = () => {
    if (isGone) throw new ChainUnreachable("the fork is gone")
  }
  const follow = async () => {
    refuse()
    return await headers.follow()
  }
  const at = async (block: bigint) => {
    refuse()
    const header = await headers.at(block)
    return block < fork ? header : { ...header, hash: `0x${"cd".repeat(32)}` as Hex }
  }
  const providers = { ...chain.providers, blockHashes: async (block: bigint) => [(await at(block)).hash] }
  const readContract = async () => {
    isGone = true
    return accountAt(7).address
  }
  const rpc = { ...chain.rpc, readContract } as never
  return { ...hand, chain: { ...chain, headers: { ...headers, at, follow }, providers, rpc } }
}

/** The same chain, whose state is read from a node that answers 0x for a block that it lacks, as Erigon did. */
function behind(hand: ByHand): ByHand {
  const { chain } = hand
  const readContract = async () => {
    throw new AbiDecodingZeroDataError()
  }
  const call = async () => ({ data: undefined })
  return { ...hand, chain: { ...chain, rpc: { ...chain.rpc, readContract, call } as never } }
}

/** The same chain, and the largest number of concurrent log requests. */
function countedLogs(hand: ByHand) {
  let [open, most] = [0, 0]
  const { chain } = withLogs(hand, async (_query, ask) => {
    open += 1
    most = Math.max(most, open)
    return await ask().finally(() => {
      open -= 1
    })
  })
  return { rpc: chain.rpc, mostAtOnce: () => most }
}

/** Another's action happens between a worker's first read of logs and its use of them. */
function overtaken(hand: ByHand, act: () => Promise<void>): ByHand {
  let isOvertaken = false
  return withLogs(hand, async (_query, ask) => {
    const logs = await ask()
    if (isOvertaken) return logs
    isOvertaken = true
    await act()
    return logs
  })
}

/** A round of the watch that requests the newest block even if nothing is open. */
async function watch({ world, chain }: ByHand): Promise<void> {
  await outwaitNewestBlock()
  const headers = { ...chain.headers, followIdly: chain.headers.follow }
  await watchAuthorizations(world.context, { ...chain, headers }, () => {})
}

/** As if everything open had been open, or last queried, long ago. */
async function leaveUnused({ turn }: ByHand): Promise<void> {
  await turn(({ tx }) => tx.update(effects).set({ due_at: new Date(0) }))
}

/** As if the only provider that was queried had since switched to another fork. */
async function followAnotherFork({ stage, turn }: ByHand): Promise<void> {
  const { number } = await stage.anvil.client.getBlock()
  const hash = `0x${"ab".repeat(32)}`
  const fork = { block_hash: hash, owners_block_number: Number(number), owners_block_hash: hash }
  await turn(({ tx }) => tx.update(chainCursors).set(fork))
}

/** As if a worker had noted that the newest blocks were lost, and stopped while it asked for owners at the given block. */
async function noteLoss({ turn }: ByHand, asked: NewestBlock | null = null): Promise<void> {
  const lost = { owners_block_hash: null, asked_block_number: null, asked_block_hash: null }
  await turn(({ tx }) => tx.update(chainCursors).set({ ...lost, ...(asked && askedAt(asked)) }))
}

/** The columns of a cursor for the block at which owners were asked for. */
function askedAt({ number, hash }: NewestBlock) {
  return { asked_block_number: Number(number), asked_block_hash: hash }
}

/** The newest block and the one before, in the order of the chain. */
async function newestBlocks({ stage }: ByHand): Promise<[NewestBlock, NewestBlock]> {
  const { client } = stage.anvil
  const { number, hash } = await client.getBlock()
  const before = await client.getBlock({ blockNumber: number - 1n })
  return [before, { number, hash }]
}

type NewestBlock = { number: bigint; hash: Hex }

async function ownClaim(hand: ByHand, unit_id: string, account: number) {
  return await (await preparedClaim(hand, unit_id, account))()
}

/** Prepares a claim for a person's own wallet while the chain allows it; returns a function that creates it. */
async function preparedClaim({ turn, world, caller }: ByHand, unit_id: string, account: number) {
  const body = { recipient: accountAt(account).address, execution: "client_broadcast" } as const
  const prepared = await prepareClaim(world.context, caller, unit_id, body)
  return async () => {
    const { id } = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
    return { ...(await claimNow({ world }, id)), account }
  }
}

/** A unit claimed by a person's own wallet, with an outsider who has roles to call its contract. */
async function claimedUnit(hand: ByHand) {
  const { unit_id, address } = await issuedUnit(hand)
  await grant(hand, outsider.address)
  await watch(hand)
  const claim = await ownClaim(hand, unit_id, 7)
  await send(hand, claim)
  await hand.mine()
  await watch(hand)
  return { unit_id, address, claim }
}

/** A transfer to be sent by the current owner. */
async function ownTransfer({ turn, world, caller }: ByHand, unit_id: string) {
  const body = { recipient: accountAt(6).address }
  const prepared = await prepareTransfer(world.context, caller, unit_id, body)
  return await turn((t) => createTransfer(t, caller, { unit_id, body, prepared }))
}

async function send({ stage }: ByHand, claim: { account: number; transaction: unknown }): Promise<void> {
  const { to, data } = claim.transaction as Payload
  const account = accountAt(claim.account)
  await stage.anvil.client.sendTransaction({ account, chain: null, to, data, gas: 300_000n })
}

async function knownOwner({ world }: ByHand, unit_id: string): Promise<string | null> {
  return (await unitRowOf(world.context.db.read, unit_id)).owner
}

async function transferNow({ world }: ByHand, id: string) {
  const [row] = await world.context.db.read.select().from(actors).where(eq(actors.id, id))
  if (!row) throw new Error(`there is no transfer ${id}`)
  return row
}

async function claimNow({ world }: Pick<ByHand, "world">, id: string) {
  const [row] = await world.context.db.read.select().from(claims).where(eq(claims.id, id))
  if (!row) throw new Error(`there is no claim ${id}`)
  return row
}
