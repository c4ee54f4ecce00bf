import { custom, type Hex, isHex, type Transport } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { createPlaces, type Places } from "../../platform/places.ts"
import { amountIn, firstAnswer, timelyAnswers } from "./answers.ts"
import {
  createEndpoint,
  type Endpoint,
  judge,
  mostTelling,
  mostTellingOfAll,
  type Question,
  sendMethod,
  verdictOf,
} from "./endpoint.ts"
import { least } from "./extremes.ts"
import { surelyHeld } from "./headers.ts"
import { rawMessage, reach } from "./rpc.ts"
import { bestVerdict, type SendVerdict } from "./send-errors.ts"

/** The JSON-RPC endpoints of one chain: asked in order; those that fail or lag behind are avoided for a while. */
export type Providers = {
  /** Asks the first healthy provider, and the next if it is silent or its error is not recognized as an answer. */
  transport: Transport
  /** Asks every provider that is not resting. Returns the results that arrive in time. Throws if there are none. */
  askAll(question: Question): Promise<unknown[]>
  /** Returns the hash that each reachable provider reports for a block; null if it does not have the block. */
  blockHashes(blockNumber: bigint): Promise<(Hex | null)[]>
  /** Returns how many providers must agree before something is beyond doubt: all except those that are gone. */
  voices(): number
  /**
   * Sends signed bytes to every provider that is not resting, or only to the chain's `send_url`. Returns the verdict of
   * the first pool that has them, otherwise the best of all verdicts. Never throws.
   */
  send(raw: Hex): Promise<SendVerdict>
  /** Finds out which providers lag behind and which have recovered; does nothing with a single provider. */
  rank(): Promise<void>
  /** Ranks in the background if the last ranking is some blocks old; for callers in a loop. */
  rankWhenDue(): void
  /** Returns the health of each provider, in the order of `rpc_urls`. */
  health(): ProviderHealth[]
}

/** `gone`: it has not responded for an hour and no longer counts in `voices`. `said`: its latest error. */
export type ProviderHealth = {
  /** The position in `rpc_urls`, from 1. It identifies the provider, because URLs may contain keys. */
  number: number
  state: "healthy" | "behind" | "resting" | "gone"
  troubled_seconds: number
  said: string | null
}

/**
 * The rest after a failure doubles with each further one, and lasts at least a multiple of the time the failure took.
 */
const restMilliseconds = 1_000
const maxRestMilliseconds = 60_000
const restsPerFailureTime = 3
/** The pause after a rate limit doubles with each further one, give or take a quarter. */
const backOffMilliseconds = 200
const maxBackOffMilliseconds = 5_000
/**
 * A provider this many blocks behind the best, or behind by the blocks of this many seconds, is asked after the others.
 */
const maxLagBlocks = 3
const maxLagSeconds = 4
const goneMilliseconds = 3_600_000

/** Returns the allowed lag: so small that a provider asked first never lacks a block that all are assumed to have. */
function maxLagOf(chain: Pick<ChainConfig, "block_time_seconds" | "finality_depth">): bigint {
  const blocks = Math.max(maxLagBlocks, Math.ceil(maxLagSeconds / chain.block_time_seconds))
  return least(BigInt(blocks), surelyHeld(chain) - 1n)
}

/** The timeout of a request, the silence after which the next provider is asked too, and a monotonic clock. */
export type Timing = { timeout_milliseconds: number; patience_milliseconds: number; now: () => number }

const usualTiming: Timing = {
  timeout_milliseconds: 10_000,
  patience_milliseconds: 1_500,
  now: () => performance.now(),
}

/** The limit for a client of its own, such as a command's. */
const usualPlaces = 128

/** Sets up the providers of a chain; sends no request yet. `places` limits the requests to all chains together. */
export function createProviders(
  chain: Pick<ChainConfig, "rpc_urls" | "send_url" | "block_time_seconds" | "finality_depth">,
  timing: Partial<Timing> = {},
  places: Places = createPlaces(usualPlaces),
): Providers {
  const times = { ...usualTiming, ...timing }
  const { now, timeout_milliseconds, patience_milliseconds } = times
  const connect = (url: string) => createProvider(createEndpoint(url, timeout_milliseconds, places))
  const providers = chain.rpc_urls.map(connect)
  const privatePool = chain.send_url ? connect(chain.send_url) : null
  const maxLag = maxLagOf(chain)
  const rankEveryMilliseconds = Math.min(Math.max(4_000 * chain.block_time_seconds, 1_000), 15_000)
  let rankedAt = now()
  let ranking: Promise<void> | undefined

  async function request(question: Question): Promise<unknown> {
    // Reading blocks triggers no ranking: a chain without work is asked for nothing else, and can do without.
    if (!question.method.startsWith("eth_getBlockBy")) rankWhenDue()
    const laggards = new Set<unknown>()
    const asks = targetsOf(question).map((provider) => async () => {
      try {
        if (providers.length > 1) await requireHeld(provider, question, times)
        return await ask(provider, question, times)
      } catch (error) {
        if (provider.lags) laggards.add(error)
        throw error
      }
    })
    const isAnswer = (error: unknown) => judge(error, question.method) === "answer"
    const tell = (errors: unknown[]) => mostTelling(errors, laggards)
    return await firstAnswer(asks, isAnswer, tell, patience_milliseconds)
  }

  /** Bytes meant for a private pool go nowhere else, whoever sends them. */
  function targetsOf({ method }: Question): Provider[] {
    return privatePool && method === sendMethod ? [privatePool] : byHealth(providers, now())
  }

  function rankWhenDue(): void {
    if (now() - rankedAt >= rankEveryMilliseconds) void rank()
  }

  async function askAll(question: Question): Promise<unknown[]> {
    const asked = awake(providers, now()).map((provider) => ask(provider, question, times))
    return await timelyAnswers(asked, mostTellingOfAll, patience_milliseconds)
  }

  async function send(raw: Hex): Promise<SendVerdict> {
    const targets = privatePool ? [privatePool] : awake(providers, now())
    const verdicts = targets.map((provider) => sendTo(provider, raw, times))
    const taken = Promise.any(verdicts.map(async (verdict) => requireTaken(await verdict)))
    const best = timelyAnswers(verdicts, mostTellingOfAll, patience_milliseconds).then(bestVerdict)
    return await Promise.race([taken.catch(() => best), best])
  }

  function rank(): Promise<void> {
    if (providers.length < 2) return Promise.resolve()
    ranking ??= rankNow(providers, times, maxLag).finally(() => {
      ranking = undefined
      rankedAt = now()
    })
    return ranking
  }

  return {
    transport: custom({ request }, { retryCount: 0 }),
    askAll,
    async blockHashes(blockNumber) {
      const params = [`0x${blockNumber.toString(16)}`, false]
      const blocks = await askAll({ method: "eth_getBlockByNumber", params })
      return blocks.map((block) => (block as { hash: Hex } | null)?.hash ?? null)
    },
    voices: () => Math.max(providers.filter((provider) => !isGone(provider, now())).length, 1),
    send,
    rank,
    rankWhenDue,
    health: () => providers.map((provider, index) => healthOf(provider, index + 1, now())),
  }
}

/** Returns whether no reachable provider has another block at this height. Throws `ChainUnreachable`. */
export async function isAgreedOn(
  { providers }: { providers: Pick<Providers, "blockHashes"> },
  { number, hash }: { number: bigint; hash: string },
): Promise<boolean> {
  const hashes = await reach(() => providers.blockHashes(number))
  return hashes.every((each) => each === null || each === hash)
}

type Provider = {
  request: Endpoint
  failures: number
  /** When the current run of failures began, and the latest of them. */
  troubled_since: number | null
  said: string | null
  /** A request has been open for too long, and has neither succeeded nor failed yet. */
  is_silent: boolean
  rested_since: number
  rested_until: number
  /** Rate limits in a row, and until when it is not asked. */
  limits: number
  limited_until: number
  lags: boolean
}

function createProvider(request: Endpoint): Provider {
  return {
    request,
    failures: 0,
    troubled_since: null,
    said: null,
    is_silent: false,
    rested_since: 0,
    rested_until: 0,
    limits: 0,
    limited_until: 0,
    lags: false,
  }
}

/** The provider is not asked because it was rate limiting a moment ago. */
class AskedForFewer extends Error {
  override name = "AskedForFewer"
}

async function ask(provider: Provider, question: Question, times: Timing): Promise<unknown> {
  const { now, patience_milliseconds } = times
  const since = now()
  if (provider.limited_until > since) throw new AskedForFewer(provider.said ?? "too many requests")
  const silence = setTimeout(() => {
    provider.is_silent = true
  }, patience_milliseconds)
  try {
    const answer = await provider.request(question)
    noteAnswer(provider)
    return answer
  } catch (error) {
    const judgement = judge(error, question.method)
    if (judgement === "answer" || judgement === "elsewhere") noteAnswer(provider)
    else if (judgement === "unknown") noteIgnorance(provider, rawMessage(error), since)
    else noteFailure(provider, judgement, rawMessage(error), { since, until: now() })
    throw error
  } finally {
    clearTimeout(silence)
  }
}

/**
 * Throws an error unless a provider has the last block of a range whose logs are requested: one that is far behind
 * would leave out the logs of blocks that it lacks.
 */
async function requireHeld(provider: Provider, { params }: Question, times: Timing): Promise<void> {
  const [range] = Array.isArray(params) ? params : []
  const last = (range as { toBlock?: unknown } | undefined)?.toBlock
  if (!isHex(last)) return
  if ((await newestBlock(provider, times)) < BigInt(last))
    throw new Error(`block ${BigInt(last)} could not be found`)
}

async function newestBlock(provider: Provider, times: Timing): Promise<bigint> {
  const answer = await ask(provider, { method: "eth_blockNumber" }, times)
  const number = isHex(answer) ? amountIn(answer) : null
  if (number !== null) return number
  throw new Error(`the provider answers eth_blockNumber with ${JSON.stringify(answer)}`)
}

function noteAnswer(provider: Provider): void {
  Object.assign(provider, { failures: 0, limits: 0, troubled_since: null, said: null })
  Object.assign(provider, { rested_until: 0, is_silent: false })
}

/**
 * A question that a provider does not know makes it no less healthy; one that responds to nothing
 * else is gone after an hour, too.
 */
function noteIgnorance(provider: Provider, said: string, since: number): void {
  provider.said = said
  provider.is_silent = false
  provider.troubled_since ??= since
}

function noteFailure(
  provider: Provider,
  judgement: "limited" | "trouble",
  said: string,
  { since, until }: { since: number; until: number },
): void {
  provider.said = said
  provider.is_silent = false
  provider.troubled_since ??= since
  if (judgement === "limited") {
    const pause = Math.min(backOffMilliseconds * 2 ** provider.limits, maxBackOffMilliseconds)
    provider.limits += 1
    provider.limited_until = until + pause * (0.75 + Math.random() / 2)
    return
  }
  // Concurrent requests that fail together count as one failure.
  if (provider.rested_until > until && since < provider.rested_since) return
  const rest = Math.min(restMilliseconds * 2 ** provider.failures, maxRestMilliseconds)
  provider.failures += 1
  provider.rested_since = until
  provider.rested_until = until + Math.max(rest, restsPerFailureTime * (until - since))
}

/** Sorts laggards after the others and resting providers last: they are still asked if no other responds. */
function byHealth(providers: Provider[], now: number): Provider[] {
  const place = (provider: Provider) => (isAtRest(provider, now) ? 2 : provider.lags ? 1 : 0)
  return providers.toSorted((one, other) => place(one) - place(other))
}

/** Returns the providers that are not resting; all of them if each of those is rate limiting. */
function awake(providers: Provider[], now: number): Provider[] {
  const well = providers.filter((provider) => !isAtRest(provider, now))
  return well.some(({ limited_until }) => limited_until <= now) ? well : providers
}

function isAtRest({ rested_until, is_silent }: Provider, now: number): boolean {
  return is_silent || rested_until > now
}

async function sendTo(provider: Provider, raw: Hex, times: Timing): Promise<SendVerdict> {
  try {
    await ask(provider, { method: sendMethod, params: [raw] }, times)
    return { outcome: "known", said: null }
  } catch (error) {
    return error instanceof AskedForFewer
      ? { outcome: "rate_limited", said: error.message }
      : verdictOf(error)
  }
}

function requireTaken(verdict: SendVerdict): SendVerdict {
  if (verdict.outcome !== "known") throw new Error("the pool did not accept the transaction")
  return verdict
}

async function rankNow(providers: Provider[], times: Timing, maxLag: bigint): Promise<void> {
  const heads = await Promise.allSettled(providers.map((provider) => newestBlock(provider, times)))
  const best = heads.reduce(
    (highest, head) => (head.status === "fulfilled" && head.value > highest ? head.value : highest),
    0n,
  )
  for (const [index, provider] of providers.entries()) {
    const head = heads[index]
    if (head?.status === "fulfilled") provider.lags = best - head.value > maxLag
  }
}

function isGone({ troubled_since }: Provider, now: number): boolean {
  return troubled_since !== null && now - troubled_since >= goneMilliseconds
}

function healthOf(provider: Provider, number: number, now: number): ProviderHealth {
  const { troubled_since, limited_until, lags, said } = provider
  const rests = isAtRest(provider, now) || limited_until > now
  const state = isGone(provider, now) ? "gone" : rests ? "resting" : lags ? "behind" : "healthy"
  const troubled_seconds = troubled_since === null ? 0 : Math.floor((now - troubled_since) / 1_000)
  return { number, state, troubled_seconds, said }
}
