import { createAddressFromString } from "@ethereumjs/util"
import { type Hex, hexToBigInt, keccak256, toHex } from "viem"
import {
  accountOf,
  type Block,
  blockGasLimit,
  type Call,
  execute,
  headOf,
  intrinsicGas,
  readTransaction,
  type SimulatedChain,
} from "./chain.ts"
import { PoolRefusal } from "./pool.ts"

/**
 * What a node knows of the chain: the blocks up to a height; above it, up to its head, it has only empty ones, which
 * makes it follow another fork.
 */
export type View = { known: number; head: number }

/** A JSON-RPC error with a node's own message. */
export class RpcRefusal extends Error {
  override name = "RpcRefusal"
  constructor(
    readonly code: number,
    message: string,
    readonly data?: Hex,
  ) {
    super(message)
  }
}

export function wholeView(chain: SimulatedChain): View {
  const { number } = headOf(chain)
  return { known: number, head: number }
}

/** Answers one JSON-RPC call as a node with this view. Throws `RpcRefusal`. */
export async function answerRpc(
  chain: SimulatedChain,
  view: View,
  method: string,
  params: readonly unknown[],
): Promise<unknown> {
  const [first, second] = params
  switch (method) {
    case "eth_chainId":
      return toHex(chain.chain_id)
    case "net_version":
      return String(chain.chain_id)
    case "eth_blockNumber":
      return toHex(view.head)
    case "eth_getBlockByNumber":
      return presentBlock(chain, blockAt(chain, view, first), second === true)
    case "eth_getBlockByHash":
      return presentBlock(chain, blockWithHash(chain, view, String(first)), second === true)
    case "eth_getTransactionCount":
      return toHex(nonceAt(chain, view, String(first).toLowerCase(), second))
    case "eth_getBalance":
      return toHex(accountOf(chain, String(first), heightOf(view, second)).balance)
    case "eth_getCode":
      return toHex(chain.state.codeAt(createAddressFromString(String(first)), heightOf(view, second)))
    case "eth_call":
      return (await runCall(chain, view, first as CallFields, second)).answer
    case "eth_estimateGas":
      // Like nodes, somewhat more than it used, because inner calls get only part of the remaining gas.
      return toHex(((await runCall(chain, view, first as CallFields, second)).gas_used * 6n) / 5n)
    case "eth_maxPriorityFeePerGas":
      return toHex(tip)
    case "eth_gasPrice":
      return toHex(headOf(chain).base_fee + tip)
    case "eth_feeHistory":
      return feeHistory(chain, view, Number(first), (params[2] as number[] | undefined) ?? [])
    case "eth_getLogs":
      return logsOf(chain, view, first as LogFilter)
    case "eth_getTransactionReceipt":
      return presentReceipt(chain, view, String(first))
    case "eth_getTransactionByHash":
      return presentTransaction(chain, view, String(first))
    case "eth_sendRawTransaction":
      return await takeTransaction(chain, first as Hex)
    default:
      throw new RpcRefusal(-32601, `the method ${method} does not exist/is not available`)
  }
}

/** The tip that every node suggests. */
export const tip = 1_000_000_000n

type CallFields = { from?: string; to?: string; data?: Hex; input?: Hex; gas?: Hex; value?: Hex }

type LogFilter = {
  address?: string | string[]
  topics?: (Hex | Hex[] | null)[]
  fromBlock?: string
  toBlock?: string
  blockHash?: Hex
}

function numberOf(view: View, tag: unknown): number {
  if (tag === undefined || tag === "latest" || tag === "pending" || tag === "safe" || tag === "finalized")
    return view.head
  return tag === "earliest" ? 0 : Number(tag)
}

/** The height whose state a node uses for a block. */
function heightOf(view: View, tag: unknown): number {
  const number = numberOf(view, tag)
  if (number > view.head) throw new RpcRefusal(-32000, "header not found")
  return Math.min(number, view.known)
}

function blockAt(chain: SimulatedChain, view: View, tag: unknown): Block | undefined {
  const number = numberOf(view, tag)
  if (number > view.head) return undefined
  return number <= view.known ? chain.blocks[number] : otherBlock(chain, view, number)
}

/** An empty block of the node's own fork. */
function otherBlock(chain: SimulatedChain, { known }: View, number: number): Block {
  const last = chain.blocks[known] as Block
  const hashAt = (at: number) =>
    at === known ? last.hash : keccak256(`${last.hash}${toHex(at, { size: 32 }).slice(2)}`)
  const timestamp = last.timestamp + number - known
  return {
    ...last,
    number,
    hash: hashAt(number),
    parent_hash: hashAt(number - 1),
    timestamp,
    gas_used: 0n,
    transactions: [],
    receipts: [],
  }
}

function blockWithHash(chain: SimulatedChain, view: View, hash: string): Block | undefined {
  for (let number = view.head; number >= 0; number--) {
    const block = blockAt(chain, view, number)
    if (block?.hash === hash) return block
  }
  return undefined
}

/** `pending` includes waiting transactions. */
function nonceAt(chain: SimulatedChain, view: View, address: string, tag: unknown): number {
  let { nonce } = accountOf(chain, address, heightOf(view, tag))
  while (tag === "pending" && chain.pool.holds(address, nonce)) nonce += 1
  return nonce
}

const callGas = 16_000_000n

/** Returns whether a block is named by its hash (EIP-1898). */
export function isHashed(tag: unknown): tag is { blockHash: Hex } {
  return typeof tag === "object" && tag !== null && "blockHash" in tag
}

async function runCall(chain: SimulatedChain, view: View, fields: CallFields, tag: unknown) {
  const block = isHashed(tag) ? blockWithHash(chain, view, tag.blockHash) : blockAt(chain, view, tag)
  if (!block) throw new RpcRefusal(-32000, isHashed(tag) ? "header for hash not found" : "header not found")
  const call: Call = {
    from: (fields.from ?? `0x${"0".repeat(40)}`).toLowerCase(),
    to: fields.to?.toLowerCase() ?? null,
    data: fields.data ?? fields.input ?? "0x",
    gas: fields.gas === undefined ? callGas : hexToBigInt(fields.gas),
    value: fields.value === undefined ? 0n : hexToBigInt(fields.value),
  }
  chain.state.readAt(Math.min(block.number, view.known))
  try {
    const done = await execute(chain, call, { ...block, base_fee: 0n }, 0n)
    if (done.is_success) return done
    throw done.error === "revert"
      ? new RpcRefusal(3, "execution reverted", done.answer)
      : new RpcRefusal(-32000, done.error ?? "execution failed")
  } finally {
    chain.state.discard()
    chain.state.readAt(Number.POSITIVE_INFINITY)
  }
}

async function takeTransaction(chain: SimulatedChain, raw: Hex): Promise<Hex> {
  const transaction = await readTransaction(raw)
  const { base, floor } = intrinsicGas(transaction)
  if (transaction.gas < base) throw new RpcRefusal(-32000, "intrinsic gas too low")
  if (transaction.gas < floor) throw new RpcRefusal(-32000, "insufficient gas for floor data gas cost")
  const sender = accountOf(chain, transaction.from)
  try {
    chain.pool.take(transaction, sender, headOf(chain).base_fee)
  } catch (error) {
    if (error instanceof PoolRefusal) throw new RpcRefusal(-32000, error.message)
    throw error
  }
  return transaction.hash
}

function feeHistory(chain: SimulatedChain, view: View, count: number, percentiles: number[]) {
  const last = view.known
  const first = Math.max(0, last - count + 1)
  const blocks = chain.blocks.slice(first, last + 1)
  return {
    oldestBlock: toHex(first),
    baseFeePerGas: [...blocks, blocks[blocks.length - 1]].map((block) => toHex(block?.base_fee ?? 0n)),
    gasUsedRatio: blocks.map(({ gas_used }) => Number(gas_used) / Number(blockGasLimit)),
    reward: blocks.map(() => percentiles.map(() => toHex(tip))),
  }
}

function presentBlock(chain: SimulatedChain, block: Block | undefined, isFull: boolean) {
  if (!block) return null
  const { hash, transactions } = block
  return {
    number: toHex(block.number),
    hash,
    parentHash: block.parent_hash,
    timestamp: toHex(block.timestamp),
    baseFeePerGas: toHex(block.base_fee),
    gasLimit: toHex(blockGasLimit),
    gasUsed: toHex(block.gas_used),
    difficulty: "0x0",
    size: "0x1",
    nonce: "0x0000000000000000",
    miner: `0x${"c0".repeat(20)}`,
    extraData: "0x",
    logsBloom: emptyBloom,
    transactionsRoot: hash,
    stateRoot: hash,
    receiptsRoot: hash,
    sha3Uncles: hash,
    mixHash: hash,
    uncles: [],
    transactions: transactions.map((each, index) => (isFull ? presentMined(chain, block, index) : each.hash)),
  }
}

const emptyBloom = `0x${"00".repeat(256)}`

function presentMined(chain: SimulatedChain, block: Block, index: number) {
  const transaction = block.transactions[index]
  if (!transaction) return null
  return {
    hash: transaction.hash,
    from: transaction.from,
    to: transaction.to,
    nonce: toHex(transaction.nonce),
    input: transaction.data,
    gas: toHex(transaction.gas),
    value: toHex(transaction.value),
    maxFeePerGas: toHex(transaction.max_fee_per_gas),
    maxPriorityFeePerGas: toHex(transaction.max_priority_fee_per_gas),
    blockHash: block.hash,
    blockNumber: toHex(block.number),
    transactionIndex: toHex(index),
    type: "0x2",
    chainId: toHex(chain.chain_id),
    v: "0x0",
    r: "0x0",
    s: "0x0",
  }
}

/** The block that contains a transaction, as far as the node knows. */
function placeOf(chain: SimulatedChain, view: View, hash: string): { block: Block; index: number } | null {
  for (let number = view.known; number >= 0; number--) {
    const block = chain.blocks[number]
    const index = block?.transactions.findIndex((each) => each.hash === hash) ?? -1
    if (block && index >= 0) return { block, index }
  }
  return null
}

function presentTransaction(chain: SimulatedChain, view: View, hash: string) {
  const place = placeOf(chain, view, hash)
  return place && presentMined(chain, place.block, place.index)
}

function presentReceipt(chain: SimulatedChain, view: View, hash: string) {
  const place = placeOf(chain, view, hash)
  if (!place) return null
  const { block, index } = place
  const [transaction, receipt] = [block.transactions[index], block.receipts[index]]
  if (!transaction || !receipt) return null
  return {
    transactionHash: transaction.hash,
    transactionIndex: toHex(index),
    blockHash: block.hash,
    blockNumber: toHex(block.number),
    from: transaction.from,
    to: transaction.to,
    cumulativeGasUsed: toHex(receipt.cumulative_gas),
    gasUsed: toHex(receipt.gas_used),
    effectiveGasPrice: toHex(receipt.price),
    contractAddress: receipt.created,
    logs: presentLogs(block, index),
    logsBloom: emptyBloom,
    status: toHex(receipt.is_success ? 1 : 0),
    type: "0x2",
  }
}

function presentLogs(block: Block, index: number) {
  const [transaction, receipt] = [block.transactions[index], block.receipts[index]]
  if (!transaction || !receipt) return []
  return receipt.logs.map(({ address, topics, data }, number) => ({
    address,
    topics,
    data,
    blockHash: block.hash,
    blockNumber: toHex(block.number),
    blockTimestamp: toHex(block.timestamp),
    transactionHash: transaction.hash,
    transactionIndex: toHex(index),
    logIndex: toHex(receipt.first_log + number),
    removed: false,
  }))
}

function logsOf(chain: SimulatedChain, view: View, filter: LogFilter) {
  const addresses =
    filter.address === undefined ? null : [filter.address].flat().map((each) => each.toLowerCase())
  const wanted = filter.topics ?? []
  return blocksFor(chain, view, filter)
    .flatMap((block) => block.transactions.flatMap((_each, index) => presentLogs(block, index)))
    .filter(
      ({ address, topics }) =>
        (addresses === null || addresses.includes(address)) &&
        wanted.every((topic, index) => topic === null || [topic].flat().includes(topics[index] as Hex)),
    )
}

function blocksFor(chain: SimulatedChain, view: View, { blockHash, fromBlock, toBlock }: LogFilter): Block[] {
  if (blockHash === undefined) {
    const first = numberOf(view, fromBlock ?? "earliest")
    return chain.blocks.slice(first, Math.min(numberOf(view, toBlock), view.known) + 1)
  }
  const block = blockWithHash(chain, view, blockHash)
  if (!block) throw new RpcRefusal(-32000, "unknown block")
  return [block]
}
