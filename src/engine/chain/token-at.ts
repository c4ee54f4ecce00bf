import type { Address } from "viem"
import { type ConnectedChain, ownerIn } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { chipIdOf } from "./issue-call.ts"
import { reach } from "./rpc.ts"

/**
 * Reads a token at a block: its chip, and its owner, null until claimed. Both at one block, because two providers may
 * be at different ones. Throws as `reach` does, also if the token was not issued by then.
 */
export async function tokenAt(
  { rpc }: Pick<ConnectedChain, "rpc">,
  { contract, serial }: { contract: Address; serial: bigint },
  blockNumber: bigint,
): Promise<{ chip_id: string; owner: Address | null }> {
  const token = { address: contract, abi: collectionAbi, args: [serial], blockNumber } as const
  const [chip, owner] = await reach(() =>
    Promise.all([
      rpc.readContract({ ...token, functionName: "chipOf" }),
      rpc.readContract({ ...token, functionName: "ownerOf" }),
    ]),
  )
  return { chip_id: chipIdOf(chip), owner: ownerIn(contract, owner) }
}
