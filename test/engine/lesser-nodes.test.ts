import { afterEach, describe, expect, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { type Address, decodeFunctionData, type Hex, keccak256, numberToHex, pad } from "viem"
import { type ClaimRow, claims, collections, lanes, transactions } from "../../src/db/schema.ts"
import { roleFaults } from "../../src/engine/chain/check-roles.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { openWorld } from "../../src/engine/world.ts"
import { readRoles } from "../../src/operator/verbs/chain-roles.ts"
import { readChainStatus, readKeyFaults } from "../../src/operator/verbs/chain-status.ts"
import { loadConfig } from "../../src/platform/config.ts"
import type { Context } from "../../src/platform/context.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { accountAt, keyAt, openStage } from "../faults/stage.ts"
import { awakeUntilSettled } from "../harness/awake.ts"
import { outwaitNewestBlock } from "../harness/by-hand.ts"
import { anotherUnit, issuedUnit, runWorkers, until } from "../harness/engine.ts"
import { type Call, type Said, startLesserNode } from "../harness/lesser-node.ts"

type Lack = Parameters<typeof startLesserNode>[1]

const says = (code: number, message: string): Said => ({ error: { code, message } })
const isTag = (param: unknown) => ["finalized", "safe", "pending"].includes(String(param))
const hasTag = ({ params = [] }: Call) => params.some(isTag)
const isAboutFees = ({ method }: Call) => ["eth_feeHistory", "eth_maxPriorityFeePerGas"].includes(method)
const isEstimateAt = ({ method, params = [] }: Call) => method === "eth_estimateGas" && params.length > 1

const lesser: Record<string, Lack> = {
  "has no second argument of estimates, no block tags but latest, no advice on fees, and forgets what is pending":
    (call) => {
      if (isEstimateAt(call)) return says(-32_602, "too many arguments, want at most 1")
      if (hasTag(call)) return says(-32_602, "invalid block tag")
      if (isAboutFees(call)) return says(-32_601, `the method ${call.method} does not exist/is not available`)
      return call.method === "eth_getTransactionByHash" ? { result: null } : null
    },
  "says the same in other words": (call) => {
    if (isEstimateAt(call)) return says(-32_602, "Invalid params: expected 1 parameter, got 2")
    if (hasTag(call)) return says(-39_001, "unknown block")
    return isAboutFees(call) ? says(-32_004, "method not supported") : null
  },
  "says of a block tag, in words and under a code that say nothing, that it does not know it": (call) =>
    hasTag(call) ? says(-32_000, `${call.params?.find(isTag)} block is not available`) : null,
}

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe("a unit can be issued and claimed through a node that", () => {
  for (const [what, lack] of Object.entries(lesser)) {
    test(`${what}, as the only one`, async () => {
      const { running } = await openBehind(lack, { isAlone: true })
      await issueAndClaim(running)
      expect(await reasonsOf(running)).toEqual([null, null])
    }, 40_000)

    test(`${what}, with another one to help out, and without treating it as failing`, async () => {
      const { running, chain } = await openBehind(lack, { isAlone: false })
      await issueAndClaim(running)
      expect(await reasonsOf(running)).toEqual([null, null])
      expect(chain.providers.health().map(({ state }) => state)).toEqual(["healthy", "healthy"])
    }, 40_000)
  }
})

for (const result of [null, "0x"])
  test(`a unit can be issued and claimed if one of two nodes says ${result} to each question about fees`, async () => {
    const isAskedForFees = (call: Call) => call.method === "eth_gasPrice" || isAboutFees(call)
    const { running } = await openBehind((call) => (isAskedForFees(call) ? { result } : null), {
      isAlone: false,
    })
    await issueAndClaim(running)
    expect(await reasonsOf(running)).toEqual([null, null])
  }, 60_000)

describe("an authorizer can be rotated through a node that", () => {
  for (const [what, lack] of Object.entries(lesser))
    test(`${what}, as the only one`, async () => {
      const { running, chain, open } = await openBehind(lack, { isAlone: true })
      const { unit_id, collection_id } = await issuedUnit(running)
      const before = await walletClaim(running.context, running, { unit_id, wallet: 7 })
      const next = await open({ AUTHORIZER_KEY: keyAt(4) })
      expect((await roleFaults(next.chain)).map(({ variable }) => variable)).toEqual(["AUTHORIZER_KEY"])

      await nameAuthorizer(running, accountAt(4).address)
      expect(await roleFaults(chain)).toEqual([])
      expect(await roleFaults(next.chain)).toEqual([])
      const roles = await readRoles(next.chain)
      expect(roles).toMatchObject({ authorizer: accountAt(4).address, calls: [] })
      expect(roles.previous_authorizer?.account).toBe(accountAt(3).address)

      const other = await anotherUnit(running, collection_id)
      const after = await walletClaim(next.world.context, running, { unit_id: other, wallet: 8 })
      await sendClaim(running, before, 7)
      await sendClaim(running, after, 8)
      for (const claim of [before, after])
        await until(async () => (await claimOf(running, claim.id))?.status === "claimed")
      const status = await readChainStatus(next.world.context)
      expect(status.chains).toMatchObject([{ reachable: true, error: null }])
      expect(await readKeyFaults(next.world.chains)).toEqual([])
    }, 40_000)
})

// PublicNode accepts three contracts at a time on Ethereum; geth and resellers of it, a thousand or fewer.
describe("a claim from a wallet is found through a node that accepts only some of five collections at once", () => {
  for (const [code, words] of [
    [-32_701, "Please, specify less number of addresses"],
    [-32_000, "exceed max addresses or topics per search position"],
  ] as const)
    test(`and says “${words}”, as the only one`, async () => {
      const { running, chain } = await openBehind((call) => (isForMany(call) ? says(code, words) : null), {
        isAlone: true,
      })
      const { context, caller, turn } = running
      const { unit_id } = await issuedUnit(running)
      for (const name of ["Spring", "Summer", "Winter", "Rain"])
        await turn((t) => createCollection(t, context.chains, caller, { name }))
      const claim = await walletClaim(context, running, { unit_id, wallet: 7 })
      await sendClaim(running, claim, 7)
      await until(async () => (await claimOf(running, claim.id))?.status === "claimed")
      expect(chain.providers.health()).toMatchObject([{ state: "healthy", said: null }])
    }, 60_000)
})

test("a claim is prepared for a wallet even if nodes behind one URL briefly lack the block that another has reported", async () => {
  const lacks = { times: 0, code: -32_000, words: "" }
  const lack: Lack = ({ method, params }) => {
    if (lacks.times === 0 || method !== "eth_call" || params?.[1] === "latest") return null
    lacks.times -= 1
    return says(lacks.code, lacks.words)
  }
  const { running } = await openBehind(lack, { isAlone: true })
  const { unit_id } = await issuedUnit(running)
  const claim = () => walletClaim(running.context, running, { unit_id, wallet: 7 })
  for (const [code, words] of [
    [-32_000, "header not found"],
    [-32_602, "Invalid block param (block not found)"],
    [-32_000, "cannot query unfinalized data"],
    [-32_001, `${keccak256("0x01")} could not be found`],
    [-32_002, `No state available for block ${keccak256("0x01")}`],
    [-32_603, `hash ${keccak256("0x01").slice(2)} is not currently canonical`],
    [-32_602, "BlockOutOfRangeError: block height is 20 but requested was 21"],
  ] as const) {
    Object.assign(lacks, { times: 6, code, words })
    expect((await claim()).status).toBe("claiming")
  }
  lacks.times = Infinity
  const refused = claim()
  expect(await awakeUntilSettled(refused)).toBeLessThan(3_500)
  await expect(refused).rejects.toMatchObject({ code: "claim.owner_unknown" })
}, 40_000)

test.each([
  [200, -32_602, "invalid argument 1: json: cannot unmarshal object into Go value of type string"],
  [200, -32_000, "invalid argument 1: json: cannot unmarshal object into Go value of type string"],
  [200, -32_700, "unmarshaling params for 'eth_call' (param: *ethtypes.EthBlockNumberOrHash): malformed"],
  [200, -32_603, "invalid type: map, expected a string"],
  [400, -32_602, "Invalid parameter 1: Invalid block value: [object Object]"],
])(
  "a claim is prepared for a wallet through a node that knows no blocks by hash and says %i, %i “%s”",
  async (status, code, words) => {
    const lack: Lack = (call) => (isByHash(call) ? { ...says(code, words), status } : null)
    const { running, chain } = await openBehind(lack, { isAlone: true })
    const { unit_id } = await issuedUnit(running)
    const claim = await walletClaim(running.context, running, { unit_id, wallet: 7 })
    expect(claim.status).toBe("claiming")
    expect(chain.providers.health()).toMatchObject([{ state: "healthy" }])
  },
  40_000,
)

test.each([
  ["", () => null],
  [
    " and knows no blocks by hash",
    (call: Call) => (isByHash(call) ? says(-32_602, "invalid argument 1") : null),
  ],
] as const)(
  "the owner and the nonce of a token are those of one block, though another provider follows another fork%s",
  async (_what, other) => {
    const fork = { block: null as object | null, refusals: 0 }
    const { running, chain } = await openBehind(
      ({ method, params = [] }) => {
        if (!fork.block) return null
        if (method === "eth_getBlockByNumber") return { result: fork.block }
        if (method !== "eth_call") return null
        const functionName = functionIn(params)
        if (functionName === "authorizationNonce" && fork.refusals-- > 0)
          return says(-32_000, "header not found")
        return { result: saidOnTheFork[functionName] ?? null }
      },
      { isAlone: false, other },
    )
    const { address } = await issuedUnit(running)
    await running.workers.stop()
    Object.assign(fork, { block: await blockOfTheFork(running), refusals: 2 })
    expect(await chain.ownershipOf(address, 1)).toMatchObject({
      owner: accountAt(9).address,
      authorization_nonce: 5,
    })
  },
  40_000,
)

test("a claim is prepared for a wallet through a provider that knows no blocks by hash while another one is stuck", async () => {
  const stuck = { block: null as { number: Hex } | null }
  const { running, chain } = await openBehind(
    ({ method, params: [first] = [] }) => {
      const { block } = stuck
      if (!block) return null
      if (method === "eth_blockNumber") return { result: block.number }
      if (method === "eth_getBlockByNumber") return { result: first === "latest" ? block : null }
      return method === "eth_call" ? says(-32_000, "header not found") : null
    },
    { isAlone: false, other: (call) => (isByHash(call) ? says(-32_602, "invalid argument 1") : null) },
  )
  const { unit_id } = await issuedUnit(running)
  const { client } = running.stage.anvil
  stuck.block = await newestBlock(running)
  await running.blocks.betweenBlocks(() => client.mine({ blocks: 40 }))
  await chain.providers.rank()
  expect(chain.providers.health().map(({ state }) => state)).toEqual(["behind", "healthy"])
  const claim = await walletClaim(running.context, running, { unit_id, wallet: 7 })
  expect(claim.status).toBe("claiming")
}, 40_000)

test("what a node that knows no blocks by hash tells of a token does not count if its block was replaced meanwhile", async () => {
  const fork = { block: null as object | null }
  const lack: Lack = (call) => {
    const { method, params = [] } = call
    if (isByHash(call)) return says(-32_602, "invalid argument 1")
    const { block } = fork
    if (!block) return null
    if (method === "eth_call") return { result: saidOnTheFork[functionIn(params)] ?? null }
    if (method !== "eth_getBlockByNumber" || params[0] === "latest") return null
    fork.block = null
    return { result: block }
  }
  const { running, chain } = await openBehind(lack, { isAlone: true })
  const { address } = await issuedUnit(running)
  await running.workers.stop()
  await running.blocks.betweenBlocks(async () => {
    await outwaitNewestBlock()
    Object.assign(fork, { block: await blockOfTheFork(running) })
    expect(await chain.ownershipOf(address, 1)).toMatchObject({ owner: null, authorization_nonce: 0 })
  })
  expect(fork.block).toBeNull()
}, 40_000)

/** The newest block as it is on another fork. */
async function blockOfTheFork(running: Running): Promise<object> {
  return { ...(await newestBlock(running)), hash: keccak256("0x01") }
}

/** The newest block as a node says it. */
async function newestBlock({ stage }: Running): Promise<{ number: Hex }> {
  const request = stage.anvil.client.request as (call: object) => Promise<{ number: Hex }>
  return await request({ method: "eth_getBlockByNumber", params: ["latest", false] })
}

function functionIn([call]: unknown[]): string {
  const { data, input } = call as { data?: Hex; input?: Hex }
  const abi = [...collectionAbi, ...factoryAbi]
  return decodeFunctionData({ abi, data: data ?? input ?? "0x" }).functionName
}

function isByHash({ method, params }: Call): boolean {
  return method === "eth_call" && typeof params?.[1] === "object"
}

const saidOnTheFork: Record<string, Hex> = {
  ownerOf: pad(accountAt(9).address),
  chipOf: numberToHex(0, { size: 32 }),
  authorizationNonce: numberToHex(5, { size: 32 }),
  authorizer: pad(accountAt(3).address),
  paused: numberToHex(0, { size: 32 }),
}

test("claims and transfers wait a moment for a provider that throttles requests, if it is the only one", async () => {
  const lacks = { times: 0, code: 0, words: "" }
  const lack: Lack = ({ method }) => {
    if (lacks.times === 0 || method !== "eth_call") return null
    lacks.times -= 1
    return says(lacks.code, lacks.words)
  }
  const { running } = await openBehind(lack, { isAlone: true })
  const { context, caller } = running
  const { unit_id } = await issuedUnit(running)
  const recipient = accountAt(7).address
  for (const [code, words] of [
    [429, "Your app has exceeded its compute units per second capacity"],
    [-32_007, "15/second request limit reached - reduce calls per second"],
    [-32_005, "limit exceeded"],
  ] as const)
    for (const execution of ["service_relay", "client_broadcast"] as const) {
      Object.assign(lacks, { times: 1, code, words })
      expect(await prepareClaim(context, caller, unit_id, { recipient, execution })).toBeDefined()
    }
}, 40_000)

function isForMany({ method, params }: Call): boolean {
  const [filter] = (params ?? []) as [{ address?: unknown }?]
  return method === "eth_getLogs" && Array.isArray(filter?.address) && filter.address.length > 3
}

describe("a lane says why it stalls if its only node", () => {
  for (const [what, isRefused, reason] of [
    [
      "cannot estimate gas",
      ({ method }: Call) => method === "eth_estimateGas",
      "nothing new can be sent on chain 31337: request timed out",
    ],
    [
      "cannot count pending transactions",
      ({ params }: Call) => params?.[1] === "pending",
      "cannot be read from chain 31337: request timed out",
    ],
  ] as const)
    test(what, async () => {
      const lack: Lack = (call) => (isRefused(call) ? says(-32_000, "request timed out") : null)
      const { running } = await openBehind(lack, { isAlone: true })
      const { context, caller, turn } = running
      await turn((t) => createCollection(t, context.chains, caller, { name: "Autumn" }))
      await until(async () => (await reasonsOf(running)).some((said) => said?.includes(reason)))
    }, 40_000)
})

test.each([
  ["more transactions of its signer than the database has", 99],
  ["another transaction with the nonce of one in flight", 1],
])(
  "no lane halts if its only node reports %s because it serves another chain until it is asked for the chain ID",
  async (_what, count) => {
    const other = { isServed: false, isSilent: true }
    const { running } = await openBehind(
      ({ method, params = [] }) => {
        if (method === "eth_chainId") other.isServed = false
        if (method === "eth_sendRawTransaction" && other.isSilent)
          return { result: keccak256(params[0] as Hex) }
        if (!other.isServed) return null
        if (method === "eth_getTransactionCount") return { result: numberToHex(count) }
        return method === "eth_getTransactionReceipt" ? { result: null } : null
      },
      { isAlone: true },
    )
    const { context, caller, turn } = running
    const { read } = context.db
    const { id } = await turn((t) => createCollection(t, context.chains, caller, { name: "Autumn" }))
    await until(async () => (await read.select().from(transactions)).some(({ status }) => status === "sent"))
    other.isServed = true
    await until(async () => !other.isServed)
    other.isSilent = false
    await until(async () => {
      const [row] = await read.select().from(collections).where(eq(collections.id, id))
      return row?.status === "active"
    })
    expect(await reasonsOf(running)).toEqual([null, null])
  },
  40_000,
)

type Running = Awaited<ReturnType<typeof runWorkers>>

/** The factory's admin names another authorizer; the previous one stays valid for an hour. */
async function nameAuthorizer({ stage }: Running, address: Address): Promise<void> {
  const factory = stage.world.context.config.chains[0]?.factory_address as Address
  const { client } = stage.anvil
  const { timestamp } = await client.getBlock()
  const hash = await client.writeContract({
    ...{ account: accountAt(0), chain: null, address: factory, abi: factoryAbi },
    ...{ functionName: "setAuthorizer", args: [address, timestamp + 3_600n] },
  })
  await until(async () => (await client.getTransactionReceipt({ hash }).catch(() => null)) !== null)
}

/** A claim sent from a person's own wallet. */
async function walletClaim(
  context: Context,
  { caller, turn }: Running,
  { unit_id, wallet }: { unit_id: string; wallet: number },
): Promise<ClaimRow> {
  const body = { recipient: accountAt(wallet).address, execution: "client_broadcast" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  return await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
}

async function sendClaim({ stage }: Running, { transaction }: ClaimRow, wallet: number): Promise<void> {
  const { to, data } = transaction as { to: Address; data: Hex }
  await stage.anvil.client.sendTransaction({ account: accountAt(wallet), chain: null, to, data })
}

async function claimOf({ context }: Running, id: string): Promise<ClaimRow | undefined> {
  const [row] = await context.db.read.select().from(claims).where(eq(claims.id, id))
  return row
}

async function issueAndClaim(running: Running): Promise<void> {
  const { context, caller, turn } = running
  const { unit_id } = await issuedUnit(running)
  const body = { recipient: accountAt(7).address, execution: "service_relay" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  const claim = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
  await until(async () => {
    const [row] = await context.db.read.select().from(claims).where(eq(claims.id, claim.id))
    return row?.status === "claimed"
  })
}

async function reasonsOf({ context }: Running) {
  return (await context.db.read.select().from(lanes)).map(({ reason }) => reason)
}

/**
 * Workers on a chain whose first node lacks a feature and is either the only one or next to a healthy one, unless that
 * one lacks something, too.
 */
async function openBehind(lack: Lack, { isAlone, other = () => null }: { isAlone: boolean; other?: Lack }) {
  const stage = await openStage({ confirmation_depth: 2, finality_depth: 6 }, 0)
  const { url } = stage.anvil
  const node = startLesserNode(url, lack)
  const second = startLesserNode(url, other)
  closers.push(node.stop, second.stop)
  const chains = JSON.parse(readFileSync(join(stage.folder, "direct.json"), "utf8"))
  const rpc_urls = isAlone ? [node.url] : [node.url, second.url]
  const CHAINS = join(stage.folder, "lesser.json")
  writeFileSync(CHAINS, JSON.stringify({ 31337: { ...chains[31_337], rpc_urls, use_finalized_tag: true } }))
  const open = async (changes: Record<string, string>) => {
    const environment = { ...stage.environment, CHAINS, LOG_LEVEL: "silent", ...changes }
    const world = await openWorld(loadConfig(environment), tell)
    closers.push(world.close)
    const chain = world.chains.get(31_337)
    if (!chain) throw new Error("the stage has a chain")
    return { world, chain }
  }
  const { world, chain } = await open({})
  const running = await runWorkers(stage, world)
  closers.push(running.close)
  return { running, chain, open }
}
