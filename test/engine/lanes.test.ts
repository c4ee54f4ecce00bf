import { describe, expect, spyOn, test } from "bun:test"
import { eq } from "drizzle-orm"
import {
  type Address,
  type ContractFunctionParameters,
  type Hex,
  parseGwei,
  RpcRequestError,
  toHex,
} from "viem"
import { DatabaseUnavailable } from "../../src/db/database.ts"
import {
  chipReplacements,
  claims,
  collections,
  effects,
  lanes,
  transactionAttempts,
} from "../../src/db/schema.ts"
import { collectionSalt } from "../../src/engine/chain/collection-address.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { createHeaderChain } from "../../src/engine/chain/headers.ts"
import type { Rpc } from "../../src/engine/chain/rpc.ts"
import { type Job, type Jobs, jobFor } from "../../src/engine/jobs/job.ts"
import { leaveLane, tickLane } from "../../src/engine/lanes/lane.ts"
import { LeaseLost, takeLease } from "../../src/engine/lanes/leases.ts"
import { requestCancel } from "../../src/engine/lanes/transactions.ts"
import { retryById } from "../../src/operator/verbs/retry.ts"
import { findStuck } from "../../src/operator/verbs/stuck.ts"
import { newId } from "../../src/platform/ids.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { pairChip, pairChipsInBulk } from "../../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { watchAuthorizations } from "../../workers/watches/watch-authorizations.ts"
import { accountAt, signers } from "../faults/stage.ts"
import {
  activeCollection,
  type ByHand,
  callAsOutsider,
  goOn,
  grant,
  issuedUnit,
  issuingLane,
  newCollection,
  newUnit,
  numberOf,
  openForEachTest,
  outsider,
  outwaitNewestBlock,
  pairedUnit,
  person,
  preparedClaim,
  readToken,
  reorganize,
  replaceChip,
  replacedChip,
  replacementNow,
  tickOf,
  withoutReceipts,
} from "../harness/by-hand.ts"

const open = openForEachTest()

let clock: ReturnType<typeof spyOn<Performance, "now">> | undefined

/** Judging each transaction of a kind takes a second by the process's clock. */
function slow(jobs: Jobs, kind: "deployCollection" | "relayClaim"): Jobs {
  const job: Job = jobFor(jobs, kind)
  const now = performance.now.bind(performance)
  let late = 0
  clock = spyOn(performance, "now").mockImplementation(() => now() + late)
  const results: Job["results"] = async (...given) => {
    late += 1_000
    return await job.results(...given)
  }
  return { ...jobs, [kind]: { ...job, results } }
}

describe("a result is given", () => {
  test("at the confirmation depth, and not a block before it", async () => {
    const hand = await open({ confirmation_depth: 3, finality_depth: 5 })
    const { id } = await newCollection(hand)
    await hand.tick()
    const seen: [collection: string, transaction: string | undefined][] = []
    for (let depth = 1; depth <= 5; depth++) {
      await hand.mine()
      await hand.tick()
      const [transaction] = await hand.transactionsOf("deployCollection")
      seen.push([await statusOf(hand, id), transaction?.status])
    }
    expect(seen).toEqual([
      ["deploying", "mined"],
      ["deploying", "mined"],
      ["active", "confirmed"],
      ["active", "confirmed"],
      ["active", "final"],
    ])
  }, 30_000)

  test("in the next round at the same block if time ran out for it in the current one", async () => {
    const hand = await open()
    const ids = [(await newCollection(hand)).id, (await newCollection(hand)).id]
    await hand.tick()
    await hand.mine(3)
    const [, lane] = hand.lanes
    const woken: string[] = []
    const context = { ...lane.context, wake: (queue: string) => void woken.push(queue) }
    const statuses = async () => (await Promise.all(ids.map((id) => statusOf(hand, id)))).sort()
    await outwaitNewestBlock()
    const jobs = slow(lane.jobs, "deployCollection")
    await tickLane({ ...lane, context, jobs }).finally(() => clock?.mockRestore())
    expect(await statuses()).toEqual(["active", "deploying"])
    expect(woken).toContain(laneQueue(lane.signer.lane_id))
    await hand.tick()
    expect(await statuses()).toEqual(["active", "active"])
  }, 30_000)

  test("also for what another one waits for, however long that one takes", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 60 })
    const { unit_id, address, chip_id } = await replacedChip(hand)
    await (await preparedClaim(hand, unit_id, person.address))()
    await hand.settle()
    await reorganize(hand, "deployCollection", ({ kind }) =>
      kind === "replaceChip" || kind === "relayClaim" ? 0 : 1,
    )
    const [owning] = hand.lanes
    const tick = tickOf({ ...owning, jobs: slow(owning.jobs, "relayClaim") })
    await goOn({ ...hand, tick }, 20).finally(() => clock?.mockRestore())
    expect(await readToken(hand, address, "chipOf")).toBe(numberOf(chip_id))
    expect(await readToken(hand, address, "ownerOf")).toBe(person.address)
  }, 30_000)

  test("only if all providers have the same block", async () => {
    const hand = await open(undefined, 2)
    const second = hand.stage.proxies[1]
    if (!second) throw new Error("there are two providers")
    const { id } = await newCollection(hand)
    await hand.tick()
    second.faults.is_forked = true
    await hand.mine(3)
    for (let round = 0; round < 3; round++) await hand.tick().catch(() => {})
    expect(await statusOf(hand, id)).toBe("deploying")
    second.faults.is_forked = false
    await hand.settle()
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)

  test("for a deployment even if a provider lags behind in its newest block", async () => {
    const hand = await open()
    const { number: behind } = await hand.chain.headers.follow()
    const { id } = await newCollection(hand)
    await hand.tick()
    await hand.mine(3)
    await tickBehind(hand, behind)
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)

  test("for a deployment that another sender made first, even through lagging providers", async () => {
    const hand = await open()
    const { number: behind } = await hand.chain.headers.follow()
    const { id, name, symbol } = await newCollection(hand)
    await sendAfter(hand, 8n, {
      ...{ address: hand.chain.config.factory_address, abi: factoryAbi, functionName: "deploy" },
      args: [collectionSalt(id), name, symbol],
    })
    await tickBehind(hand, behind)
    expect(await statusOf(hand, id)).toBe("active")
    const [row] = await hand.world.context.db.read.select().from(collections).where(eq(collections.id, id))
    expect(row?.deployed_block).toBeNull()
  }, 30_000)

  test("for a claim that another sender made first, even if the newest block comes from a lagging provider", async () => {
    const hand = await open()
    const { unit_id, address } = await issuedUnit(hand)
    const { number: behind } = await hand.chain.headers.follow()
    const { id } = await relayClaim(hand, unit_id, 6)
    await sendAfter(hand, 2n, {
      ...{ address: address as Hex, abi: collectionAbi, functionName: "claim" },
      args: [1n, accountAt(6).address],
    })
    await tickBehind(hand, behind)
    const [row] = await hand.world.context.db.read.select().from(claims).where(eq(claims.id, id))
    expect(row?.status).toBe("claimed")
  }, 30_000)

  test("for a chip replacement that another sender made first, even through lagging providers", async () => {
    const hand = await open()
    const { unit_id, address } = await issuedUnit(hand)
    const { number: behind } = await hand.chain.headers.follow()
    const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
    await sendAfter(hand, 4n, {
      ...{ address: address as Hex, abi: collectionAbi, functionName: "replaceChip" },
      args: [1n, Number.parseInt(previous_chip_id, 16), Number.parseInt(chip_id, 16)],
    })
    await tickBehind(hand, behind)
    expect(await replacementStatus(hand, id)).toBe("confirmed")
  }, 30_000)
})

describe("the blocks of transactions with results", () => {
  test("are requested together when a process starts, and hardly again for later blocks", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 900 })
    const { id } = await activeCollection(hand)
    for (let unit = 0; unit < 6; unit++) {
      await pairedUnit(hand, id)
      await hand.settle()
    }
    const settled = (await hand.transactionsOf("issueUnit")).filter(({ status }) => status === "confirmed")
    expect(settled).toHaveLength(6)
    let asked = 0
    let waiting = 0
    let most = 0
    const getBlock = async (which: { blockNumber?: bigint }) => {
      if (which.blockNumber === undefined) return await hand.chain.rpc.getBlock(which)
      asked += 1
      waiting += 1
      most = Math.max(most, waiting)
      return await hand.chain.rpc.getBlock(which).finally(() => {
        waiting -= 1
      })
    }
    const rpc = { ...hand.chain.rpc, getBlock } as unknown as Rpc
    const chain = { ...hand.chain, rpc, headers: createHeaderChain(rpc, hand.chain.config) }
    const [, issuing] = hand.lanes
    const lane = { ...issuing, chain, memory: {} }
    for (let round = 0; round < 8; round++) {
      await hand.mine()
      await outwaitNewestBlock()
      await tickLane(lane)
    }
    expect(most).toBe(7)
    expect(asked).toBeLessThanOrEqual(4 * 7)
  })
})

describe("a lane assigns no nonce", () => {
  test("on a chain other than its own", async () => {
    const hand = await open()
    await newCollection(hand)
    const { chain, lanes: own } = hand
    const providers = { ...chain.providers, askAll: async () => ["0x1"] }
    await expect(tickLane({ ...own[1], chain: { ...chain, providers } })).rejects.toThrow("serves chain 1")
    expect(await hand.transactionsOf("deployCollection")).toEqual([])
  }, 30_000)

  test("if the factory has no code", async () => {
    const hand = await open()
    await newCollection(hand)
    const { chain, lanes: own } = hand
    const rpc = { ...chain.rpc, getCode: async () => undefined }
    const elsewhere = { ...own[1], chain: { ...chain, rpc: rpc as typeof chain.rpc } }
    await expect(tickLane(elsewhere)).rejects.toThrow("no contract at factory_address")
    expect(await hand.transactionsOf("deployCollection")).toEqual([])
  }, 30_000)

  test("if the desk has no code, unless the factory is of the generation without a desk", async () => {
    const hand = await open()
    await newCollection(hand)
    const { chain, lanes: own } = hand
    const getCode = async ({ address }: { address: Hex }) =>
      address === chain.config.desk_address ? undefined : await chain.rpc.getCode({ address })
    const withoutDesk = { ...chain, rpc: { ...chain.rpc, getCode } as typeof chain.rpc }
    await expect(tickLane({ ...own[1], chain: withoutDesk })).rejects.toThrow("no contract at desk_address")
    expect(await hand.transactionsOf("deployCollection")).toEqual([])
    const generations = { ...chain.generations, ofFactory: async () => 1 as const }
    await tickLane({ ...own[1], chain: { ...withoutDesk, generations } })
    expect(await hand.transactionsOf("deployCollection")).toHaveLength(1)
  }, 30_000)

  test("beyond the window that public pools guarantee, which no organization gets to itself", async () => {
    const hand = await open()
    const callers = await Promise.all(Array.from({ length: 5 }, hand.newCaller))
    for (const caller of callers) for (let each = 0; each < 5; each++) await newCollection(hand, caller)
    // One round sends for part of a block time only.
    for (let round = 0; round < 25; round++) await hand.tick()
    expect(await hand.transactionsOf("deployCollection")).toHaveLength(16)
  }, 30_000)

  test("for work that it cannot pay for in addition to what is in flight", async () => {
    const hand = await open()
    await newCollection(hand)
    await hand.tick()
    const [first] = await hand.transactionsOf("deployCollection")
    const cost = BigInt(first?.gas ?? 0) * BigInt(first?.max_fee_per_gas ?? 0)
    const balance = (cost * 5n) / 2n
    const { client } = hand.stage.anvil
    await client.setBalance({ address: signers[1], value: balance })
    await newCollection(hand)
    await hand.tick()
    expect(await hand.transactionsOf("deployCollection")).toHaveLength(1)
    const row = await issuingLane(hand)
    expect(row.reason).toMatch(/lacks 0\.\d+ ETH .* 1 ETH pays for about \d+ such transactions/)
    // On its own it would have been affordable.
    await client.setBalance({ address: signers[1], value: 10n ** 18n })
    await hand.tick()
    const second = (await hand.transactionsOf("deployCollection")).find(({ nonce }) => nonce === 1)
    expect(BigInt(second?.gas ?? 0) * BigInt(second?.max_fee_per_gas ?? 0)).toBeLessThan(balance)
  }, 30_000)

  test.each(["insufficient funds for gas * price + value", "the moon is too low"])(
    "after a transaction that a node rejected in this round: %s",
    async (words) => {
      const hand = await open()
      const [proxy] = hand.stage.proxies
      if (proxy) proxy.faults.says_to_sends = words
      for (const caller of [hand.caller, await hand.newCaller()]) await newCollection(hand, caller)
      await hand.tick().catch(() => {})
      expect(await hand.transactionsOf("deployCollection")).toHaveLength(1)
    },
    30_000,
  )

  test("that is already assigned, after it reads its nonces from the chain again", async () => {
    const hand = await open()
    const [proxy] = hand.stage.proxies
    if (proxy) proxy.faults.says_to_sends = "txpool is full"
    await newCollection(hand)
    await hand.tick()
    await hand.turn(({ tx }) =>
      tx.update(lanes).set({ next_nonce: null }).where(eq(lanes.address, signers[1])),
    )
    await newCollection(hand)
    await hand.mine()
    await hand.tick()
    const nonces = (await hand.transactionsOf("deployCollection")).map(({ nonce }) => nonce)
    expect(nonces.toSorted()).toEqual([0, 1])
  }, 30_000)
})

describe("a deployment mined before its signer had the role", () => {
  test("is repeated once the signer has the role, and never fails", async () => {
    const hand = await open()
    const [proxy] = hand.stage.proxies
    if (!proxy) throw new Error("there is a provider")
    const { id } = await newCollection(hand)
    // Signed while the signer had the role, and mined while it had not.
    proxy.faults.says_to_sends = "txpool is full"
    await hand.tick()
    await grant(hand, signers[1], 0n)
    proxy.faults.says_to_sends = null
    await hand.tick()
    await hand.mine(8)
    await hand.tick()
    expect(await hand.transactionsOf("deployCollection")).toMatchObject([{ status: "reverted" }])
    expect(await statusOf(hand, id)).toBe("deploying")
    await grant(hand, signers[1], 9n)
    await hand.settle()
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)
})

describe("a provider that suggests an excessive tip", () => {
  test("makes a transaction offer no more than the chain's configured limits, which are below the maximum", async () => {
    const hand = await open()
    await newCollection(hand)
    const { chain, lanes: own } = hand
    const askAll: typeof chain.providers.askAll = async (question) =>
      question.method === "eth_maxPriorityFeePerGas"
        ? [toHex(10n ** 15n)]
        : await chain.providers.askAll(question)
    await tickLane({ ...own[1], chain: { ...chain, providers: { ...chain.providers, askAll } } })
    const [offered] = await hand.transactionsOf("deployCollection")
    const { max_priority_fee_per_gas_gwei: most, max_fee_per_gas_gwei } = chain.config
    expect(BigInt(offered?.max_priority_fee_per_gas ?? 0)).toBe(parseGwei(String(most)))
    expect(most).toBeLessThan(max_fee_per_gas_gwei)
  }, 30_000)
})

describe("a lane without money", () => {
  test("logs this once, while its row follows the prices", async () => {
    const hand = await open()
    const [, issuing] = hand.lanes
    const { client } = hand.stage.anvil
    const said: unknown[] = []
    const log = { ...issuing.context.log, error: (fields: object) => void said.push(fields) }
    const lane = { ...issuing, context: { ...issuing.context, log } }
    const reasons = new Set<unknown>()
    await client.setBalance({ address: signers[1], value: 1n })
    await newCollection(hand)
    for (let round = 0; round < 4; round++) {
      await hand.mine()
      await outwaitNewestBlock()
      await tickLane(lane)
      const [row] = await hand.world.context.db.read.select().from(lanes).where(eq(lanes.address, signers[1]))
      reasons.add(row?.reason)
    }
    expect(reasons.size).toBeGreaterThan(1)
    expect(said).toMatchObject([{ status: "paused", reason: expect.stringContaining("lacks 0.") }])
  }, 30_000)
})

describe("one transaction", () => {
  test("contains a bulk request alone, without the work after it", async () => {
    const hand = await open()
    const { id } = await activeCollection(hand)
    const { turn, caller, world } = hand
    const secret = world.context.config.service_secret
    const [one, two, three] = await Promise.all([1, 2, 3].map(() => newUnit(hand, id)))
    const chips = [one, two].map((unit_id) => ({ unit_id: unit_id as string, is_test: true }))
    await turn((t) => pairChipsInBulk(t, secret, caller, { chips }))
    await turn((t) => pairChip(t, secret, caller, { unit_id: three as string, is_test: true }))
    await hand.tick()
    const rows = await world.context.db.read.select().from(effects).where(eq(effects.src, "issueUnit"))
    const sizes = Map.groupBy(rows, ({ transaction_id }) => transaction_id)
    expect([...sizes.values()].map((members) => members.length).toSorted()).toEqual([1, 2])
  }, 30_000)

  test("contains no more than its cost limit allows, and the rest follows in others", async () => {
    const hand = await open()
    const { id } = await activeCollection(hand)
    for (let unit = 0; unit < 2; unit++) await pairedUnit(hand, id)
    const [, lane] = hand.lanes
    // Sufficient for one issuance at this price, but not for two.
    const config = { ...lane.chain.config, max_fee_per_gas_gwei: 0.001, max_transaction_cost: 0.000_000_15 }
    for (let round = 0; round < 4; round++) await tickLane({ ...lane, chain: { ...lane.chain, config } })
    const rows = await hand.world.context.db.read.select().from(effects).where(eq(effects.src, "issueUnit"))
    const sizes = Map.groupBy(rows, ({ transaction_id }) => transaction_id)
    expect([...sizes].map(([sent, members]) => [sent !== null, members.length])).toEqual([
      [true, 1],
      [true, 1],
    ])
  }, 30_000)

  test("issues each unit in its own collection", async () => {
    const hand = await open()
    const made = [await issuedUnit(hand), await issuedUnit(hand)]
    for (const [index, { unit_id }] of made.entries()) await relayClaim(hand, unit_id, index + 6)
    await hand.settle()
    for (const [index, { address }] of made.entries()) {
      const owner = await hand.stage.anvil.client.readContract({
        ...{ address: address as Hex, abi: collectionAbi, functionName: "ownerOf", args: [1n] },
      })
      expect(owner).toBe(accountAt(index + 6).address)
    }
    const rows = await hand.world.context.db.read.select().from(claims)
    expect(rows.map(({ status }) => status)).toEqual(["claimed", "claimed"])
    // Neither had to be retried.
    const done = await hand.world.context.db.read.select().from(effects).where(eq(effects.src, "relayClaim"))
    expect(done.map(({ attempts }) => attempts)).toEqual([0, 0])
  }, 30_000)
})

describe("a nonce used on the chain without a receipt at any provider", () => {
  test("is attributed to another sender only when every provider confirms it", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 }, 2)
    const { id } = await newCollection(hand)
    await hand.tick()
    await hand.mine(2)
    const newest = await hand.stage.anvil.client.getBlockNumber()
    // One provider cannot return receipts, the other lags and has forgotten the state: no key was stolen.
    await tickWithoutReceipts(hand, refusingOlder(hand.chain.rpc, newest, "missing trie node"))
    const row = await issuingLane(hand)
    expect(row.status).not.toBe("halted")
    await hand.settle()
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)

  test("is the lane's own if a block contains its transaction, which the lane reports until the receipt is available", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { id } = await newCollection(hand)
    await hand.tick()
    await hand.mine(4)
    await tickWithoutReceipts(hand)
    const { status, reason } = await issuingLane(hand)
    const [attempt] = await hand.world.context.db.read.select().from(transactionAttempts)
    expect(status).toBe("open")
    expect(reason).toContain(`was used by ${attempt?.hash}, but no provider has its receipt`)
    await hand.settle()
    expect([await statusOf(hand, id), (await issuingLane(hand)).reason]).toEqual(["active", null])
  }, 30_000)

  test("is the lane's own if its block was seen before, which is also reported once the block is final", async () => {
    const hand = await open({ confirmation_depth: 3, finality_depth: 4 })
    const { id } = await newCollection(hand)
    await hand.tick()
    await hand.mine()
    await hand.tick()
    await hand.mine(3)
    await tickWithoutReceipts(hand)
    expect((await issuingLane(hand)).reason).toContain("no provider has its receipt")
    const [stuck] = await findStuck(hand.world.context.db.read, new Date(Date.now() + 86_400_000))
    expect(stuck).toMatchObject({ id, reason: expect.stringContaining("no provider has its receipt") })
    await hand.settle()
    expect([await statusOf(hand, id), (await issuingLane(hand)).reason]).toEqual(["active", null])
  }, 30_000)

  test("is nobody's if the block that used it was replaced a moment later", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    await newCollection(hand)
    await hand.tick()
    await hand.mine(2)
    const { rpc } = hand.chain
    const getBlock = async (question: object) => ({
      ...(await rpc.getBlock(question as never)),
      transactions: [],
    })
    await tickWithoutReceipts(hand, { getBlock: getBlock as never })
    const { status, reason } = await issuingLane(hand)
    expect([status, reason]).toEqual(["open", null])
  }, 30_000)

  test("is another sender's, too, if an EIP-7702 authorization in another's transaction used it", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { thief } = await deployIntoNothing(hand)
    const { client } = hand.stage.anvil
    const code = { address: hand.chain.config.factory_address, chainId: hand.chain.config.chain_id }
    const authorization = await thief.signAuthorization({ ...code, nonce: 0 })
    // The sender may add invalid authorizations to the list.
    const forged = { ...authorization, r: toHex(0n, { size: 32 }), s: toHex(0n, { size: 32 }) }
    const sender = accountAt(5)
    const sent = { account: sender, chain: null, to: sender.address, gas: 200_000n }
    const hash = await client.sendTransaction({ ...sent, authorizationList: [forged, authorization] })
    await hand.mine(2)
    await hand.tick()
    const { status, reason } = await issuingLane(hand)
    expect([status, reason]).toEqual([
      "halted",
      expect.stringContaining(`nonce 0 of ${thief.address} was used by transaction ${hash}, which`),
    ])
  }, 30_000)

  test("is another sender's, too, if a node has pruned older transaction counts, but not if it lags", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { thief } = await deployIntoNothing(hand)
    const { client } = hand.stage.anvil
    await client.sendTransaction({ account: thief, chain: null, to: thief.address })
    await hand.mine(2)
    const newest = await client.getBlockNumber()
    const { chain, lanes: own } = hand
    const tickRefusing = async (message: string) => {
      await outwaitNewestBlock()
      const rpc = { ...chain.rpc, ...refusingOlder(chain.rpc, newest, message) }
      await tickLane({ ...own[1], chain: { ...chain, rpc } }).catch(() => {})
    }
    await tickRefusing("header not found")
    expect((await issuingLane(hand)).status).toBe("open")
    await hand.mine()
    await tickRefusing("missing trie node 4e1b (path ) state 0x4e1b is not available")
    const { status, reason } = await issuingLane(hand)
    expect([status, reason]).toEqual([
      "halted",
      expect.stringContaining(
        `nonce 0 of ${thief.address} was used by a transaction that no provider of chain`,
      ),
    ])
  }, 30_000)

  test("is another sender's, too, if a node returns the newest count for any block", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 })
    const { thief } = await deployIntoNothing(hand)
    await hand.stage.anvil.client.sendTransaction({ account: thief, chain: null, to: thief.address })
    await hand.mine(2)
    const { chain, lanes: own } = hand
    const getTransactionCount: typeof chain.rpc.getTransactionCount = ({ address }) =>
      chain.rpc.getTransactionCount({ address })
    await outwaitNewestBlock()
    await tickLane({ ...own[1], chain: { ...chain, rpc: { ...chain.rpc, getTransactionCount } } })
    expect((await issuingLane(hand)).status).toBe("halted")
  }, 30_000)

  test("is another sender's, too, if one of the providers knows the counts of the newest block only", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 4 }, 2)
    const { thief } = await deployIntoNothing(hand)
    await hand.stage.anvil.client.sendTransaction({ account: thief, chain: null, to: thief.address })
    await hand.mine(2)
    const { chain, lanes: own } = hand
    const askAll: typeof chain.providers.askAll = async (question) => {
      const answers = await chain.providers.askAll(question)
      const [, block] = (question.params ?? []) as unknown[]
      const isOlder = question.method === "eth_getTransactionCount" && block !== "latest"
      return isOlder ? answers.slice(1) : answers
    }
    await outwaitNewestBlock()
    await tickLane({ ...own[1], chain: { ...chain, providers: { ...chain.providers, askAll } } })
    expect((await issuingLane(hand)).status).toBe("halted")
  }, 30_000)

  test("is another sender's at the confirmation depth; the work behind it continues when a person says so", async () => {
    const hand = await open({ confirmation_depth: 2, finality_depth: 6 })
    const { id, thief } = await deployIntoNothing(hand)
    const { client } = hand.stage.anvil
    const stolen = await client.sendTransaction({ account: thief, chain: null, to: thief.address })
    const seen: string[] = []
    for (let depth = 1; depth <= 2; depth++) {
      await hand.mine()
      await hand.tick()
      seen.push((await issuingLane(hand)).status)
    }
    expect(seen).toEqual(["open", "halted"])
    const { id: laneId, reason } = await issuingLane(hand)
    expect(reason).toContain(`nonce 0 of ${thief.address} was used by transaction ${stolen}, which`)

    for (const { faults } of hand.stage.proxies) faults.swallows = false
    await hand.turn((t) => retryById(t, laneId))
    await hand.settle()
    expect(await statusOf(hand, id)).toBe("active")
    const rows = await hand.transactionsOf("deployCollection")
    expect(rows).toMatchObject([{ status: "final" }, { nonce: 1, status: "confirmed" }])
  }, 30_000)
})

describe("a nonce that is given up", () => {
  test("is filled even if gas costs exceed every estimate", async () => {
    const hand = await open()
    const [proxy] = hand.stage.proxies
    if (!proxy) throw new Error("there is a provider")
    proxy.faults.says_to_sends = "txpool is full"
    const { id } = await newCollection(hand)
    await hand.tick()
    proxy.faults.says_to_sends = null
    proxy.faults.least_gas = 600_000
    const [deployment] = await hand.transactionsOf("deployCollection")
    if (!deployment) throw new Error("the deployment has a transaction")
    await hand.turn((t) => requestCancel(t, deployment.id))
    await hand.settle()
    const attempts = await attemptsOf(hand, deployment.id)
    const [used] = await hand.transactionsOf("deployCollection")
    expect(attempts.find(({ hash }) => hash === used?.hash)?.is_cancel).toBe(true)
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)

  test("stays filled if its filler is mined again in another block, and no work is sent a second time", async () => {
    const hand = await open({ confirmation_depth: 2, finality_depth: 20 })
    const [proxy] = hand.stage.proxies
    if (!proxy) throw new Error("there is a provider")
    proxy.faults.says_to_sends = "txpool is full"
    const { id } = await newCollection(hand)
    await hand.tick()
    const [deployment] = await hand.transactionsOf("deployCollection")
    await hand.turn((t) => requestCancel(t, deployment?.id ?? ""))
    proxy.faults.says_to_sends = null
    await hand.settle()
    const { client } = hand.stage.anvil
    const before = await deploymentsByNonce(hand)
    const attempts = await hand.world.context.db.read.select().from(transactionAttempts)
    const again = before.map(({ hash }, index) => [attempts.find((each) => each.hash === hash)?.raw, index])
    const { number: head } = await client.getBlock()
    const request = client.request as (call: object) => Promise<unknown>
    await request({
      method: "anvil_reorg",
      params: [Number(head) - Number(before[0]?.block_number) + 1, again],
    })
    await hand.mine(3)
    for (let round = 0; round < 2; round++) await hand.tick()
    const after = await deploymentsByNonce(hand)
    expect(after.map(({ status, hash }) => [status, hash])).toEqual([
      ["reverted", before[0]?.hash ?? null],
      ["confirmed", before[1]?.hash ?? null],
    ])
    expect(after[0]?.block_hash).not.toBe(before[0]?.block_hash ?? null)
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)
})

describe("a transaction that was sent at two prices", () => {
  test("is found even if only the mined attempt can be looked up", async () => {
    const hand = await open()
    await newCollection(hand)
    await hand.tick()
    await hand.stage.anvil.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 20_000_000_000n })
    await hand.mine()
    await hand.tick()
    await hand.mine()
    const [deployment] = await hand.transactionsOf("deployCollection")
    const attempts = await attemptsOf(hand, deployment?.id ?? "")
    const cheap = attempts.find(({ kind }) => kind === "first")
    const { chain, lanes: own } = hand
    const request = async (question: { method: string; params?: unknown[] }) => {
      if (question.method === "eth_getTransactionReceipt" && question.params?.[0] === cheap?.hash)
        throw new Error("internal error")
      return await chain.rpc.request(question as never)
    }
    await outwaitNewestBlock()
    await tickLane({ ...own[1], chain: { ...chain, rpc: { ...chain.rpc, request } as typeof chain.rpc } })
    const [mined] = await hand.transactionsOf("deployCollection")
    expect([attempts.length, mined?.status, mined?.hash === cheap?.hash]).toEqual([2, "mined", false])
  }, 30_000)

  test("is shown by the hash that was mined, also by a chip replacement that it fails", async () => {
    const hand = await open({ confirmation_depth: 3, finality_depth: 6 })
    const { client } = hand.stage.anvil
    const { unit_id, address } = await issuedUnit(hand)
    await grant(hand, outsider.address)
    const { id } = await replaceChip(hand, unit_id)
    await hand.tick()
    const { transaction_hash: first } = await replacementNow(hand, id)
    await client.dropTransaction({ hash: first as Hex })
    await callAsOutsider(hand, address, "claim", [1n, person.address])
    await hand.mine()
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 20_000_000_000n })
    await hand.mine()
    await hand.tick()
    await hand.mine()
    await hand.tick()
    const [mined] = await hand.transactionsOf("replaceChip")
    expect([mined?.status, mined?.hash === first]).toEqual(["mined", false])
    const shown = { transaction_hash: mined?.hash ?? null }
    expect(await replacementNow(hand, id)).toMatchObject({ status: "submitted", ...shown })
    await hand.settle()
    expect(await replacementNow(hand, id)).toMatchObject({ status: "failed", ...shown })
  }, 30_000)
})

describe("a chain that replaces final blocks", () => {
  test("halts the lane that remembers them", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 2 })
    await newCollection(hand)
    await hand.settle()
    await newCollection(hand)
    await hand.tick()
    await hand.mine(4)
    await hand.tick()
    const { client } = hand.stage.anvil
    // The same transactions are in other blocks, so no nonce reveals it.
    const mined = await hand.transactionsOf("deployCollection")
    const lowest = Math.min(...mined.map(({ block_number }) => block_number ?? 0))
    const attempts = await hand.world.context.db.read.select().from(transactionAttempts)
    const { number: head } = await client.getBlock()
    const instead = mined
      .toSorted((one, other) => one.nonce - other.nonce)
      .map(({ hash }, index) => [attempts.find((each) => each.hash === hash)?.raw, index])
    const request = client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [Number(head) - lowest + 1, instead] })
    await newCollection(hand)
    await hand.mine(3)
    await hand.tick()
    const row = await issuingLane(hand)
    expect(row).toMatchObject({ status: "halted" })
    expect(row.reason).toContain("which was final")
  }, 30_000)

  test("has the lost transactions sent again once a person confirms the new blocks", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 2 })
    const { address } = await activeCollection(hand)
    await hand.mine(2)
    await hand.tick()
    const [lost] = await hand.transactionsOf("deployCollection")
    expect(lost?.status).toBe("final")
    const { client } = hand.stage.anvil
    const { number: head } = await client.getBlock()
    const request = client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [Number(head) - (lost?.block_number ?? 0) + 1, []] })
    await client.dropTransaction({ hash: lost?.hash as Hex })
    const { id } = await newCollection(hand)
    await hand.mine(2)
    await hand.tick()
    expect(await client.getCode({ address: address as Hex })).toBeUndefined()
    const { status, id: laneId } = await issuingLane(hand)
    expect(status).toBe("halted")

    await hand.turn((t) => retryById(t, laneId))
    await hand.tick()
    // Its effects have to be achieved once more.
    const [sentAgain] = await deploymentsByNonce(hand)
    expect(sentAgain).toMatchObject({ status: "confirmed", block_hash: null })
    await hand.settle()
    expect(await client.getCode({ address: address as Hex })).toBeString()
    expect(await statusOf(hand, id)).toBe("active")
    expect((await hand.transactionsOf("deployCollection")).map(({ nonce }) => nonce)).toEqual([0, 1])
  }, 30_000)

  test("is not trusted before all providers agree, which the lane's row says", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 2 }, 2)
    await newCollection(hand)
    await hand.tick()
    await hand.mine(3)
    await hand.tick()
    const { number: head } = await hand.stage.anvil.client.getBlock()
    const { final_block_number: known } = await issuingLane(hand)
    expect(known).toBe(Number(head) - 1)
    const second = hand.stage.proxies[1]
    if (!second) throw new Error("there are two providers")
    second.faults.is_forked = true
    await newCollection(hand)
    await hand.mine()
    const { chain, lanes: own } = hand
    const at = async (number: bigint) => ({ ...(await chain.headers.at(number)), hash: "0x00" as const })
    await outwaitNewestBlock()
    const round = tickLane({ ...own[1], chain: { ...chain, headers: { ...chain.headers, at } } })
    await expect(round).rejects.toThrow("not all providers agree")
    const row = await issuingLane(hand)
    expect(row).toMatchObject({ status: "open", final_block_number: known })
    expect(row.reason).toContain(`agree on block ${known}`)
  }, 30_000)
})

describe("a key that another sender uses as well", () => {
  test("halts its lane until a person lets it continue", async () => {
    const hand = await open()
    await activeCollection(hand)
    const account = accountAt(2)
    await hand.stage.anvil.client.sendTransaction({ account, chain: null, to: account.address })
    await hand.mine()
    const { id } = await newCollection(hand)
    const [, lane] = hand.lanes
    const said: unknown[] = []
    const log = { ...lane.context.log, error: (fields: object) => void said.push(fields) }
    await outwaitNewestBlock()
    await tickLane({ ...lane, context: { ...lane.context, log } })
    const { status, reason, id: laneId } = await issuingLane(hand)
    expect(status).toBe("halted")
    expect(said).toEqual([{ lane_id: laneId, reason }])
    expect(reason).toContain(`has 2 transactions of ${account.address}, but the database knows of 1`)
    expect(await hand.transactionsOf("deployCollection")).toHaveLength(1)

    await hand.turn((t) => retryById(t, laneId))
    await hand.settle()
    expect(await statusOf(hand, id)).toBe("active")
    expect((await hand.transactionsOf("deployCollection")).map(({ nonce }) => nonce)).toEqual([0, 2])
  }, 30_000)
})

describe("a lane that is released", () => {
  test("can be taken at once by another holder, which writes under a new epoch", async () => {
    const hand = await open()
    const [, lane] = hand.lanes
    await tickLane(lane)
    const { id, lease_epoch } = await issuingLane(hand)
    const next = { owner: "next", lease_milliseconds: 60_000 }
    expect(await hand.turn((t) => takeLease(t, id, next))).toBeNull()
    await leaveLane(lane)
    const taken = await hand.turn((t) => takeLease(t, id, next))
    expect(taken?.lease).toMatchObject({ owner: "next", epoch: lease_epoch + 1 })
  }, 30_000)

  test("while the database is down is left to its lease, and the process exits normally", async () => {
    const { lanes: own } = await open()
    const [, lane] = own
    const said: unknown[] = []
    const log = { ...lane.context.log, warn: (fields: object) => void said.push(fields) }
    const transaction = () => Promise.reject(new DatabaseUnavailable("nobody is there"))
    await leaveLane({ ...lane, context: { ...lane.context, log, db: { ...lane.context.db, transaction } } })
    const { lane_id } = lane.signer
    expect(said).toEqual([{ lane_id, error: "DatabaseUnavailable: nobody is there" }])
  }, 30_000)
})

describe("a round that does not end", () => {
  test("keeps its lane from other holders only until the lease expires", async () => {
    const hand = await open()
    const { chain, lanes: own } = hand
    const answer = Promise.withResolvers<void>()
    const follow = () => answer.promise.then(() => chain.headers.follow())
    const claimant = { owner: "stuck", lease_milliseconds: 60 }
    const stuck = { ...own[1], chain: { ...chain, headers: { ...chain.headers, follow } }, claimant }
    const round = tickLane(stuck)
    const { id } = await issuingLane(hand)
    const next = { owner: "next", lease_milliseconds: 60_000 }
    while ((await hand.turn((t) => takeLease(t, id, next))) === null) await Bun.sleep(20)
    answer.resolve()
    await expect(round).rejects.toBeInstanceOf(LeaseLost)
  }, 30_000)
})

describe("an unreachable provider", () => {
  test("is named in the row of a lane that needs it, until it is back", async () => {
    const hand = await open()
    const { chain, lanes: own } = hand
    const health = (): ReturnType<typeof chain.providers.health> => [
      { number: 1, state: "healthy", troubled_seconds: 0, said: null },
      { number: 2, state: "gone", troubled_seconds: 4_000, said: "nobody is there" },
    ]
    await newCollection(hand)
    await tickLane({ ...own[1], chain: { ...chain, providers: { ...chain.providers, health } } })
    const { status, reason } = await issuingLane(hand)
    expect(status).toBe("open")
    expect(reason).toContain("provider number 2 in rpc_urls of chain 31337 has not answered for an hour")
    expect(reason).toContain("(nobody is there)")
    await hand.mine()
    await hand.tick()
    expect((await issuingLane(hand)).reason).toBeNull()
  }, 30_000)
})

describe("a nonce used by another sender after its results were given and its block replaced", () => {
  test("halts the lane, which repeats the work when a person lets it continue", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 30 })
    const { id, address } = await activeCollection(hand)
    const { client } = hand.stage.anvil
    const [given] = await hand.transactionsOf("deployCollection")
    const { number: head } = await client.getBlock()
    const request = client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [Number(head) - (given?.block_number ?? 0) + 1, []] })
    const thief = accountAt(2)
    await client.sendTransaction({ account: thief, chain: null, to: thief.address, nonce: given?.nonce ?? 0 })
    await hand.mine(3)
    for (let round = 0; round < 2; round++) await hand.tick()
    expect(await issuingLane(hand)).toMatchObject({
      status: "halted",
      reason: expect.stringContaining("nonce 0 of"),
    })

    await hand.turn((t) => retryById(t, String(given?.lane_id)))
    await hand.tick()
    const statuses = async () => (await hand.transactionsOf("deployCollection")).map(({ status }) => status)
    expect(await statuses()).toEqual(["final", "sent"])
    for (let round = 0; round < 4; round++) {
      await hand.tick()
      await hand.mine()
    }
    expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
    expect(await client.getCode({ address: address as Hex })).toBeString()
    expect(await statuses()).toEqual(["final", "confirmed"])
    expect(await statusOf(hand, id)).toBe("active")
  }, 30_000)
})

describe("a chip replacement that the contract rejects", () => {
  test("is retried for as many blocks as the confirmation depth before it fails", async () => {
    const hand = await open({ confirmation_depth: 3, finality_depth: 8 })
    const { unit_id, address } = await issuedUnit(hand)
    await claimPastTheLane(hand, address)
    const { id } = await replaceChip(hand, unit_id)
    await hand.tick()
    const { read } = hand.world.context.db
    const [effect] = await read.select().from(effects).where(eq(effects.actor_id, id))
    expect(effect).toMatchObject({ status: "open", attempts: 1 })
    expect(effect?.last_error).toContain("ChipLocked")
    const effectNow = async () => (await read.select().from(effects).where(eq(effects.actor_id, id)))[0]
    while ((await effectNow())?.status === "open") {
      await hand.mine()
      await hand.tick()
    }
    expect(await effectNow()).toMatchObject({ status: "failed", attempts: 3 })
    expect(await replacementStatus(hand, id)).toBe("failed")
  }, 30_000)

  test("is not failed permanently for a node that does not have the previous replacement yet", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 20 })
    const { unit_id } = await issuedUnit(hand)
    const behind = await hand.stage.anvil.client.getBlockNumber()
    const first = await replaceChip(hand, unit_id)
    await hand.settle()
    expect(await replacementStatus(hand, first.id)).toBe("confirmed")
    const second = await replaceChip(hand, unit_id)
    const { chain, lanes: own } = hand
    const estimateGas: typeof chain.rpc.estimateGas = ({ blockTag: _newest, ...call }) =>
      chain.rpc.estimateGas({ ...call, blockNumber: behind } as never)
    const { read } = hand.world.context.db
    const effectNow = async () =>
      (await read.select().from(effects).where(eq(effects.actor_id, second.id)))[0]
    while (((await effectNow())?.attempts ?? 0) < 3) {
      await outwaitNewestBlock()
      for (const lane of own)
        await tickLane({ ...lane, chain: { ...chain, rpc: { ...chain.rpc, estimateGas } } })
    }
    expect(await effectNow()).toMatchObject({
      status: "open",
      last_error: expect.stringContaining("ChipMismatch"),
    })
    await hand.settle()
    expect(await replacementStatus(hand, second.id)).toBe("confirmed")
  }, 30_000)

  test("fails only when no reorganization can turn it into a success any more", async () => {
    const hand = await open({ confirmation_depth: 2, finality_depth: 20 })
    const { unit_id, address } = await issuedUnit(hand)
    const { client } = hand.stage.anvil
    const [proxy] = hand.stage.proxies
    const stranger = accountAt(8)
    await grant(hand, stranger.address, 4n)
    // Signed while nothing is in the way, and accepted by the pool after another sender's replacement.
    if (proxy) proxy.faults.says_to_sends = "txpool is full"
    const replacement = await replaceChip(hand, unit_id)
    await hand.tick()
    await client.writeContract({
      ...{ account: stranger, chain: null, address: address as Hex, abi: collectionAbi },
      ...{
        functionName: "replaceChip",
        args: [1n, Number.parseInt(replacement.previous_chip_id, 16), 99],
      },
    })
    await hand.mine()
    const { number: before } = await client.getBlock()
    if (proxy) proxy.faults.says_to_sends = null
    await hand.tick()
    await hand.mine(4)
    for (let round = 0; round < 3; round++) await hand.tick()
    const { read } = hand.world.context.db
    const [sent] = await hand.transactionsOf("replaceChip")
    const [attempt] = await read
      .select()
      .from(transactionAttempts)
      .where(eq(transactionAttempts.transaction_id, sent?.id ?? ""))
    expect(await client.getTransactionReceipt({ hash: attempt?.hash as Hex })).toMatchObject({
      status: "reverted",
    })
    expect(await replacementStatus(hand, replacement.id)).toBe("submitted")

    const { number: head } = await client.getBlock()
    const request = client.request as (call: object) => Promise<unknown>
    const depth = Number(head - before) + 1
    await request({ method: "anvil_reorg", params: [depth, [[attempt?.raw, 0]]] })
    await hand.settle()
    expect(await replacementStatus(hand, replacement.id)).toBe("confirmed")
  }, 30_000)

  const depths = { confirmation_depth: 3, finality_depth: 20 }
  test.each([
    ["is confirmed with that transaction", depths.confirmation_depth],
    ["only one block ago is confirmed with it, too, after a transaction without effect", 1],
  ])(
    "and that another transaction achieved after it %s",
    async (_what, blocks) => {
      const hand = await open(depths)
      const { unit_id, address } = await issuedUnit(hand)
      const { client } = hand.stage.anvil
      const [proxy] = hand.stage.proxies
      const stranger = accountAt(8)
      await grant(hand, stranger.address, 4n)
      const swap = async (previous: number, chip: number) =>
        await client.writeContract({
          ...{ account: stranger, chain: null, address: address as Hex, abi: collectionAbi },
          ...{ functionName: "replaceChip", args: [1n, previous, chip], gas: 300_000n },
        })
      if (proxy) proxy.faults.says_to_sends = "txpool is full"
      const { id, previous_chip_id, chip_id } = await replaceChip(hand, unit_id)
      await hand.tick()
      await swap(Number.parseInt(previous_chip_id, 16), 99)
      await hand.mine()
      if (proxy) proxy.faults.says_to_sends = null
      await hand.tick()
      await hand.mine(3)
      const made = await swap(99, Number.parseInt(chip_id, 16))
      await hand.mine(blocks)
      await hand.settle()
      const [own, ...anew] = await hand.transactionsOf("replaceChip")
      expect(await client.getTransactionReceipt({ hash: own?.hash as Hex })).toMatchObject({
        status: "reverted",
      })
      const [row] = await hand.world.context.db.read
        .select()
        .from(chipReplacements)
        .where(eq(chipReplacements.id, id))
      expect(row).toMatchObject({ status: "confirmed", transaction_hash: made })
      expect(anew).toHaveLength(blocks === 1 ? 1 : 0)
    },
    30_000,
  )
})

describe("a transaction that reverted because its work was already done", () => {
  test("succeeds if the claim's recipient has since transferred the unit", async () => {
    const { hand, address, silence } = await openSilent()
    const { client } = hand.stage.anvil
    const holder = accountAt(6)
    const claim = await relayClaim(hand, hand.unit_id, 6)
    await hand.tick()
    const call = { chain: null, address, abi: collectionAbi, gas: 300_000n } as const
    const made = await client.writeContract({
      ...{ ...call, account: stranger, functionName: "claim", args: [1n, holder.address] },
    })
    await hand.mine()
    const { authorization_nonce } = await hand.chain.ownershipOf(address, 1)
    const { transaction } = await hand.chain.authorizeTransfer({
      ...{ contract: address, serial: 1, sender: holder.address, recipient: accountAt(7).address },
      ...{ authorization_nonce, deadline_at: new Date(Date.now() + 600_000) },
    })
    const { to, data } = transaction as { to: Address; data: Hex }
    await client.sendTransaction({ account: holder, chain: null, to, data, gas: 300_000n })
    await hand.mine()
    silence(null)
    await hand.settle()
    expect(await hand.chain.ownerOf(address, 1)).toBe(accountAt(7).address)
    const [row] = await hand.world.context.db.read.select().from(claims).where(eq(claims.id, claim.id))
    expect(row).toMatchObject({ status: "claimed", transaction_hash: made })
  }, 30_000)

  test("succeeds if the chip has since been replaced again", async () => {
    const { hand, address, silence } = await openSilent()
    const { id, previous_chip_id, chip_id } = await replaceChip(hand, hand.unit_id)
    await hand.tick()
    const swap = async (previous: number, chip: number) => {
      const hash = await hand.stage.anvil.client.writeContract({
        ...{ account: stranger, chain: null, address, abi: collectionAbi, gas: 300_000n },
        ...{ functionName: "replaceChip", args: [1n, previous, chip] },
      })
      await hand.mine()
      return hash
    }
    const wanted = Number.parseInt(chip_id, 16)
    const made = await swap(Number.parseInt(previous_chip_id, 16), wanted)
    await swap(wanted, 99)
    silence(null)
    await hand.settle()
    const [row] = await hand.world.context.db.read
      .select()
      .from(chipReplacements)
      .where(eq(chipReplacements.id, id))
    expect(row).toMatchObject({ status: "confirmed", transaction_hash: made })
  }, 30_000)

  const stranger = accountAt(8)

  /** A unit, another sender with every role, and a pool that accepts nothing until told otherwise. */
  async function openSilent() {
    const opened = await open()
    const { unit_id, address } = await issuedUnit(opened)
    const [proxy] = opened.stage.proxies
    if (!proxy) throw new Error("there is a provider")
    await grant(opened, stranger.address, 15n)
    const silence = (words: string | null) => {
      proxy.faults.says_to_sends = words
    }
    silence("txpool is full")
    return { hand: { ...opened, unit_id }, address: address as Hex, silence }
  }
})

describe("postponed work", () => {
  const now = new Date("2040-01-01T00:00:00.000Z")
  /** An effect after a round of every lane at this time, with the given number of earlier attempts. */
  async function triedAgain(hand: ByHand, id: string, attempts: number) {
    const { read } = hand.world.context.db
    await hand.turn(({ tx }) => tx.update(effects).set({ attempts, due_at: now }).where(eq(effects.id, id)))
    await hand.mine()
    await outwaitNewestBlock()
    for (const lane of hand.lanes) {
      const chain = { ...lane.chain, config: { ...lane.chain.config, confirmation_depth: 25 } }
      await tickLane({ ...lane, chain, context: { ...lane.context, clock: () => now } })
    }
    const [effect] = await read.select().from(effects).where(eq(effects.id, id))
    return { ...effect, milliseconds: (effect?.due_at.getTime() ?? 0) - now.getTime() }
  }

  test("whose call reverts waits a block longer each time, up to ten", async () => {
    const hand = await open()
    const { unit_id, address } = await issuedUnit(hand)
    await claimPastTheLane(hand, address)
    const { id } = await replaceChip(hand, unit_id)
    const [{ id: effectId } = { id: "" }] = await hand.world.context.db.read
      .select()
      .from(effects)
      .where(eq(effects.actor_id, id))
    for (const [before, blocks] of [
      [0, 1],
      [3, 4],
      [20, 10],
    ] as const) {
      const put = await triedAgain(hand, effectId, before)
      expect(put).toMatchObject({ status: "open", attempts: before + 1, milliseconds: blocks * 150 })
      expect(put.last_error).toContain("ChipLocked")
    }
  }, 30_000)

  test("that cannot be planned waits twice as long each time, up to ten minutes", async () => {
    const hand = await open()
    const { id } = await activeCollection(hand)
    const unit_id = await pairedUnit(hand, id)
    const nowhere = newId()
    const { read } = hand.world.context.db
    const [waiting] = await read.select().from(effects).where(eq(effects.actor_id, unit_id))
    const effectId = waiting?.id ?? ""
    await hand.turn(({ tx }) =>
      tx
        .update(effects)
        .set({ input: { ...waiting?.input, collection_id: nowhere } })
        .where(eq(effects.id, effectId)),
    )
    for (const [before, seconds] of [
      [0, 1],
      [3, 8],
      [20, 600],
    ] as const) {
      const put = await triedAgain(hand, effectId, before)
      expect(put).toMatchObject({ status: "open", attempts: before + 1, milliseconds: seconds * 1_000 })
      expect(put.last_error).toContain(`there is no collection ${nowhere}`)
    }
  }, 30_000)
})

describe("a collection whose work cannot be planned", () => {
  test("delays nobody else's work, however much of it waits", async () => {
    const hand = await open()
    const blocked = await activeCollection(hand)
    const well = await activeCollection(hand)
    const unit_id = await pairedUnit(hand, well.id)
    const { read } = hand.world.context.db
    const [example] = await read.select().from(effects).where(eq(effects.actor_id, unit_id))
    if (!example) throw new Error("the unit waits to be issued")
    const tomorrow = new Date(hand.world.context.clock().getTime() + 300_000)
    await hand.turn(async ({ tx }) => {
      for (let from = 0; from < 1_700; from += 100)
        await tx.insert(effects).values(
          Array.from({ length: 100 }, (_, index) => ({
            ...example,
            id: `00000000-0000-7000-8000-${String(from + index).padStart(12, "0")}`,
            invoke_id: `blocked ${from + index}`,
            input: { ...example.input, collection_id: blocked.id },
            attempts: from + index === 0 ? 1 : 0,
            due_at: tomorrow,
          })),
        )
    })
    await hand.tick()
    const [effect] = await read.select().from(effects).where(eq(effects.id, example.id))
    expect(effect?.transaction_id).not.toBeNull()
  }, 60_000)
})

describe("idle lanes", () => {
  test("make no requests to their chain", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 2 })
    await issuedUnit(hand)
    for (let round = 0; round < 4; round++) {
      await hand.mine()
      await hand.tick()
    }
    const before = hand.stage.proxies[0]?.asked
    for (let round = 0; round < 5; round++) {
      await hand.mine()
      await hand.tick()
    }
    expect(hand.stage.proxies[0]?.asked).toBe(before)
    await hand.turn(({ tx }) => tx.update(lanes).set({ status: "halted", reason: "a thief" }))
    await hand.mine()
    await hand.tick()
    expect(hand.stage.proxies[0]?.asked).toBe(before)
  }, 30_000)

  test("clear the reason in their row when the problem is over", async () => {
    const hand = await open()
    await activeCollection(hand)
    for (const held of [
      { status: "paused", reason: "no money" },
      { status: "open", reason: "a provider is gone" },
    ] as const) {
      await hand.turn(({ tx }) => tx.update(lanes).set(held))
      await hand.mine(7)
      for (let round = 0; round < 2; round++) await hand.tick()
      expect(await issuingLane(hand)).toMatchObject({ status: "open", reason: null })
    }
  }, 30_000)
})

describe("an idle watch", () => {
  test("requests the newest block once per block time, however often it runs", async () => {
    const hand = await open({ confirmation_depth: 1, finality_depth: 2, block_time_seconds: 0.5 })
    const { context } = hand.world
    const [proxy] = hand.stage.proxies
    await watchAuthorizations(context, hand.chain, () => {})
    const [begin, before] = [performance.now(), proxy?.asked ?? 0]
    for (let round = 0; round < 50; round++) await watchAuthorizations(context, hand.chain, () => {})
    const blockTimes = Math.ceil((performance.now() - begin) / 500)
    expect((proxy?.asked ?? 0) - before).toBeLessThanOrEqual(blockTimes)
  }, 30_000)
})

/** Has waiting work signed, and mined after another key with the role has made the same call. */
async function sendAfter(
  hand: ByHand,
  role: bigint,
  call: Pick<ContractFunctionParameters, "address" | "abi" | "functionName" | "args">,
) {
  const { client } = hand.stage.anvil
  const [proxy] = hand.stage.proxies
  if (!proxy) throw new Error("there is a provider")
  const other = accountAt(8)
  await grant(hand, other.address, role)
  proxy.faults.says_to_sends = "txpool is full"
  await hand.tick()
  await client.writeContract({ ...call, account: other, chain: null })
  await hand.mine()
  proxy.faults.says_to_sends = null
  await hand.tick()
  await hand.mine(3)
}

/** Claims serial 1 with the lane's own key, and makes the lane read its nonces from the chain again. */
async function claimPastTheLane(hand: ByHand, address: string) {
  await hand.stage.anvil.client.writeContract({
    ...{ account: accountAt(1), chain: null, address: address as Hex, abi: collectionAbi },
    ...{ functionName: "claim", args: [1n, accountAt(7).address] },
  })
  await hand.mine()
  await hand.turn(({ tx }) => tx.update(lanes).set({ next_nonce: null }))
}

/** Runs a round of every lane, during which the newest block is reported by a lagging node. */
async function tickBehind({ chain, lanes: own }: ByHand, behind: bigint) {
  const { rpc, headers } = chain
  const old = {
    ...rpc,
    getCode: (question: object) => rpc.getCode({ blockNumber: behind, ...question } as never),
    readContract: (question: object) => rpc.readContract({ blockNumber: behind, ...question } as never),
  } as typeof rpc
  await outwaitNewestBlock()
  for (const lane of own) {
    let asked = 0
    const follow = async () => (asked++ === 0 ? await headers.follow() : await headers.at(behind))
    await tickLane({ ...lane, chain: { ...chain, rpc: old, headers: { ...headers, follow } } })
  }
}

/** A deployment that every provider accepts and relays to no one, and an account with the same key. */
async function deployIntoNothing(hand: ByHand) {
  for (const { faults } of hand.stage.proxies) faults.swallows = true
  const { id } = await newCollection(hand)
  await hand.tick()
  return { id, thief: accountAt(2) }
}

/** A round of the issuing lane in which one provider returns no receipts. */
async function tickWithoutReceipts(hand: ByHand, others: Partial<Rpc> = {}) {
  const chain = withoutReceipts(hand)
  await outwaitNewestBlock()
  await tickLane({
    ...hand.lanes[1],
    chain: { ...chain, rpc: { ...chain.rpc, ...others } as typeof chain.rpc },
  })
}

/** Rejects counts of blocks older than this with the given words. */
function refusingOlder(rpc: Rpc, oldest: bigint, message: string): Pick<Rpc, "getTransactionCount"> {
  return {
    async getTransactionCount(question) {
      if (question.blockNumber === undefined || question.blockNumber >= oldest)
        return await rpc.getTransactionCount(question)
      throw new RpcRequestError({ body: {}, url: "", error: { code: -32_000, message } })
    },
  }
}

async function relayClaim(hand: ByHand, unit_id: string, account: number) {
  const body = { recipient: accountAt(account).address, execution: "service_relay" } as const
  const prepared = await prepareClaim(hand.world.context, hand.caller, unit_id, body)
  return await hand.turn((t) => createClaim(t, hand.caller, { unit_id, body, prepared }))
}

async function deploymentsByNonce(hand: ByHand) {
  const rows = await hand.transactionsOf("deployCollection")
  return rows.toSorted((one, other) => one.nonce - other.nonce)
}

async function attemptsOf(hand: ByHand, transactionId: string) {
  return await hand.world.context.db.read
    .select()
    .from(transactionAttempts)
    .where(eq(transactionAttempts.transaction_id, transactionId))
}

async function statusOf(hand: ByHand, collectionId: string) {
  const [row] = await hand.world.context.db.read
    .select()
    .from(collections)
    .where(eq(collections.id, collectionId))
  return row?.status ?? ""
}

async function replacementStatus(hand: ByHand, id: string) {
  const [row] = await hand.world.context.db.read
    .select()
    .from(chipReplacements)
    .where(eq(chipReplacements.id, id))
  return row?.status
}
