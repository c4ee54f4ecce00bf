import {
  BaseError,
  custom,
  type Hex,
  HttpRequestError,
  http,
  RpcRequestError,
  TimeoutError,
  type Transport,
} from "viem"

/** The JSON-RPC endpoints of one chain: asked in order, those that fail rested for a while. */
export type Providers = {
  /** Asks the first healthy provider, and the next one when it does not answer. */
  transport: Transport
  /** The hash each reachable provider gives for a block; null where it does not have the block. */
  blockHashes(blockNumber: bigint): Promise<(Hex | null)[]>
}

/** Failures in a row after which a provider is rested, and for how long. */
const maxFailures = 5
const restMilliseconds = 30_000
const timeoutMilliseconds = 10_000

export function createProviders(urls: string[]): Providers {
  const providers = urls.map(createProvider)

  async function request({ method, params }: Call): Promise<unknown> {
    let failure: unknown
    for (const provider of byHealth(providers)) {
      try {
        return await ask(provider, { method, params })
      } catch (error) {
        if (isAnswer(error)) throw error
        failure = error
      }
    }
    throw failure
  }

  return {
    transport: custom({ request }, { retryCount: 0 }),
    async blockHashes(blockNumber) {
      const call = { method: "eth_getBlockByNumber", params: [`0x${blockNumber.toString(16)}`, false] }
      const answers = await Promise.allSettled(providers.map((provider) => ask(provider, call)))
      return answers
        .filter((answer) => answer.status === "fulfilled")
        .map(({ value }) => (value as { hash: Hex } | null)?.hash ?? null)
    },
  }
}

type Call = { method: string; params?: unknown }

type Provider = { request(call: Call): Promise<unknown>; failures: number; rested_until: number }

function createProvider(url: string): Provider {
  const { request } = http(url, { retryCount: 0, timeout: timeoutMilliseconds })({})
  return { request: request as Provider["request"], failures: 0, rested_until: 0 }
}

async function ask(provider: Provider, call: Call): Promise<unknown> {
  try {
    const answer = await provider.request(call)
    provider.failures = 0
    return answer
  } catch (error) {
    if (isAnswer(error)) {
      provider.failures = 0
      throw error
    }
    provider.failures += 1
    if (provider.failures >= maxFailures) provider.rested_until = performance.now() + restMilliseconds
    throw error
  }
}

/** Rested providers come last: when nobody else answers, they are asked all the same. */
function byHealth(providers: Provider[]): Provider[] {
  const now = performance.now()
  const isRested = (provider: Provider) => provider.rested_until > now
  return [...providers.filter((each) => !isRested(each)), ...providers.filter(isRested)]
}

/** A nonce, price or revert answer is an answer: only silence and a refusal to serve are a provider's fault. */
function isAnswer(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false
  if (error.walk((cause) => cause instanceof HttpRequestError || cause instanceof TimeoutError)) return false
  const said = error.walk((cause) => cause instanceof RpcRequestError)
  return said instanceof RpcRequestError && said.code !== rateLimited && said.code !== 429
}

/** EIP-1474: request exceeds a defined limit. */
const rateLimited = -32005
