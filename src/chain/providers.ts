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
import { rawMessage } from "./rpc.ts"
import { classifySendError } from "./send-errors.ts"

/** The JSON-RPC endpoints of one chain: asked in order, those that fail or lag behind rested for a while. */
export type Providers = {
  /** Asks the first healthy provider, and the next one when it does not answer. */
  transport: Transport
  /** Asks every provider and gives what those that answered said. Throws when nobody did. */
  askAll(call: Call): Promise<unknown[]>
  /** The hash each reachable provider gives for a block; null where it does not have the block. */
  blockHashes(blockNumber: bigint): Promise<(Hex | null)[]>
  /** Finds out who lags behind; nothing to do for a single provider. */
  rank(): Promise<void>
}

export type Call = { method: string; params?: unknown }

/** Failures in a row after which a provider is rested, and for how long. */
const maxFailures = 5
const restMilliseconds = 30_000
/** The first pause after "too many requests"; each further one doubles it, give or take a quarter. */
const backOffMilliseconds = 200
const maxBackOffMilliseconds = 5_000
/** Blocks behind the best provider at which another one is asked last. */
const maxLagBlocks = 3n

export function createProviders(urls: string[], timeoutMilliseconds = 10_000): Providers {
  const providers = urls.map((url) => createProvider(url, timeoutMilliseconds))

  async function request(call: Call): Promise<unknown> {
    let failure: unknown
    for (const provider of byHealth(providers)) {
      try {
        return await ask(provider, call)
      } catch (error) {
        if (judge(error) === "answer") throw error
        failure ??= error
      }
    }
    throw failure
  }

  async function askAll(call: Call): Promise<unknown[]> {
    const answers = await Promise.allSettled(providers.map((provider) => ask(provider, call)))
    const given = answers.filter((answer) => answer.status === "fulfilled")
    if (given.length === 0) throw (answers[0] as PromiseRejectedResult).reason
    return given.map(({ value }) => value)
  }

  return {
    transport: custom({ request }, { retryCount: 0 }),
    askAll,
    async blockHashes(blockNumber) {
      const params = [`0x${blockNumber.toString(16)}`, false]
      const blocks = await askAll({ method: "eth_getBlockByNumber", params })
      return blocks.map((block) => (block as { hash: Hex } | null)?.hash ?? null)
    },
    async rank() {
      if (providers.length < 2) return
      const heads = await Promise.allSettled(
        providers.map(async (provider) =>
          BigInt((await ask(provider, { method: "eth_blockNumber" })) as Hex),
        ),
      )
      const best = heads.reduce(
        (highest, head) => (head.status === "fulfilled" && head.value > highest ? head.value : highest),
        0n,
      )
      for (const [index, provider] of providers.entries()) {
        const head = heads[index]
        if (head?.status === "fulfilled") provider.lags = best - head.value > maxLagBlocks
      }
    },
  }
}

type Provider = {
  request(call: Call): Promise<unknown>
  failures: number
  rested_until: number
  /** Refusals for too many requests in a row, and until when it is left in peace. */
  limits: number
  limited_until: number
  lags: boolean
}

function createProvider(url: string, timeout: number): Provider {
  const { request } = http(url, { retryCount: 0, timeout })({})
  return {
    request: (call) => inTime(request(call as Parameters<typeof request>[0]), timeout),
    failures: 0,
    rested_until: 0,
    limits: 0,
    limited_until: 0,
    lags: false,
  }
}

/** The client's own time ends with the headers of an answer, whose body may never come. */
async function inTime<T>(answer: Promise<T>, milliseconds: number): Promise<T> {
  let timer: Timer | undefined
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("the provider did not answer in time")), milliseconds)
  })
  try {
    return await Promise.race([answer, silence])
  } finally {
    clearTimeout(timer)
  }
}

async function ask(provider: Provider, call: Call): Promise<unknown> {
  if (provider.limited_until > performance.now()) throw new Error("the provider asked for fewer requests")
  try {
    const answer = await provider.request(call)
    provider.failures = 0
    provider.limits = 0
    return answer
  } catch (error) {
    noteFailure(provider, judge(error))
    throw error
  }
}

function noteFailure(provider: Provider, judgement: Judgement): void {
  if (judgement === "answer" || judgement === "no_help") {
    provider.failures = 0
    provider.limits = 0
    return
  }
  if (judgement === "limited") {
    const pause = Math.min(backOffMilliseconds * 2 ** provider.limits, maxBackOffMilliseconds)
    provider.limits += 1
    provider.limited_until = performance.now() + pause * (0.75 + Math.random() / 2)
    return
  }
  provider.failures += 1
  if (provider.failures >= maxFailures) provider.rested_until = performance.now() + restMilliseconds
}

/** Laggards come after the others and rested providers last: when nobody else answers, they are asked all the same. */
function byHealth(providers: Provider[]): Provider[] {
  const now = performance.now()
  const rank = ({ rested_until, lags }: Provider) => (rested_until > now ? 2 : lags ? 1 : 0)
  return [...providers].sort((one, other) => rank(one) - rank(other))
}

/**
 * `answer`: the chain's word, whatever it says of nonces, prices and reverts. `no_help`: the provider works and
 * cannot say, which another one may. `limited`: it wants fewer requests. `fault`: silence, or a refusal to serve.
 */
type Judgement = "answer" | "no_help" | "limited" | "fault"

function judge(error: unknown): Judgement {
  if (!(error instanceof BaseError)) return "fault"
  const silent = error.walk((cause) => cause instanceof HttpRequestError || cause instanceof TimeoutError)
  if (silent) return silent instanceof HttpRequestError && silent.status === 429 ? "limited" : "fault"
  const said = error.walk((cause) => cause instanceof RpcRequestError)
  if (!(said instanceof RpcRequestError)) return "fault"
  const outcome = classifySendError(rawMessage(said))
  if (said.code === limitExceeded || said.code === 429 || outcome === "rate_limited") return "limited"
  return outcome === "unclear" && (said.code === internalError || said.code === resourceUnavailable)
    ? "no_help"
    : "answer"
}

/** EIP-1474: request exceeds a defined limit, internal error, resource unavailable. */
const limitExceeded = -32005
const internalError = -32603
const resourceUnavailable = -32002
