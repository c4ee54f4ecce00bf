import {
  type Abi,
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  concatHex,
  createPublicClient,
  decodeEventLog,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  type Hex,
  http,
  keccak256,
  numberToHex,
  type PublicClient,
  type RpcTransactionReceipt,
  stringToHex,
  type TypedDataDefinition,
} from "viem"
import { mnemonicToAccount } from "viem/accounts"
import { anvil } from "viem/chains"
import { anvilPath } from "../../src/dev/anvil-path.ts"
import { collectionAddress } from "../../src/engine/chain/collection-address.ts"
import { collectionAbi, factoryAbi, factoryBytecode } from "../../src/engine/chain/contracts.generated.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { tiedToParent } from "./child-process.ts"

export type Chain = { readonly client: PublicClient; readonly stop: () => Promise<void> }

export type Receipt = {
  readonly hash: Hex
  readonly succeeded: boolean
  readonly gasUsed: number
  readonly contractAddress: Address
  readonly logs: readonly {
    readonly address: Address
    readonly topics: [] | [Hex, ...Hex[]]
    readonly data: Hex
  }[]
}

export type Contract = {
  readonly address: Address
  /** The result of a view. */
  readonly read: (functionName: string, ...args: readonly unknown[]) => Promise<unknown>
  /** Sends a call that must succeed; returns the contract's events, each as its name and arguments. */
  readonly run: (
    from: Address,
    functionName: string,
    ...args: readonly unknown[]
  ) => Promise<readonly Event[]>
  /** The name and arguments of the error that a call would revert with; null if it would succeed. */
  readonly refusal: (
    from: Address,
    functionName: string,
    ...args: readonly unknown[]
  ) => Promise<Event | null>
}

export type Event = readonly [name: string, ...args: readonly unknown[]]

/** An account whose key anvil has: anvil signs its transactions, and tests can sign with it, too. */
export function account(addressIndex: number): ReturnType<typeof mnemonicToAccount> {
  return mnemonicToAccount("test test test test test test test test test test test junk", { addressIndex })
}

/** A wallet that the chain has never seen. */
export function freshWallet(seed: string): Address {
  return getAddress(`0x${keccak256(stringToHex(seed)).slice(-40)}`)
}

/** Puts code at an address, which it returns. */
export async function placeCode(chain: Chain, address: Address, code: Hex): Promise<Address> {
  await rpc(chain, "anvil_setCode", [address, code])
  return address
}

/** A new chain: anvil on a free port, with a block per transaction. */
export async function startChain(flags: readonly string[] = []): Promise<Chain> {
  const port = await freePort()
  const words = [anvilPath(), "--port", `${port}`, "--chain-id", `${anvil.id}`, "--quiet", ...flags]
  const child = Bun.spawn(tiedToParent(words), { stdio: ["ignore", "ignore", "inherit"] })
  const stop = async () => {
    child.kill("SIGTERM")
    await child.exited
  }
  const client = createPublicClient({
    chain: anvil,
    transport: http(`http://127.0.0.1:${port}`, { batch: true, retryCount: 0, timeout: 30_000 }),
    cacheTime: 0,
  })
  for (let attempt = 0; attempt < 400 && child.exitCode === null; attempt++) {
    if (await client.getChainId().catch(() => null)) return { client, stop }
    await Bun.sleep(25)
  }
  await stop()
  throw new Error(`anvil did not answer on port ${port}; its own words are above`)
}

/** Sends a transaction and returns its receipt, whether it succeeded or not. */
export async function send(
  chain: Chain,
  from: Address,
  transaction: { to?: Address; data: Hex },
): Promise<Receipt> {
  const receipt = await rpc<RpcTransactionReceipt>(chain, "eth_sendTransactionSync", [
    { from, ...transaction, gas: "0xffffff" },
  ])
  return {
    hash: receipt.transactionHash,
    succeeded: receipt.status === "0x1",
    gasUsed: Number(receipt.gasUsed),
    contractAddress: receipt.contractAddress ? getAddress(receipt.contractAddress) : "0x",
    logs: receipt.logs.map(({ address, topics, data }) => ({ address: getAddress(address), topics, data })),
  }
}

/** Deploys a contract and returns its address with the receipt. */
export async function deploy(
  chain: Chain,
  from: Address,
  contract: { abi: Abi; bytecode: Hex; args: readonly unknown[] },
): Promise<{ address: Address; receipt: Receipt }> {
  const receipt = await send(chain, from, { data: encodeDeployData(contract) })
  if (!receipt.succeeded) throw new Error("the deployment was reverted")
  return { address: receipt.contractAddress, receipt }
}

/** A contract at an address, called by function name. */
export function contractAt(chain: Chain, address: Address, abi: Abi): Contract {
  return {
    address,
    read: (functionName, ...args) => chain.client.readContract({ address, abi, functionName, args }),
    run: async (from, functionName, ...args) => {
      const receipt = await send(chain, from, {
        to: address,
        data: encodeFunctionData({ abi, functionName, args }),
      })
      if (!receipt.succeeded) throw new Error(`${functionName} was reverted`)
      return receipt.logs.filter((log) => log.address === address).map((log) => decodeEvent(abi, log))
    },
    refusal: async (from, functionName, ...args) => {
      try {
        await chain.client.readContract({ address, abi, functionName, args, account: from })
        return null
      } catch (error) {
        const reverted =
          error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError)
        if (!(reverted instanceof ContractFunctionRevertedError)) throw error
        return [reverted.data?.errorName ?? "unnamed", ...(reverted.data?.args ?? [])]
      }
    },
  }
}

function decodeEvent(abi: Abi, log: Receipt["logs"][number]): Event {
  const { eventName, args } = decodeEventLog({ abi, topics: log.topics, data: log.data })
  return [eventName ?? "unnamed", ...Object.values(args ?? {})]
}

/** What anvil offers beyond the standard: time, snapshots, code. */
export async function rpc<Result>(chain: Chain, method: string, params: readonly unknown[]): Promise<Result> {
  const request = chain.client.request as (call: {
    method: string
    params: readonly unknown[]
  }) => Promise<unknown>
  return (await request({ method, params })) as Result
}

export type Service = { readonly chain: Chain; readonly factory: Contract; readonly implementation: Address }

export const admin = account(0)
export const authorizer = account(1)
export const operator = account(2)
export const guardian = account(6)

/** A factory with an admin, a guardian, an authorizer, and one operator that has all roles. */
export async function deployService(chain: Chain, base = ""): Promise<Service> {
  const grants = [{ account: operator.address, roles: 15n }]
  const args = [admin.address, guardian.address, authorizer.address, grants, base]
  const { address } = await deploy(chain, admin.address, { abi: factoryAbi, bytecode: factoryBytecode, args })
  const factory = contractAt(chain, address, factoryAbi)
  return { chain, factory, implementation: getAddress(`${await factory.read("implementation")}`) }
}

/** A new collection. */
export async function deployCollection(
  { chain, factory }: Service,
  seed: string,
  name = "Autumn Jackets 2026",
  symbol = "AJ26",
): Promise<Contract> {
  const salt = keccak256(stringToHex(seed))
  await factory.run(operator.address, "deploy", salt, name, symbol)
  const address = collectionAddress(2, { factory: factory.address, salt, name, symbol })
  return contractAt(chain, address, collectionAbi)
}

/** Announces the release and lets its delay pass. */
export async function release({ chain, factory }: Service): Promise<void> {
  await factory.run(admin.address, "announceRelease")
  await passTime(chain, 7 * 24 * 3_600)
}

export async function passTime(chain: Chain, seconds: number): Promise<void> {
  await rpc(chain, "evm_increaseTime", [seconds])
  await rpc(chain, "evm_mine", [])
}

/** Chip IDs as `issue` takes them: five bytes each, in order. */
export function packed(chips: readonly number[]): Hex {
  return concatHex(chips.map((chip) => numberToHex(chip, { size: 5 })))
}

const authorizationTypes = {
  Claim: [
    { name: "serial", type: "uint256" },
    { name: "recipient", type: "address" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
  Transfer: [
    { name: "serial", type: "uint256" },
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
} as const

/** The authorization of a claim or transfer as EIP-712 typed data, ready to be signed or hashed. */
export function authorization(
  verifyingContract: Address,
  primaryType: "Claim" | "Transfer",
  message: Record<string, unknown>,
  chainId: number = anvil.id,
): TypedDataDefinition {
  const domain = { name: "service-api", version: "1", chainId, verifyingContract }
  return { domain, types: authorizationTypes, primaryType, message }
}
