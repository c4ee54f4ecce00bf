import type { ConnectedChain } from "./chains.ts"
import { reach } from "./rpc.ts"

/** Throws an error if a provider now serves another chain than the configured one; throws `ChainUnreachable`. */
export async function requireOwnChain({ chain_id, providers }: ConnectedChain): Promise<void> {
  const served = await reach(() => providers.askAll({ method: "eth_chainId" }))
  const wrong = served.find((id) => Number(id) !== chain_id)
  if (wrong !== undefined)
    throw new Error(
      `a provider of chain ${chain_id} serves chain ${Number(wrong)}: correct rpc_urls in CHAINS and restart`,
    )
}
