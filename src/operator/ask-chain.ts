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
    return troubleWith(chain, await lookAt(chain, createQuickProviders(chain)), now)
  } catch (error) {
    return `does not answer (${rawMessage(error)})`
  }
}

/** What lanes require of a chain. `served`: the chain ids of all providers that answer. */
type Look = { served: number[]; has_factory: boolean; number: bigint; timestamp: bigint }

export async function lookAt(chain: ChainConfig, providers: Providers): Promise<Look> {
  const client = createQuickClient(chain, providers)
  const [served, { number, timestamp }, code] = await Promise.all([
    providers.askAll({ method: "eth_chainId" }),
    client.getBlock(),
    client.getCode({ address: chain.factory_address }),
  ])
  return { served: served.map(Number), has_factory: code !== undefined, number, timestamp }
}

/**
 * What is wrong with a chain that answers: a provider serves another chain, it has stopped making blocks, or it has no
 * factory, as a test network that was reset.
 */
export function troubleWith(
  { chain_id, block_time_seconds, factory_address }: ChainConfig,
  { served, has_factory, number, timestamp }: Look,
  now: Date,
): string | null {
  const other = served.find((id) => id !== chain_id)
  if (other !== undefined)
    return `has a provider that serves chain ${other}: correct rpc_urls in CHAINS and restart`
  const seconds = Math.floor(now.getTime() / 1_000) - Number(timestamp)
  const isStill = seconds >= Math.max(leastStandstillSeconds, standstillBlocks * block_time_seconds)
  const still = isStill ? `has made no block for ${seconds} seconds, since block ${number}` : null
  const bare = has_factory
    ? null
    : `has no contract at factory_address ${factory_address}: deploy the factory, or correct factory_address in CHAINS and restart`
  return [still, bare].filter((trouble) => trouble !== null).join(", and ") || null
}

/** Longer than an idle development chain pauses between blocks. */
const leastStandstillSeconds = 180
const standstillBlocks = 20
