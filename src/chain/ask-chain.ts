import { createPublicClient, fallback, http } from "viem"
import type { ChainConfig } from "../config.ts"
import type { Context } from "../context.ts"
import { rawMessage } from "./rpc.ts"

/** Why a chain does not answer now; null when it does, or when it is not configured here. */
export type AskChain = (chainId: number) => Promise<string | null>

/** Asks in at most two seconds, without the workers' clients; an answer is good for two seconds. */
export function createAskChain({ config, clock }: Context): AskChain {
  const known = new Map<number, { until: number; answer: Promise<string | null> }>()
  return (chainId) => {
    const chain = config.chains.find(({ chain_id }) => chain_id === chainId)
    if (!chain) return Promise.resolve(null)
    const now = clock().getTime()
    const earlier = known.get(chainId)
    if (earlier && now < earlier.until) return earlier.answer
    const answer = troubleOf(chain)
    known.set(chainId, { until: now + timeoutMilliseconds, answer })
    return answer
  }
}

const timeoutMilliseconds = 2_000

async function troubleOf(chain: ChainConfig): Promise<string | null> {
  const transports = chain.rpc_urls.map((url) => http(url, { timeout: timeoutMilliseconds, retryCount: 0 }))
  const client = createPublicClient({ transport: fallback(transports, { retryCount: 0 }) })
  try {
    await client.getBlockNumber()
    return null
  } catch (error) {
    return rawMessage(error)
  }
}
