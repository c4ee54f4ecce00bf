import { BaseError, HttpRequestError, http, RpcRequestError } from "viem"
import type { Places } from "../../platform/places.ts"
import { isRevert, rawMessage, wordsIn } from "./rpc.ts"
import { classifySendError, type SendVerdict } from "./send-errors.ts"

export type Question = { method: string; params?: unknown }

/** Gives signed bytes to a pool. */
export const sendMethod = "eth_sendRawTransaction"

/** One JSON-RPC address. Resolves with a result, or throws; `judge` says whether the error is the chain's word. */
export type Endpoint = (question: Question) => Promise<unknown>

/**
 * Asks once, and gives up after the timeout, even on an answer that begins and never ends. Where too many questions
 * wait already, it first waits for a place, at most as long again.
 */
export function createEndpoint(url: string, timeoutMilliseconds: number, places: Places): Endpoint {
  const { request } = http(url, {
    retryCount: 0,
    ...endingAfter(timeoutMilliseconds),
    // The client would take a JSON-RPC error for an answer under any HTTP status.
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

/** Options that let a client give up after the timeout: its own timeout ends with the headers. */
export function endingAfter(timeout: number) {
  const fetchFn = (input: string | URL | Request, init?: RequestInit) =>
    fetch(input, { ...init, signal: AbortSignal.timeout(timeout) })
  return { timeout, fetchFn }
}

/** What a provider says with its HTTP status: the message of a JSON-RPC error, or the plain text. */
function wordsOf(body: string): string {
  try {
    const { error } = JSON.parse(body)
    return [String(error?.message ?? error ?? body), ...wordsIn(error?.data)].join(": ")
  } catch {
    return body.slice(0, 200)
  }
}

/**
 * What a failure means. `answer`: the chain's word, that a call reverts or why a pool refuses a transaction.
 * `elsewhere`: the provider works but cannot say; another may. `unknown`: it does not know the method or a parameter,
 * as old nodes do not. `limited`: it wants fewer requests. `trouble`: all else, such as silence, an HTTP status of 400
 * or above, and unknown words.
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
 * Of several providers' errors, the one that says most about the question: that it asks for too much, or is unknown.
 * Any other says something about its provider alone, and the first is as good as any: what one has forgotten, a busy
 * one may know.
 */
export function mostTelling(errors: unknown[]): unknown {
  return (
    errors.find((error) => asksTooMuch(rawMessage(error))) ??
    errors.find((error) => judge(error) === "unknown") ??
    errors[0]
  )
}

/** The same where all are asked: a provider that does not know the question does not speak for the others. */
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
 * Whether a node says, under the code for any failure, that it has no block of that tag. Words about the moment say
 * nothing about the tag.
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

/** What a failed send says about the transaction: nothing, unless the node itself spoke under a good HTTP status. */
export function verdictOf(error: unknown): SendVerdict {
  const said = rawMessage(error)
  if (judge(error, sendMethod) === "limited") return { outcome: "rate_limited", said }
  const outcome = statusOf(error) === null && refusalOf(error) ? classifySendError(said) : "no_answer"
  return { outcome, said }
}

/**
 * Whether a provider says that it does not return so many blocks or logs at once, even under the code or status of a
 * rate limit; or the client that the answer is too large to read.
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

/** Whether a provider wants fewer requests for a moment, or lacks the newest block yet: what it does not say now, it will. */
export function saysNotYet(words: string): boolean {
  return (
    lacksBlock.test(words) || words.includes("limit exceeded") || classifySendError(words) === "rate_limited"
  )
}

/** In the words of geth, Erigon, Besu, Nethermind, reth, AvalancheGo and zkSync. */
const lacksBlock =
  /(header|block)\b.*\b(not|be) found|unknown block|beyond (the )?(current )?(head|latest)|unfinalized data|doesn't exist yet/

/** Of the engine API. */
const noSuchBlock = -39_001

/** No such method, no such parameters, unsupported method (EIP-1474), and no such block. */
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
