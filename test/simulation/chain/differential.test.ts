import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import {
  type Address,
  concatHex,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  keccak256,
  numberToHex,
  RpcRequestError,
  toHex,
  zeroAddress,
} from "viem"
import { collectionAddress } from "../../../src/engine/chain/collection-address.ts"
import { collectionAbi, factoryAbi, factoryBytecode } from "../../../src/engine/chain/contracts.generated.ts"
import { classifySendError } from "../../../src/engine/chain/send-errors.ts"
import { type Anvil, accountAt, signers, startAnvil } from "../../faults/stage.ts"
import { seedOf } from "../../harness/seed.ts"
import { type Stream, streamOf } from "../streams.ts"
import { headOf, mineBlock, nextBaseFee, openChain, type SimulatedChain } from "./chain.ts"
import { answerRpc, RpcRefusal, wholeView } from "./json-rpc.ts"

// The simulated chain behaves like a real node: the same bytes in, the same receipts, logs, gas and errors out.

const seed = BigInt(seedOf("DIFFERENTIAL_SEED"))
const accounts = [0, 1, 2, 5, 6].map((index) => accountAt(index))
const admin = accountAt(0)
const factory = getContractAddress({ from: admin.address, nonce: 0n })
const implementation = getContractAddress({ from: factory, nonce: 1n })
const naming = { name: "Autumn Jackets", symbol: "AUTU" }
const salt = keccak256("0x01")
const collection = collectionAddress(2, { factory, salt, ...naming })

let anvil: Anvil
let chain: SimulatedChain
const nonces = new Map<Address, number>()

beforeAll(async () => {
  anvil = await startAnvil()
  const genesis = await anvil.client.getBlock()
  chain = await openChain(
    31_337,
    Number(genesis.timestamp),
    accounts.map(({ address }) => address),
  )
  // anvil's own first block has the base fee of its genesis, which is not the rule.
  await anvil.client.setNextBlockBaseFeePerGas({ baseFeePerGas: nextBaseFee(chain, headOf(chain)) })
  const grants = signers.map((account) => ({ account, roles: 15n }))
  const fields = [admin.address, zeroAddress, accountAt(3).address, grants, "https://base.test"] as const
  const data = encodeDeployData({ abi: factoryAbi, bytecode: factoryBytecode, args: fields })
  await sendBoth(admin, { to: null, data, gas: 10_000_000n })
  await mineBoth()
  const deploy = encodeFunctionData({
    abi: factoryAbi,
    functionName: "deploy",
    args: [salt, naming.name, naming.symbol],
  })
  await sendBoth(accountAt(1), { to: factory, data: deploy, gas: 1_000_000n })
  await mineBoth()
}, 30_000)
afterAll(() => anvil.stop())

describe(`with the seed ${seed}`, () => {
  test("the same transactions have the same receipts, logs and prices", async () => {
    const chance = streamOf(seed, "transactions")
    for (let block = 0; block < 40; block++) {
      // Both mine senders in this order.
      const senders = accounts.filter(() => chance.happens(0.4)).sort(byAddress)
      for (const sender of senders)
        for (let count = 1 + chance.below(3); count > 0; count--)
          await sendBoth(sender, { to: collection, data: await callOf(chance, sender), gas: gasOf(chance) })
      await mineBoth()
    }
    const { blocks } = chain
    expect(
      blocks.flatMap(({ receipts }) => receipts.filter(({ is_success }) => is_success)).length,
    ).toBeGreaterThan(15)
    expect(
      blocks.flatMap(({ receipts }) => receipts.filter(({ is_success }) => !is_success)).length,
    ).toBeGreaterThan(15)
  }, 60_000)

  test("the same calls have the same answers and the same words for a revert", async () => {
    const chance = streamOf(seed, "calls")
    const latest = ["latest", false]
    const ours = blockOf(await simulated("eth_getBlockByNumber", latest))
    const theirs = blockOf(await real("eth_getBlockByNumber", latest))
    for (let count = 0; count < 100; count++) {
      const from = chance.pick(accounts)
      const to = chance.pick([collection, factory])
      const call = { from: from.address, to, data: await callOf(chance, from) }
      const said = await real("eth_call", [call, "latest"])
      expect(await simulated("eth_call", [call, "latest"])).toEqual(said)
      expect(await simulated("eth_call", [call, ours])).toEqual(said)
      expect(await real("eth_call", [call, theirs])).toEqual(said)
    }
  }, 60_000)

  test("what a call is estimated to need is enough for it", async () => {
    const data = encodeFunctionData({
      abi: collectionAbi,
      functionName: "issue",
      args: [BigInt(await nextSerial()), packed([7, 8, 9]), false],
    })
    const from = signers[0]
    const [ours, theirs] = [
      await simulated("eth_estimateGas", [{ from, to: collection, data }]),
      await real("eth_estimateGas", [{ from, to: collection, data }]),
    ]
    expect(Number(ours.result)).toBeGreaterThanOrEqual(Number(theirs.result))
    await sendBoth(accountAt(1), { to: collection, data, gas: BigInt(String(ours.result)) })
    await mineBoth()
    expect(headOf(chain).receipts[0]?.is_success).toBe(true)
  })

  test("a person's own claim costs the same", async () => {
    const serial = BigInt(await nextSerial())
    const args = [serial, packed([10]), false] as const
    const issue = encodeFunctionData({ abi: collectionAbi, functionName: "issue", args })
    await sendBoth(accountAt(1), { to: collection, data: issue, gas: 500_000n })
    await mineBoth()
    const person = accountAt(6)
    const claim = encodeFunctionData({
      abi: collectionAbi,
      functionName: "claimWithAuthorization",
      args: [serial, person.address, deadline, await authorizeClaim(serial, person.address)],
    })
    await sendBoth(person, { to: collection, data: claim, gas: 500_000n })
    await mineBoth()
    expect(headOf(chain).receipts.map(({ is_success }) => is_success)).toEqual([true])
  })

  test("state is the same: balances, nonces and code", async () => {
    for (const { address } of accounts)
      for (const method of ["eth_getBalance", "eth_getTransactionCount"])
        expect(await simulated(method, [address, "latest"])).toEqual(await real(method, [address, "latest"]))
    for (const address of [factory, collection, implementation, signers[0]])
      expect(await simulated("eth_getCode", [address, "latest"])).toEqual(
        await real("eth_getCode", [address, "latest"]),
      )
  })

  test("logs are found by the same filters", async () => {
    const [topic] = (headOf(chain).receipts[0]?.logs ?? [])[0]?.topics ?? []
    for (const filter of [
      { fromBlock: "0x0", toBlock: "latest" },
      { fromBlock: "0x0", toBlock: "latest", address: collection },
      { fromBlock: "0x2", toBlock: "0x9", address: [collection, factory], topics: [topic] },
      { fromBlock: "0x0", toBlock: "latest", topics: [[topic, keccak256("0x00")], null] },
      { fromBlock: "0x0", toBlock: "latest", address: zeroAddress },
    ])
      expect(logsIn(await simulated("eth_getLogs", [filter]))).toEqual(
        logsIn(await real("eth_getLogs", [filter])),
      )
  })

  test("refusals of the pool mean the same", async () => {
    const sender = accountAt(6)
    const nonce = nonceOf(sender.address)
    const empty = { to: sender.address, data: "0x", gas: 21_000n } as const
    const first = await sign(sender, { ...empty, nonce })
    expect(await refusals(first)).toEqual(["taken", "taken"])
    expect(await refusals(first)).toEqual(["known", "known"])
    expect(await refusals(await sign(sender, { ...empty, nonce, price: 9n * 10n ** 9n }))).toEqual([
      "underpriced",
      "underpriced",
    ])
    nonces.set(sender.address, nonce + 1)
    await mineBoth()
    expect(await refusals(await sign(sender, { ...empty, nonce }))).toEqual(["nonce_low", "nonce_low"])
    const dear = await sign(sender, { ...empty, nonce: nonce + 1, price: 10n ** 19n })
    expect(await refusals(dear)).toEqual(["no_funds", "no_funds"])
  })
})

type Account = ReturnType<typeof accountAt>
type Content = { to: Address | null; data: Hex; gas: bigint }

function byAddress(one: Account, other: Account): number {
  return one.address.toLowerCase() < other.address.toLowerCase() ? -1 : 1
}

function nonceOf(address: Address): number {
  return nonces.get(address) ?? 0
}

async function sign(account: Account, wanted: Content & { nonce: number; price?: bigint }): Promise<Hex> {
  const { to, data, gas, nonce, price = 10n ** 10n } = wanted
  return await account.signTransaction({
    type: "eip1559",
    chainId: 31_337,
    nonce,
    data,
    gas,
    maxFeePerGas: price,
    maxPriorityFeePerGas: 10n ** 9n,
    ...(to !== null && { to }),
  })
}

async function sendBoth(account: Account, content: Content): Promise<void> {
  const nonce = nonceOf(account.address)
  const raw = await sign(account, { ...content, nonce })
  expect(await refusals(raw)).toEqual(["taken", "taken"])
  nonces.set(account.address, nonce + 1)
}

/** Each one's response to the same bytes. */
async function refusals(raw: Hex): Promise<string[]> {
  const said = [await simulated("eth_sendRawTransaction", [raw]), await real("eth_sendRawTransaction", [raw])]
  return said.map(({ error }) => (error ? classifySendError(error.message.toLowerCase()) : "taken"))
}

/** Mines one block on both, and compares everything that can be queried about it. */
async function mineBoth(): Promise<void> {
  const timestamp = headOf(chain).timestamp + 2
  await anvil.client.setNextBlockTimestamp({ timestamp: BigInt(timestamp) })
  await anvil.client.mine({ blocks: 1 })
  const block = await mineBlock(chain, timestamp)
  const theirs = await anvil.client.getBlock({ blockTag: "latest" })
  expect(block.base_fee).toBe(theirs.baseFeePerGas ?? 0n)
  expect(block.gas_used).toBe(theirs.gasUsed)
  expect(block.transactions.map(({ hash }) => hash)).toEqual(theirs.transactions)
  for (const { hash } of block.transactions) {
    const [ours, their] = [
      await simulated("eth_getTransactionReceipt", [hash]),
      await real("eth_getTransactionReceipt", [hash]),
    ]
    expect(receiptIn(ours)).toEqual(receiptIn(their))
  }
}

type Said = { result?: unknown; error?: { message: string; data?: Hex | undefined } }

/** Names a block by its hash (EIP-1898). */
function blockOf({ result }: Said): { blockHash: Hex } {
  return { blockHash: (result as { hash: Hex }).hash }
}

async function simulated(method: string, params: unknown[]): Promise<Said> {
  try {
    return { result: await answerRpc(chain, wholeView(chain), method, params) }
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error
    return { error: { message: error.message, data: error.data } }
  }
}

async function real(method: string, params: unknown[]): Promise<Said> {
  try {
    const request = anvil.client.request as (call: object) => Promise<unknown>
    return { result: await request({ method, params }) }
  } catch (error) {
    const said = (error as { walk?: (is: (cause: unknown) => boolean) => unknown }).walk?.(
      (cause) => cause instanceof RpcRequestError,
    )
    if (!(said instanceof RpcRequestError)) throw error
    // anvil puts the name of the error after the colon, which nodes do not.
    const message = said.details.replace(/^execution reverted:.*/s, "execution reverted")
    return { error: { message, data: said.data as Hex | undefined } }
  }
}

/** The part of a receipt that does not depend on how blocks are hashed. */
function receiptIn({ result }: Said) {
  const receipt = result as Record<string, unknown> & { logs: Log[] }
  const { transactionHash, transactionIndex, blockNumber, from, to, cumulativeGasUsed, gasUsed } = receipt
  const { effectiveGasPrice, contractAddress, status, type } = receipt
  return {
    ...{ transactionHash, transactionIndex, blockNumber, from, to, cumulativeGasUsed, gasUsed },
    ...{ effectiveGasPrice, contractAddress, status, type },
    logs: receipt.logs.map(logOf),
  }
}

type Log = Record<string, unknown>

function logOf({
  address,
  topics,
  data,
  blockNumber,
  transactionHash,
  transactionIndex,
  logIndex,
  removed,
}: Log) {
  return { address, topics, data, blockNumber, transactionHash, transactionIndex, logIndex, removed }
}

function logsIn({ result }: Said) {
  return (result as Log[]).map(logOf)
}

async function nextSerial(): Promise<number> {
  const data = encodeFunctionData({ abi: collectionAbi, functionName: "issued" })
  return Number((await simulated("eth_call", [{ to: collection, data }, "latest"])).result) + 1
}

/** Sometimes too little. */
function gasOf(chance: Stream): bigint {
  return chance.happens(0.85) ? 500_000n : BigInt(45_000 + chance.below(60_000))
}

const deadline = 2n ** 40n

async function authorizeClaim(serial: bigint, recipient: Address): Promise<Hex> {
  const fields = { serial: "uint256", recipient: "address", nonce: "uint256", deadline: "uint256" }
  return await accountAt(3).signTypedData({
    domain: { name: "service-api", version: "1", chainId: 31_337, verifyingContract: collection },
    types: { Claim: Object.entries(fields).map(([name, type]) => ({ name, type })) },
    primaryType: "Claim",
    message: { serial, recipient, nonce: 0n, deadline },
  })
}

let issued = 1

function packed(chips: number[]): Hex {
  return concatHex(chips.map((chip) => numberToHex(chip, { size: 5 })))
}

/** A call that the contract may or may not accept from this sender. */
async function callOf(chance: Stream, sender: Account): Promise<Hex> {
  const serial = BigInt(1 + chance.below(12))
  const recipient = chance.pick([...accounts.map(({ address }) => address), zeroAddress, collection])
  const chip = 1 + chance.below(20)
  const abi = collectionAbi
  switch (chance.below(9)) {
    case 0:
    case 1: {
      const count = chance.below(5)
      const first = chance.happens(0.7) ? issued : chance.below(8)
      if (chance.happens(0.7)) issued += count
      const chips = Array.from({ length: count }, (_each, index) => first + index)
      return encodeFunctionData({
        abi,
        functionName: "issue",
        args: [BigInt(first), packed(chips), chance.happens(0.5)],
      })
    }
    case 2:
      return encodeFunctionData({ abi, functionName: "claim", args: [serial, recipient] })
    case 3:
      return encodeFunctionData({
        abi,
        functionName: "claimBatch",
        args: [
          [serial, serial + 1n],
          [recipient, recipient],
        ],
      })
    case 4:
      return encodeFunctionData({
        abi,
        functionName: "replaceChip",
        args: [serial, Number(serial), 100 + chip],
      })
    case 5:
      return encodeFunctionData({ abi, functionName: "ownerOf", args: [serial] })
    case 6: {
      const own = chance.happens(0.7) ? sender.address : recipient
      const signature = chance.happens(0.7)
        ? await authorizeClaim(serial, own)
        : toHex(chance.word(), { size: 65 })
      const args = [serial, own, deadline, signature] as const
      return encodeFunctionData({ abi, functionName: "claimWithAuthorization", args })
    }
    case 7:
      return encodeFunctionData({ abi, functionName: "eip712Domain" })
    default:
      return encodeFunctionData({ abi, functionName: "tokenURI", args: [serial] })
  }
}
