import { type Address, concatHex, decodeFunctionResult, encodeFunctionData } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import type { Header } from "./headers.ts"
import { reach } from "./rpc.ts"
import { stateAt } from "./state-at.ts"

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

/**
 * Returns whether an address surely has no contract at a block. Some nodes answer calls for a block that they lack like
 * calls to no contract, so code is run there that returns the size of the address's code.
 */
export async function hasNoContract(
  { rpc }: ConnectedChain,
  address: Address,
  block: Header,
): Promise<boolean> {
  // PUSH20 address, EXTCODESIZE, stored in memory as the word that is returned.
  const sizeOfCode = concatHex(["0x73", address, "0x3b60005260206000f3"])
  const { data } = await stateAt(rpc, block, (place) => rpc.call({ data: sizeOfCode, ...place }))
  return data === noSize
}

const noSize = `0x${"0".repeat(64)}`
