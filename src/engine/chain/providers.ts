import { custom, type Hex, type Transport } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { createPlaces, type Places } from "../../platform/places.ts"
import { firstAnswer, timelyAnswers } from "./answers.ts"
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

/** The JSON-RPC endpoints of one chain: asked in order, those that fail or lag behind rested for a while. */
export type Providers = {
  /** Asks the first healthy provider, and the next one where it is silent or says what is not known to be an answer. */
  transport: Transport
  /** Asks every provider that is not at rest; gives what those said that answered in time. Throws when nobody did. */
  askAll(question: Question): Promise<unknown[]>
  /** The hash each reachable provider gives for a block; null where it does not have the block. */
  blockHashes(blockNumber: bigint): Promise<(Hex | null)[]>
  /** How many have to say the same before it is beyond doubt: all of them but those that are gone. */
  voices(): number
  /**
   * Gives signed bytes to every provider that is not at rest, or to the chain's `send_url` alone, and answers with
   * the first pool that has them, else with the best of what all said. Never throws.
   */
  send(raw: Hex): Promise<SendVerdict>
  /** Finds out who lags behind and who is well again; nothing to do for a single provider. */
  rank(): Promise<void>
  /** The same in the background, where that was not done some blocks ago: for whoever asks again and again. */
  rankWhenDue(): void
  /** How each provider is, in the order of `rpc_urls`. */
  health(): ProviderHealth[]
}

/** `gone`: it has not answered for an hour, and nobody waits for its voice. `said` is how it failed last. */
type ProviderHealth = {
  /** Addresses of providers hold keys, so they are known by their number in `rpc_urls`, from 1. */
  number: number
  state: "healthy" | "behind" | "resting" | "gone"
  troubled_seconds: number
  said: string | null
}

/** The first rest after a failure; each further one doubles it, and none is short beside the time a failure took. */
const restMilliseconds = 1_000
const maxRestMilliseconds = 60_000
const restsPerFailureTime = 3
/** The first pause after "too many requests"; each further one doubles it, give or take a quarter. */
const backOffMilliseconds = 200
const maxBackOffMilliseconds = 5_000
/** So many blocks behind the best provider, and those of so many seconds, another one is asked last. */
const maxLagBlocks = 3
const maxLagSeconds = 4
const goneMilliseconds = 3_600_000

/** Never so many that one which is asked first may lack blocks that all are taken to have. */
function maxLagOf(chain: Pick<ChainConfig, "block_time_seconds" | "finality_depth">): bigint {
  const blocks = Math.max(maxLagBlocks, Math.ceil(maxLagSeconds / chain.block_time_seconds))
  return least(BigInt(blocks), surelyHeld(chain) - 1n)
}

/** How long an answer may take, after what silence the next one is asked too, and the clock that only goes on. */
export type Timing = { timeout_milliseconds: number; patience_milliseconds: number; now: () => number }

const usualTiming: Timing = {
  timeout_milliseconds: 10_000,
  patience_milliseconds: 1_500,
  now: () => performance.now(),
}

/** For a client by itself, as that of a command. */
const usualPlaces = 128

/** Connects the providers of a chain; speaks to none of them yet. `places` are for all that is asked of any chain. */
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
    // Nobody need be ranked for questions about blocks, which are all that a chain without work is asked.
    if (!question.method.startsWith("eth_getBlockBy")) rankWhenDue()
    const asks = targetsOf(question).map((provider) => () => ask(provider, question, times))
    const isAnswer = (error: unknown) => judge(error, question.method) === "answer"
    return await firstAnswer(asks, isAnswer, mostTelling, patience_milliseconds)
  }

  /** Bytes for a private pool go nowhere else, whoever sends them. */
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

/** Whether none of the reachable providers has another block at its height. Throws `ChainUnreachable`. */
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
  /** Since when nothing but failures came from it, and the last of them. */
  troubled_since: number | null
  said: string | null
  /** Something was asked of it that it has not answered in good time, nor failed at yet. */
  is_silent: boolean
  rested_since: number
  rested_until: number
  /** Refusals for too many requests in a row, and until when it is left in peace. */
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

/** It said that it wants fewer requests, a moment ago. */
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

function noteAnswer(provider: Provider): void {
  Object.assign(provider, { failures: 0, limits: 0, troubled_since: null, said: null })
  Object.assign(provider, { rested_until: 0, is_silent: false })
}

/** What it does not know gives it no rest; one that never answers anything else is gone in time, too. */
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
  // Questions asked at the same time fail together, and are one failure.
  if (provider.rested_until > until && since < provider.rested_since) return
  const rest = Math.min(restMilliseconds * 2 ** provider.failures, maxRestMilliseconds)
  provider.failures += 1
  provider.rested_since = until
  provider.rested_until = until + Math.max(rest, restsPerFailureTime * (until - since))
}

/** Laggards come after the others and rested providers last: when nobody else answers, they are asked all the same. */
function byHealth(providers: Provider[], now: number): Provider[] {
  const place = (provider: Provider) => (isAtRest(provider, now) ? 2 : provider.lags ? 1 : 0)
  return providers.toSorted((one, other) => place(one) - place(other))
}

/** Those that are not at rest; all of them where none of those can be asked now. */
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
  if (verdict.outcome !== "known") throw new Error("a pool did not take it")
  return verdict
}

async function rankNow(providers: Provider[], times: Timing, maxLag: bigint): Promise<void> {
  const heads = await Promise.allSettled(
    providers.map(async (provider) =>
      BigInt((await ask(provider, { method: "eth_blockNumber" }, times)) as Hex),
    ),
  )
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
