import { Common, Hardfork, Mainnet } from "@ethereumjs/common"
import { createEVM, type EVM, type EVMRunCallOpts } from "@ethereumjs/evm"
import { Account, createAddressFromString, hexToBytes } from "@ethereumjs/util"
import {
  encodeFunctionData,
  type Hex,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerializedEIP1559,
  toHex,
} from "viem"
import { factoryAbi } from "../../../src/engine/chain/contracts.generated.ts"
import { planDeployment } from "../../../src/engine/chain/deployment.ts"
import "./jumps.ts"
import { createPool, type Pool, type PoolTransaction } from "./pool.ts"
import { createState, type State } from "./state.ts"

/** A chain with its own EVM, which makes a block and switches forks on request. */
export type SimulatedChain = {
  chain_id: number
  blocks: Block[]
  pool: Pool
  state: State
  evm: EVM
  /** Gas used by others in each block, which moves the base fee. */
  others_gas: bigint
  /** The base fee of the next block if it jumps, as on chains with rules of their own. */
  jump_to_base_fee: bigint | null
  /** How many reorganizations there have been: the same content has a different hash after each. */
  forks: number
}

export type Block = {
  number: number
  hash: Hex
  parent_hash: Hex
  /** Seconds since 1970. */
  timestamp: number
  base_fee: bigint
  gas_used: bigint
  transactions: PoolTransaction[]
  receipts: Receipt[]
}

type Receipt = Executed & {
  cumulative_gas: bigint
  price: bigint
  /** The number of its first log within the block. */
  first_log: number
}

type Executed = {
  is_success: boolean
  gas_used: bigint
  logs: { address: Hex; topics: Hex[]; data: Hex }[]
  /** Why it failed, such as `revert`. */
  error: string | null
  answer: Hex
  created: Hex | null
}

/** The context of a transaction or a call. */
export type Call = Pick<PoolTransaction, "from" | "to" | "data" | "gas" | "value">

export const blockGasLimit = 30_000_000n
const firstBaseFee = 1_000_000_000n
const startBalance = 10n ** 22n
const miner = `0x${"c0".repeat(20)}`

export async function openChain(chainId: number, genesis: number, funded: string[]): Promise<SimulatedChain> {
  const state = createState()
  for (const address of funded)
    await state.putAccount(createAddressFromString(address), new Account(0n, startBalance))
  state.keepBlock(0)
  const first: Block = {
    number: 0,
    hash: keccak256("0x00"),
    parent_hash: `0x${"0".repeat(64)}`,
    timestamp: genesis,
    base_fee: firstBaseFee,
    gas_used: 0n,
    transactions: [],
    receipts: [],
  }
  return await chainOver(chainId, state, [first])
}

/** A separate chain that continues from another one. */
export async function copyChain(chain: SimulatedChain): Promise<SimulatedChain> {
  return await chainOver(chain.chain_id, chain.state.fork(), [...chain.blocks])
}

async function chainOver(chainId: number, state: State, blocks: Block[]): Promise<SimulatedChain> {
  const common = new Common({ chain: { ...Mainnet, chainId }, hardfork: Hardfork.Prague })
  const evm = await createEVM({ common, stateManager: state })
  return {
    chain_id: chainId,
    blocks,
    pool: createPool(),
    state,
    evm,
    others_gas: 0n,
    jump_to_base_fee: null,
    forks: 0,
  }
}

export function headOf({ blocks }: SimulatedChain): Block {
  return blocks[blocks.length - 1] as Block
}

/** An account as of a block; the newest, unless a height is given. */
export function accountOf({ state, blocks }: SimulatedChain, address: string, height = blocks.length - 1) {
  const account = state.accountAt(createAddressFromString(address), height)
  return { nonce: Number(account?.nonce ?? 0n), balance: account?.balance ?? 0n }
}

/** Makes one block from the transactions in the pool that pay the base fee; `chosen` leaves some of them out. */
export async function mineBlock(
  chain: SimulatedChain,
  timestamp: number,
  chosen: (transaction: PoolTransaction) => boolean = () => true,
): Promise<Block> {
  const parent = headOf(chain)
  const number = parent.number + 1
  const base_fee = chain.jump_to_base_fee ?? nextBaseFee(chain, parent)
  chain.jump_to_base_fee = null
  const environment = { number, timestamp, base_fee }
  const transactions: PoolTransaction[] = []
  const receipts: Receipt[] = []
  let cumulative_gas = 0n
  let first_log = 0
  for (const transaction of chain.pool.all()) {
    const sender = await chain.state.getAccount(createAddressFromString(transaction.from))
    const { nonce, balance } = { nonce: Number(sender?.nonce ?? 0n), balance: sender?.balance ?? 0n }
    const { gas, max_fee_per_gas, max_priority_fee_per_gas, value } = transaction
    const isPayable = max_fee_per_gas >= base_fee && balance >= gas * max_fee_per_gas + value
    if (transaction.nonce !== nonce || !isPayable || !chosen(transaction)) continue
    if (cumulative_gas + gas > blockGasLimit) continue
    const tip = smaller(max_priority_fee_per_gas, max_fee_per_gas - base_fee)
    const price = base_fee + tip
    const executed = await execute(chain, transaction, environment, price)
    await pay(chain, transaction.from, nonce + 1, executed.gas_used * price)
    cumulative_gas += executed.gas_used
    transactions.push(transaction)
    receipts.push({ ...executed, cumulative_gas, price, first_log })
    first_log += executed.logs.length
  }
  chain.state.keepBlock(number)
  const block: Block = {
    number,
    hash: hashOf(chain, parent, timestamp, transactions),
    parent_hash: parent.hash,
    timestamp,
    base_fee,
    gas_used: cumulative_gas,
    transactions,
    receipts,
  }
  chain.blocks.push(block)
  chain.pool.dropUsed((address) => accountOf(chain, address).nonce)
  return block
}

/** Removes the blocks above a height. Their transactions return to the pool, except those not to be kept. */
export function forgetBlocks(
  chain: SimulatedChain,
  height: number,
  isKept: (transaction: PoolTransaction) => boolean,
): void {
  const gone = chain.blocks.splice(height + 1)
  chain.forks += 1
  chain.state.rewind(height)
  for (const transaction of gone.flatMap(({ transactions }) => transactions))
    if (isKept(transaction)) chain.pool.putBack(transaction)
}

/** Parses the raw bytes; cached, so that each signature is verified once. */
export async function readTransaction(raw: Hex): Promise<PoolTransaction> {
  const hash = keccak256(raw)
  const known = transactionsRead.get(hash)
  if (known) return known
  const serializedTransaction = raw as TransactionSerializedEIP1559
  const sender = await recoverTransactionAddress({ serializedTransaction })
  const { to, nonce, data, gas, maxFeePerGas, maxPriorityFeePerGas, value } =
    parseTransaction(serializedTransaction)
  const transaction: PoolTransaction = {
    hash,
    from: sender.toLowerCase(),
    to: to?.toLowerCase() ?? null,
    nonce: nonce ?? 0,
    data: data ?? "0x",
    gas: gas ?? 0n,
    max_fee_per_gas: maxFeePerGas ?? 0n,
    max_priority_fee_per_gas: maxPriorityFeePerGas ?? 0n,
    value: value ?? 0n,
  }
  transactionsRead.set(hash, transaction)
  return transaction
}

const transactionsRead = new Map<Hex, PoolTransaction>()

/** Executes a call on the current state, which it changes; the price is per gas. */
export async function execute(
  { state, evm }: SimulatedChain,
  call: Call,
  block: Pick<Block, "number" | "timestamp" | "base_fee">,
  price: bigint,
): Promise<Executed> {
  state.beginTransaction()
  evm.journal.cleanJournal()
  for (const address of [call.from, call.to, miner]) if (address) evm.journal.addAlwaysWarmAddress(address)
  // EIP-2929: precompiles are warm, too.
  for (const address of evm.precompiles.keys()) evm.journal.addAlwaysWarmAddress(address)
  const { base, floor } = intrinsicGas(call)
  const limit = call.gas - base
  if (limit < 0n)
    return { ...nothing, gas_used: call.gas, error: "intrinsic gas too low", answer: "0x", created: null }
  const run: EVMRunCallOpts = {
    caller: createAddressFromString(call.from),
    data: hexToBytes(call.data),
    gasLimit: limit,
    gasPrice: price,
    value: call.value,
    block: { header: headerOf(block) },
    ...(call.to !== null && { to: createAddressFromString(call.to) }),
  }
  const { execResult, createdAddress } = await evm.runCall(run)
  const { executionGasUsed, gasRefund = 0n, exceptionError, logs, returnValue } = execResult
  const spent = base + executionGasUsed
  const gas_used = larger(spent - smaller(gasRefund, spent / 5n), floor)
  evm.journal.cleanJournal()
  return {
    is_success: exceptionError === undefined,
    gas_used,
    logs: exceptionError
      ? []
      : (logs ?? []).map(([address, topics, data]) => ({
          address: toHex(address),
          topics: topics.map((topic) => toHex(topic)),
          data: toHex(data),
        })),
    error: exceptionError?.error ?? null,
    answer: toHex(returnValue),
    created: createdAddress ? (createdAddress.toString() as Hex) : null,
  }
}

const nothing = { is_success: false, logs: [] } satisfies Partial<Executed>

/** The factory and its desk, as its admin's first transactions, without signatures. */
export async function deployContracts(
  chain: SimulatedChain,
  admin: Hex,
  authorizer: Hex,
  operators: Hex[],
): Promise<{ factory_address: Hex; desk_address: Hex }> {
  const { factory_address, desk_address, factory_data, desk_data } = planDeployment({
    deployer: admin,
    guardian: null,
    authorizer,
    signers: operators,
    metadata_base_url: "",
  })
  for (const data of [factory_data, desk_data]) await sendAs(chain, admin, null, data)
  return { factory_address, desk_address }
}

/** The admin announces the release, which takes effect after the factory's delay. */
export async function announceRelease(chain: SimulatedChain, factory: Hex, admin: Hex): Promise<void> {
  await sendAs(
    chain,
    admin,
    factory,
    encodeFunctionData({ abi: factoryAbi, functionName: "announceRelease" }),
  )
}

/** Mines a transaction of a sender, a second after the newest block. Throws if it fails. */
async function sendAs(chain: SimulatedChain, sender: Hex, to: Hex | null, data: Hex): Promise<void> {
  const from = sender.toLowerCase()
  const { nonce } = accountOf(chain, from)
  const fees = { max_fee_per_gas: 10n ** 11n, max_priority_fee_per_gas: 0n }
  chain.pool.putBack({ hash: keccak256(data), from, to, nonce, data, gas: 16_000_000n, ...fees, value: 0n })
  const { receipts } = await mineBlock(chain, headOf(chain).timestamp + 1)
  if (!receipts[0]?.is_success) throw new Error(`a transaction of ${sender} failed: ${receipts[0]?.error}`)
}

/** EIP-1559, including the gas used by others. */
export function nextBaseFee({ others_gas }: SimulatedChain, parent: Block): bigint {
  const target = blockGasLimit / 2n
  const used = smaller(parent.gas_used + others_gas, blockGasLimit)
  const change = (parent.base_fee * (used > target ? used - target : target - used)) / target / 8n
  if (used > target) return parent.base_fee + larger(change, 1n)
  return parent.base_fee - change
}

/** EIP-2028, EIP-3860 and the floor of EIP-7623. */
export function intrinsicGas({ data, to }: Call): { base: bigint; floor: bigint } {
  let tokens = 0n
  for (let index = 2; index < data.length; index += 2) tokens += data.startsWith("00", index) ? 1n : 4n
  const words = BigInt((data.length / 2 - 1 + 31) >> 5)
  const creation = to === null ? 32_000n + 2n * words : 0n
  return { base: 21_000n + tokens * 4n + creation, floor: 21_000n + tokens * 10n }
}

function headerOf({ number, timestamp, base_fee }: Pick<Block, "number" | "timestamp" | "base_fee">) {
  return {
    number: BigInt(number),
    coinbase: createAddressFromString(miner),
    timestamp: BigInt(timestamp),
    difficulty: 0n,
    prevRandao: new Uint8Array(32),
    gasLimit: blockGasLimit,
    baseFeePerGas: base_fee,
    getBlobGasPrice: () => 1n,
  }
}

async function pay({ state }: SimulatedChain, address: string, nonce: number, wei: bigint): Promise<void> {
  const sender = createAddressFromString(address)
  const account = (await state.getAccount(sender)) ?? new Account()
  account.nonce = BigInt(nonce)
  account.balance -= wei
  await state.putAccount(sender, account)
}

function hashOf(chain: SimulatedChain, parent: Block, timestamp: number, content: PoolTransaction[]): Hex {
  const numbers = [parent.number + 1, timestamp, chain.forks].map((number) =>
    toHex(number, { size: 32 }).slice(2),
  )
  return keccak256(`${parent.hash}${numbers.join("")}${content.map(({ hash }) => hash.slice(2)).join("")}`)
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
