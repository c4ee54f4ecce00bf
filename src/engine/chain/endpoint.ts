import { BaseError, HttpRequestError, http, RpcRequestError } from "viem"
import { readBounded } from "../../platform/bounded-body.ts"
import type { Places } from "../../platform/places.ts"
import { isRevert, rawMessage, wordsIn } from "./rpc.ts"
import { classifySendError, type SendVerdict } from "./send-errors.ts"

export type Question = { method: string; params?: unknown }

/** Submits signed bytes to a node's pool. */
export const sendMethod = "eth_sendRawTransaction"

/** One JSON-RPC URL. Resolves with a result, or throws; `judge` tells whether the error is the chain's answer. */
export type Endpoint = (question: Question) => Promise<unknown>

/**
 * Sends each request once, with a timeout that also covers a response body that never ends. If too many requests are
 * under way, it first waits for a place, for at most the same time again.
 */
export function createEndpoint(url: string, timeoutMilliseconds: number, places: Places): Endpoint {
  const { request } = http(url, {
    retryCount: 0,
    ...endingAfter(timeoutMilliseconds),
    // viem would accept a JSON-RPC error as the node's answer under any HTTP status.
    async onFetchResponse(response) {
      if (response.ok) return
      const { text } = await readBounded(response, mostErrorBytes)
      const details = `HTTP ${response.status}: ${wordsOf(text)}`
      throw new HttpRequestError({ url, status: response.status, details })
    },
  })({})
  const noPlace = () =>
    new HttpRequestError({ url, details: "too many earlier requests to it are still waiting for a response" })
  return async (question) => {
    const leave = await places.enter([url], timeoutMilliseconds, noPlace)
    const asked = request(question as Parameters<typeof request>[0]).finally(leave)
    const result = await asked.catch((error) => {
      throw isUnknownBlock(error, question) ? unknownBlock(url, error) : error
    })
    if (result === undefined) throw new HttpRequestError({ url, details: "the response is empty" })
    return result
  }
}

/** viem limits only the bodies that it reads itself. */
const mostErrorBytes = 64 * 1_024

/**
 * Returns options that apply the timeout to the whole response: viem's own ends with the headers. Redirects are not
 * followed, because bytes for a private pool go nowhere else.
 */
export function endingAfter(timeout: number) {
  const fetchFn = (input: string | URL | Request, init?: RequestInit) =>
    fetch(input, { ...init, signal: AbortSignal.timeout(timeout), redirect: "manual" })
  return { timeout, fetchFn }
}

/** Returns what a provider says with its HTTP status: the message of a JSON-RPC error, or the plain text. */
function wordsOf(body: string): string {
  try {
    const { error } = JSON.parse(body)
    return [String(error?.message ?? error ?? body), ...wordsIn(error?.data)].join(": ")
  } catch {
    return body.slice(0, 200)
  }
}

/**
 * What an error means. `answer`: the chain's own answer, that a call reverts or why a pool refuses a transaction.
 * `elsewhere`: the provider works but cannot say; another may. `unknown`: it does not know the method or a parameter,
 * like an old node. `limited`: it is rate limiting. `trouble`: everything else, such as a timeout, an HTTP status of
 * 400 or above, or a message that is not recognized.
 */
type Judgement = "answer" | "elsewhere" | "unknown" | "limited" | "trouble"

/**
 * Judges an error thrown by an endpoint: only what is recognized counts as an answer. A message about a transaction is
 * an answer only to signed bytes: some nodes refuse every call with one, such as those that gave calls more gas than
 * EIP-7825 allows a transaction.
 */
export function judge(error: unknown, method?: string): Judgement {
  const refusal = refusalOf(error)
  if (refusal && isRevert(refusal)) return "answer"
  if (asksTooMuch(rawMessage(error))) return "elsewhere"
  if (statusOf(error) === 429) return "limited"
  if (!refusal) return "trouble"
  const outcome = classifySendError(rawMessage(refusal))
  if (outcome === "wait") return "elsewhere"
  if (outcome === "rate_limited") return "limited"
  if (outcome !== "unclear" && method === sendMethod) return "answer"
  if (unknownCodes.includes(refusal.code)) return "unknown"
  return limitCodes.includes(refusal.code) ? "limited" : "trouble"
}

/**
 * Returns the error that says most about the question: that it asks for too much, that its block is missing, which only
 * a node that knows the question finds, or that it is unknown. All others concern only their provider, so the first
 * will do: what one provider no longer has, a busy one may have. `laggards` are errors of providers that lag, which may
 * miss any block.
 */
export function mostTelling(errors: unknown[], laggards: ReadonlySet<unknown>): unknown {
  const isMissing = (error: unknown) =>
    !laggards.has(error) && judge(error) !== "unknown" && lacksBlock.test(rawMessage(error))
  return (
    errors.find((error) => asksTooMuch(rawMessage(error))) ??
    errors.find(isMissing) ??
    errors.find((error) => judge(error) === "unknown") ??
    errors[0]
  )
}

/**
 * Like `mostTelling`, for questions to all providers: one that does not know the question
 * does not speak for the others.
 */
export function mostTellingOfAll(errors: unknown[]): unknown {
  return errors.find((error) => asksTooMuch(rawMessage(error))) ?? errors[0]
}

/** Returns a node's result, or `otherwise` if the node does not know the question. */
export async function unlessUnknown<T, U>(asked: Promise<T>, otherwise: () => U): Promise<T | Awaited<U>> {
  try {
    return await asked
  } catch (error) {
    if (judge(error) !== "unknown") throw error
    return await otherwise()
  }
}

/**
 * Returns whether a node says, under the catch-all code, that it has no block with that tag, or under any code or HTTP
 * status that it cannot read a block named by its hash. A message about a temporary condition says nothing about a tag.
 */
function isUnknownBlock(error: unknown, { params }: Question): boolean {
  if (!Array.isArray(params) || judge(error) !== "trouble") return false
  const words = rawMessage(error)
  if (typeof params[1] === "object") return unreadable.test(words) && !lacksBlock.test(words)
  const isCatchAll = refusalOf(error)?.code === -32_000
  return isCatchAll && params.some((param) => rareTags.includes(param)) && !temporary.test(words)
}

/** Of geth's relatives, of nodes in Rust and of others, for an object (EIP-1898) where they know only numbers. */
const unreadable =
  /unmarshal|invalid (argument|params?|type|value|input|block)|expected|malformed|not a string/

const rareTags: unknown[] = ["finalized", "safe", "pending"]
const temporary = /sync|time(d )?-?out|timeout|busy|overload|temporar|try again|later|internal/

function unknownBlock(url: string, error: unknown): RpcRequestError {
  return new RpcRequestError({ body: {}, url, error: { code: noSuchBlock, message: rawMessage(error) } })
}

/**
 * Returns what a failed send says about the transaction: nothing, unless the node itself
 * responded under a good HTTP status.
 */
export function verdictOf(error: unknown): SendVerdict {
  const said = rawMessage(error)
  if (judge(error, sendMethod) === "limited") return { outcome: "rate_limited", said }
  const outcome = statusOf(error) === null && refusalOf(error) ? classifySendError(said) : "no_answer"
  return { outcome, said }
}

/**
 * Returns whether a provider says that it does not return so many blocks or logs at once, even under the code or status
 * of a rate limit, or the client says that the response is too large to read.
 */
export function saysTooMuch(words: string): boolean {
  return tooMuch.test(words)
}

const tooMuch =
  /blocks? range|ranges? (\d+ )?(is )?(exceeds|over|bigger|too)|(exceeds? |maximum |max |limited to ).*\brange|(more than|exceeds limit of) [\d,]+ (results|logs|blocks)|logs .*exceeds|too many (logs|results|blocks)|blocks? distance|at most [\d,]+ blocks|query must be smaller|response (size|is too|too)|query time(d )?-?out|response body exceeded/

/** Returns whether a provider says that a request names too many contracts. */
export function saysTooManyContracts(words: string): boolean {
  return tooManyContracts.test(words)
}

/** The wording of PublicNode, of geth and of providers that pass geth's on. */
const tooManyContracts = /less number of address|too many addresses|max(imum)? (number of )?addresses/

function asksTooMuch(words: string): boolean {
  return saysTooMuch(words) || saysTooManyContracts(words)
}

/**
 * Returns whether a provider is rate limiting or lacks the newest block or, like Nethermind, its state for now, so that
 * a retry is worthwhile.
 */
export function saysNotYet(words: string): boolean {
  return (
    lacksBlock.test(words) ||
    /limit exceeded|no state available/.test(words) ||
    classifySendError(words) === "rate_limited"
  )
}

/** The wording of geth, Erigon, Besu, Nethermind, reth, AvalancheGo, zkSync and anvil. */
const lacksBlock =
  /(header|block)\b.*\b(not|be) found|^(0x)?[\da-f]+ could not be found|unknown block|beyond (the )?(current )?(head|latest)|unfinalized data|doesn't exist yet|is not (currently )?canonical|unable to find block|block ?height(:| is) \d+ (>|but requested was) \d+|range that is not available/

/** Unknown block, as in the Engine API. */
const noSuchBlock = -39_001

/** Method not found, invalid params, method not supported (EIP-1474), and unknown block. */
const unknownCodes = [-32_601, -32_602, -32_004, noSuchBlock]

/** "Limit exceeded" of EIP-1474, an HTTP status that some send as the code, and one provider's own code. */
const limitCodes = [-32_005, 429, -32_007]

function statusOf(error: unknown): number | null {
  const http = error instanceof BaseError ? error.walk((cause) => cause instanceof HttpRequestError) : null
  return http instanceof HttpRequestError ? (http.status ?? null) : null
}

function refusalOf(error: unknown): RpcRequestError | null {
  const said = error instanceof BaseError ? error.walk((cause) => cause instanceof RpcRequestError) : null
  return said instanceof RpcRequestError ? said : null
}
