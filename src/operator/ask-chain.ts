import { createProviders, type Providers } from "../engine/chain/providers.ts"
import { createRpc, type Rpc, rawMessage } from "../engine/chain/rpc.ts"
import type { ChainConfig } from "../platform/chain-settings.ts"
import type { Context } from "../platform/context.ts"

/** A client for when people are waiting: each provider gets two seconds, and none is asked twice. */
export function createQuickClient(chain: ChainConfig, providers = createQuickProviders(chain)): Rpc {
  return createRpc(chain, providers.transport)
}

export function createQuickProviders(chain: ChainConfig): Providers {
  return createProviders(chain, { timeout_milliseconds: timeoutMilliseconds })
}

/** In words that follow the chain's name, what is wrong with it now; null when nothing is. */
export type AskChain = (chainId: number) => Promise<string | null>

/** Asks without the workers' clients; an answer is good for two seconds. */
export function createAskChain({ config, chains, clock, steadyClock }: Context): AskChain {
  const known = new Map<number, { until: number; answer: Promise<string | null> }>()
  return (chainId) => {
    if (!chains.has(chainId)) return Promise.resolve(notConfigured)
    const chain = config.chains.find(({ chain_id }) => chain_id === chainId)
    if (!chain) return Promise.resolve(null)
    const now = steadyClock()
    const earlier = known.get(chainId)
    if (earlier && now < earlier.until) return earlier.answer
    const answer = troubleOf(chain, clock())
    known.set(chainId, { until: now + timeoutMilliseconds, answer })
    return answer
  }
}

const notConfigured = "is not in CHAINS: its work waits until it is there again"

const timeoutMilliseconds = 2_000

async function troubleOf(chain: ChainConfig, now: Date): Promise<string | null> {
  try {
    const client = createQuickClient(chain)
    const [served, newest] = await Promise.all([client.getChainId(), client.getBlock()])
    return troubleWith(chain, { served, ...newest }, now)
  } catch (error) {
    return `does not answer (${rawMessage(error)})`
  }
}

/** What is wrong with a chain that answers: its address serves another chain, or it has stopped making blocks. */
export function troubleWith(
  { chain_id, block_time_seconds }: ChainConfig,
  newest: { served: number; number: bigint; timestamp: bigint },
  now: Date,
): string | null {
  if (newest.served !== chain_id)
    return `has a provider that serves chain ${newest.served}: correct rpc_urls in CHAINS and restart`
  const seconds = Math.floor(now.getTime() / 1_000) - Number(newest.timestamp)
  if (seconds < Math.max(leastStandstillSeconds, standstillBlocks * block_time_seconds)) return null
  return `has made no block for ${seconds} seconds, since block ${newest.number}`
}

/** Longer than an idle development chain pauses between blocks. */
const leastStandstillSeconds = 180
const standstillBlocks = 20
