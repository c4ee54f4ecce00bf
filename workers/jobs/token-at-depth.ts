import type { Address } from "viem"
import { type ConnectedChain, ownerIn } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { newestConfirmed } from "../../src/engine/chain/headers.ts"
import { unlessReverted } from "../../src/engine/chain/rpc.ts"

/**
 * Whether a token is claimed as deep as the confirmation depth: one that is only in a newer block may come undone. `seen`
 * is a block that the chain has. Throws `ChainUnreachable`.
 */
export async function isClaimedAtDepth(
  chain: ConnectedChain,
  { contract, serial }: { contract: Address; serial: bigint },
  seen: bigint,
): Promise<boolean> {
  const blockNumber = await newestConfirmed(chain, seen)
  if (blockNumber < 0n) return false
  const token = { address: contract, abi: collectionAbi, args: [serial], blockNumber } as const
  // Where it was not issued yet, nobody had claimed it.
  const holder = await unlessReverted(
    () => chain.rpc.readContract({ ...token, functionName: "ownerOf" }),
    contract,
  )
  return ownerIn(contract, holder) !== null
}
