import { createPublicClient, http } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import type { Log } from "../../platform/log.ts"
import { StartError } from "../../platform/start-error.ts"
import { endingAfter } from "./endpoint.ts"

/**
 * Asks every configured provider, at start, whether it serves the chain it is configured for, with the factory on it.
 * Throws `StartError` where one serves another chain, or none of a chain knows the factory. One that does not answer, or
 * lacks the factory that another one has, as while it synchronizes anew, is only warned of: it may come back.
 */
export async function checkChains(chains: ChainConfig[], log: Log): Promise<void> {
  await Promise.all(chains.map((chain) => checkChain(chain, log)))
}

async function checkChain(chain: ChainConfig, log: Log): Promise<void> {
  const { chain_id, factory_address } = chain
  const warn = (index: number, trouble: string) =>
    log.warn({ chain_id }, `${nameOf(chain, index)} ${trouble}`)
  const found = await Promise.all(chain.rpc_urls.map((_url, index) => askProvider(chain, index)))
  for (const [index, has] of found.entries())
    if (has === "nothing to say") warn(index, "does not answer; it is asked again when needed")
  if (!found.includes("no factory")) return
  if (!found.includes("the factory"))
    throw new StartError(
      `CHAINS: chain ${chain_id} has no contract at factory_address ${factory_address}; deploy the factory or correct the address`,
    )
  for (const [index, has] of found.entries())
    if (has === "no factory")
      warn(index, `lacks the contract at factory_address ${factory_address}; is it behind?`)
}

async function askProvider(
  chain: ChainConfig,
  index: number,
): Promise<"the factory" | "no factory" | "nothing to say"> {
  const client = createPublicClient({
    transport: http(chain.rpc_urls[index], { ...endingAfter(timeoutMilliseconds), retryCount: 0 }),
  })
  const answers = await Promise.all([
    client.getChainId(),
    client.getCode({ address: chain.factory_address }),
  ]).catch(() => null)
  if (!answers) return "nothing to say"
  const [served, factory] = answers
  if (served !== chain.chain_id)
    throw new StartError(
      `CHAINS: ${nameOf(chain, index)} serves chain ${served}; correct rpc_urls or the chain id`,
    )
  return factory ? "the factory" : "no factory"
}

const timeoutMilliseconds = 3_000

/** Addresses of providers hold keys, so they are known by their number. */
function nameOf({ chain_id }: ChainConfig, index: number): string {
  return `number ${index + 1} of rpc_urls of chain ${chain_id}`
}
