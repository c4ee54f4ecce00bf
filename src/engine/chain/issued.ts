import { type Address, decodeFunctionResult, encodeFunctionData } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { reach } from "./rpc.ts"

/** Returns the number of serials issued at a block, by default the newest; 0 if there is no contract yet. */
export async function issuedOn(
  { rpc }: ConnectedChain,
  address: Address,
  blockNumber: bigint | null = null,
): Promise<number> {
  const issued = { abi: collectionAbi, functionName: "issued" } as const
  const call = { to: address, data: encodeFunctionData(issued) }
  const { data } = await reach(() => rpc.call(blockNumber === null ? call : { ...call, blockNumber }))
  return data ? Number(decodeFunctionResult({ ...issued, data })) : 0
}
