import {
  type Address,
  decodeFunctionData,
  encodeFunctionData,
  getAbiItem,
  type Hex,
  toFunctionSelector,
} from "viem"
import type { ConnectedChain } from "./chains.ts"
import { implementationOf } from "./collection-address.ts"
import { collectionAbi, deskAbi } from "./contracts.generated.ts"
import { reach } from "./rpc.ts"

type ContractCall = { to: Address; data: Hex }

/** The selector of the desk's `run`; none of the other contracts here has it. */
export const runSelector = toFunctionSelector("run((address,bytes)[])")

/** Encodes one call of the desk that makes these calls to collections, in order. */
export function encodeRun(calls: ContractCall[]): Hex {
  return encodeFunctionData({ abi: deskAbi, functionName: "run", args: [calls] })
}

/** Returns the calls to collections that a call makes: those it makes through the desk, or the call itself. */
export function callsIn({ to, data }: { to: string; data: string }): ContractCall[] {
  if (!data.startsWith(runSelector)) return [{ to: to as Address, data: data as Hex }]
  const { args } = decodeFunctionData({ abi: deskAbi, data: data as Hex })
  return args[0].map((call) => ({ ...call }))
}

/** Like `callsIn`, with batches of claims split into single claims. */
export function singleCallsIn(call: { to: string; data: string }): ContractCall[] {
  return callsIn(call).flatMap((each) => {
    if (!each.data.startsWith(claimBatchSelector)) return [each]
    const { args } = decodeFunctionData({ abi: [claimBatch], data: each.data })
    const [serials, recipients] = args
    return serials.map((serial, index) => ({
      to: each.to,
      data: encodeFunctionData({
        abi: collectionAbi,
        functionName: "claim",
        args: [serial, recipients[index] as Address],
      }),
    }))
  })
}

const claimBatch = getAbiItem({ abi: collectionAbi, name: "claimBatch" })
const claimBatchSelector = toFunctionSelector(claimBatch)

/** Returns the desk if it serves the collection's factory; null if the collection must be called directly. */
export async function deskFor(chain: ConnectedChain, contract: Address): Promise<Address | null> {
  const { desk_address, factory_address } = chain.config
  if (desk_address === null) return null
  const { factory, generation } = await chain.generations.originOf(contract)
  return generation === 2 && factory === factory_address ? desk_address : null
}

/**
 * Returns whether the configured desk belongs to the configured factory: its code contains the address of the
 * implementation of the factory whose roles it checks. Throws `ChainUnreachable`.
 */
export async function isOwnDesk({ config, rpc }: Pick<ConnectedChain, "config" | "rpc">): Promise<boolean> {
  const { desk_address: address, factory_address } = config
  if (address === null) return false
  const code = await reach(() => rpc.getCode({ address }))
  return code?.includes(implementationOf(factory_address).slice(2).toLowerCase()) ?? false
}
