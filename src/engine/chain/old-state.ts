import { rawMessage, reach } from "./rpc.ts"

/**
 * Reads state at an old block. Returns null if the node has pruned it, as most do beyond the newest blocks. Throws as
 * `reach` does, also if the node does not have the block yet.
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

/**
 * The wording of geth, of its path scheme, of Nethermind, Besu, Erigon, reth and Frontier, and of
 * providers that charge for old state.
 */
const forgotten =
  /missing trie node|historical state|no state available|world state unavailable|state (\S+ )?is not available|state histories|state already discarded|data before txnum=\d+ not available|prun|archiv/
