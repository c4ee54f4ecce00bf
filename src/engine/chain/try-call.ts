import type { Address, Hex } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { unlessUnknown } from "./endpoint.ts"
import { CallReverted, reach } from "./rpc.ts"

/**
 * Simulates a call at the newest block: returns the gas it needs, or how it reverts. Nodes that do not know the block
 * parameter choose the block themselves. Throws `ChainUnreachable`.
 */
export async function tryCall(
  chain: ConnectedChain,
  account: Address,
  { to, data }: { to: Address; data: Hex },
): Promise<bigint | CallReverted> {
  try {
    return await reach(() =>
      unlessUnknown(chain.rpc.estimateGas({ account, to, data, blockTag: "latest" }), () =>
        chain.rpc.estimateGas({ account, to, data }),
      ),
    )
  } catch (error) {
    if (error instanceof CallReverted) return error
    throw error
  }
}
