import { BaseError, HttpRequestError, http, RpcRequestError } from "viem"
import type { Places } from "../../platform/places.ts"
import { isRevert, rawMessage, wordsIn } from "./rpc.ts"
import { classifySendError, type SendVerdict } from "./send-errors.ts"

export type Question = { method: string; params?: unknown }

/** By which signed bytes are given to a pool. */
export const sendMethod = "eth_sendRawTransaction"

/** One JSON-RPC address. Answers with a result, or throws; `judge` says what of it is the chain's word. */
export type Endpoint = (question: Question) => Promise<unknown>

/**
 * Asks without repeating, and gives up after the timeout, also on an answer that begins and never ends. Where too much
 * is asked of it already, it waits as long before it asks at all.
 */
export function createEndpoint(url: string, timeoutMilliseconds: number, places: Places): Endpoint {
  const { request } = http(url, {
    retryCount: 0,
    ...endingAfter(timeoutMilliseconds),
    // The client takes a JSON-RPC error for an answer whatever HTTP status it comes under.
    async onFetchResponse(response) {
      if (response.ok) return
      const details = `HTTP ${response.status}: ${wordsOf(await response.text())}`
      throw new HttpRequestError({ url, status: response.status, details })
    },
  })({})
  const noPlace = () =>
    new HttpRequestError({ url, details: "too much that it was asked waits for an answer" })
  return async (question) => {
    const leave = await places.enter([url], timeoutMilliseconds, noPlace)
    const asked = request(question as Parameters<typeof request>[0]).finally(leave)
    const result = await asked.catch((error) => {
      throw isUnknownTag(error, question) ? unknownTag(url, error) : error
    })
    if (result === undefined) throw new HttpRequestError({ url, details: "the answer is empty" })
    return result
  }
}

/** Options of a client that gives up after the timeout: its own ends with the headers of an answer. */
export function endingAfter(timeout: number) {
  const fetchFn = (input: string | URL | Request, init?: RequestInit) =>
    fetch(input, { ...init, signal: AbortSignal.timeout(timeout) })
  return { timeout, fetchFn }
}

/** What a provider says beside its HTTP status: the message of a JSON-RPC error, or the text as it is. */
function wordsOf(body: string): string {
  try {
    const { error } = JSON.parse(body)
    return [String(error?.message ?? error ?? body), ...wordsIn(error?.data)].join(": ")
  } catch {
    return body.slice(0, 200)
  }
}

/**
 * What a failure is worth. `answer`: the chain's word, that a call reverts or why a pool does not take a transaction.
 * `elsewhere`: the provider works and cannot say, which another one may. `unknown`: it does not know the method, or what
 * it is asked for with it, as old nodes do not. `limited`: it wants fewer requests.
 * `trouble`: everything else, as silence, an HTTP status of 400 or above, and words that nobody knows.
 */
type Judgement = "answer" | "elsewhere" | "unknown" | "limited" | "trouble"

/**
 * Judges what an endpoint threw: an answer is what is known to be one. What nodes say of transactions answers signed bytes
 * alone: some refuse each call so, as those did that gave calls more gas than EIP-7825 lets a transaction have.
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
 * Of the errors of several providers, the one that says most of the question itself: that it is too much, or that it is not
 * known. Any other tells of the provider alone, and the first is as good as each: what one has forgotten, another one that
 * is busy may know.
 */
export function mostTelling(errors: unknown[]): unknown {
  return (
    errors.find((error) => asksTooMuch(rawMessage(error))) ??
    errors.find((error) => judge(error) === "unknown") ??
    errors[0]
  )
}

/** The same where all are asked, of whom one that does not know the question speaks for none of the others. */
export function mostTellingOfAll(errors: unknown[]): unknown {
  return errors.find((error) => asksTooMuch(rawMessage(error))) ?? errors[0]
}

/** What a node answers, or `otherwise` where it does not know the question. */
export async function unlessUnknown<T, U>(asked: Promise<T>, otherwise: () => U): Promise<T | Awaited<U>> {
  try {
    return await asked
  } catch (error) {
    if (judge(error) !== "unknown") throw error
    return await otherwise()
  }
}

/**
 * Whether a node says, under the code of everything that fails, that it has no block of a name. Words of the moment say
 * nothing of the name.
 */
function isUnknownTag(error: unknown, { params }: Question): boolean {
  const refusal = refusalOf(error)
  if (refusal?.code !== -32_000 || !Array.isArray(params)) return false
  const words = rawMessage(refusal)
  return (
    params.some((param) => rareTags.includes(param)) && judge(error) === "trouble" && !ofTheMoment.test(words)
  )
}

const rareTags: unknown[] = ["finalized", "safe", "pending"]
const ofTheMoment = /sync|time(d )?-?out|timeout|busy|overload|temporar|try again|later|internal/

function unknownTag(url: string, error: unknown): RpcRequestError {
  return new RpcRequestError({ body: {}, url, error: { code: noSuchBlock, message: rawMessage(error) } })
}

/** What a failure to send says of the transaction: nothing at all, unless the node itself spoke under a good status. */
export function verdictOf(error: unknown): SendVerdict {
  const said = rawMessage(error)
  if (judge(error, sendMethod) === "limited") return { outcome: "rate_limited", said }
  const outcome = statusOf(error) === null && refusalOf(error) ? classifySendError(said) : "no_answer"
  return { outcome, said }
}

/**
 * Whether a provider says that it does not answer so many blocks, or logs, at once, also under the code or status of a rate
 * limit; or the client that it reads no such answer, as of a node that sets no limit.
 */
export function saysTooMuch(words: string): boolean {
  return tooMuch.test(words)
}

const tooMuch =
  /blocks? range|ranges? (\d+ )?(is )?(exceeds|over|bigger|too)|(exceeds? |maximum |max |limited to ).*\brange|(more than|exceeds limit of) [\d,]+ (results|logs|blocks)|logs .*exceeds|too many (logs|results|blocks)|blocks? distance|at most [\d,]+ blocks|query must be smaller|response (size|is too|too)|query time(d )?-?out|response body exceeded/

/** Whether a provider says that it does not answer for so many contracts at once. */
export function saysTooManyContracts(words: string): boolean {
  return tooManyContracts.test(words)
}

/** In the words of PublicNode, and of geth and those who pass them on. */
const tooManyContracts = /less number of address|too many addresses|max(imum)? (number of )?addresses/

function asksTooMuch(words: string): boolean {
  return saysTooMuch(words) || saysTooManyContracts(words)
}

/** Of the engine API. */
const noSuchBlock = -39_001

/** No such method, no such parameters, a method that is not supported, and no such block, of EIP-1474 and that. */
const unknownCodes = [-32_601, -32_602, -32_004, noSuchBlock]

/** "Limit exceeded" of EIP-1474, the HTTP status that some send as a code, and a provider's own code. */
const limitCodes = [-32_005, 429, -32_007]

function statusOf(error: unknown): number | null {
  const http = error instanceof BaseError ? error.walk((cause) => cause instanceof HttpRequestError) : null
  return http instanceof HttpRequestError ? (http.status ?? null) : null
}

function refusalOf(error: unknown): RpcRequestError | null {
  const said = error instanceof BaseError ? error.walk((cause) => cause instanceof RpcRequestError) : null
  return said instanceof RpcRequestError ? said : null
}
