import { rawMessage, reach } from "./rpc.ts"

/**
 * The state at an old block; null where the node has forgotten it, as most do beyond the newest blocks. Throws as
 * `reach` does, also where the node does not have the block yet.
 */
export async function unlessForgotten<T>(ask: () => Promise<T>): Promise<T | null> {
  return await reach(async () => {
    try {
      return await ask()
    } catch (error) {
      if (forgotten.test(rawMessage(error))) return null
      throw error
    }
  })
}

/** In the words of geth, of its path scheme, of Nethermind, Besu, Erigon, reth and Frontier, and of those who sell old states apart. */
const forgotten =
  /missing trie node|historical state|no state available|world state unavailable|state (\S+ )?is not available|state histories|state already discarded|data before txnum=\d+ not available|prun|archiv/
