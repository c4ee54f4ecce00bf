import { createPublicClient, http } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import type { Log } from "../../platform/log.ts"
import { StartError } from "../../platform/start-error.ts"

/**
 * Asks every configured provider, at start, whether it serves the chain it is configured for, with the factory on it.
 * Throws `StartError` when it does not. One that does not answer is only warned of: it may come back.
 */
export async function checkChains(chains: ChainConfig[], log: Log): Promise<void> {
  await Promise.all(
    chains.flatMap((chain) => chain.rpc_urls.map((_url, index) => checkProvider(chain, index, log))),
  )
}

async function checkProvider(chain: ChainConfig, index: number, log: Log): Promise<void> {
  const client = createPublicClient({
    transport: http(chain.rpc_urls[index], { timeout: 3_000, retryCount: 0 }),
  })
  // Addresses of providers hold keys, so they are known by their number.
  const provider = `number ${index + 1} of rpc_urls of chain ${chain.chain_id}`
  const answers = await Promise.all([
    client.getChainId(),
    client.getCode({ address: chain.factory_address }),
  ]).catch(() => null)
  if (!answers)
    return log.warn(
      { chain_id: chain.chain_id },
      `${provider} does not answer; it is asked again when needed`,
    )
  const [chain_id, factory] = answers
  if (chain_id !== chain.chain_id)
    throw new StartError(`CHAINS: ${provider} serves chain ${chain_id}; correct rpc_urls or the chain id`)
  if (!factory)
    throw new StartError(
      `CHAINS: chain ${chain.chain_id} has no contract at factory_address ${chain.factory_address}; deploy the factory or correct the address`,
    )
}
