import type { Address } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { chipIdOf } from "./issue-call.ts"
import { reach } from "./rpc.ts"

/** How many the chain is asked for at the same time. */
const serialsAtOnce = 20

/**
 * The chips that serials are bound to at a block, which need not be those they were issued with. Each was issued by
 * then. Throws `ChainUnreachable`.
 */
export async function boundChips(
  { rpc }: Pick<ConnectedChain, "rpc">,
  address: Address,
  serials: readonly number[],
  blockNumber: bigint,
): Promise<Map<number, string>> {
  const bound = new Map<number, string>()
  const ask = async (serial: number) => {
    const args = [BigInt(serial)] as const
    const call = { address, abi: collectionAbi, functionName: "chipOf", args, blockNumber } as const
    bound.set(serial, chipIdOf(await reach(() => rpc.readContract(call))))
  }
  for (let at = 0; at < serials.length; at += serialsAtOnce)
    await Promise.all(serials.slice(at, at + serialsAtOnce).map(ask))
  return bound
}
