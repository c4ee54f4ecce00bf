import type { Hex } from "viem"
import { unlessUnknown } from "./endpoint.ts"
import type { Header } from "./headers.ts"
import { ChainUnreachable, type Rpc, reach } from "./rpc.ts"

/** A block by its hash or number. */
export type BlockPlace = { blockHash: Hex } | { blockNumber: bigint }

/**
 * Reads state at one block, however many questions that takes: by its hash (EIP-1898), because two nodes may follow
 * different forks, or by its number through nodes that do not know EIP-1898, if the chain still has the block there
 * afterwards. `read` throws what the provider says. Throws as `reach` does.
 */
export async function stateAt<T>(
  rpc: Rpc,
  { hash, number }: Pick<Header, "hash" | "number">,
  read: (place: BlockPlace) => Promise<T>,
): Promise<T> {
  return await reach(() => unlessUnknown(read({ blockHash: hash }), stateByNumber))

  async function stateByNumber(): Promise<T> {
    const state = await read({ blockNumber: number })
    const block = await rpc.getBlock({ blockNumber: number })
    if (block.hash !== hash) throw new ChainUnreachable(`block ${hash} is not found any more`)
    return state
  }
}
