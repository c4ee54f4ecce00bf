import { unlessUnable } from "./endpoint.ts"
import { type Rpc, reach } from "./rpc.ts"

/**
 * What a chain says of states up to a block; null where the node that is asked has forgotten them, as one that keeps the
 * states of the newest blocks only. Throws as `reach` does, also where that node does not have the block yet.
 */
export async function unlessForgotten<T>(rpc: Rpc, newest: bigint, ask: () => Promise<T>): Promise<T | null> {
  return await reach(() =>
    unlessUnable(ask(), async () => {
      await rpc.getBlock({ blockNumber: newest })
      return null
    }),
  )
}
