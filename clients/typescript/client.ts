import createFetchClient, { type Client, type FetchResponse } from "openapi-fetch"
import type { components, paths } from "./api.generated.ts"
import { createEvents, type Events } from "./events.ts"
import { attemptUnder, inTime } from "./in-time.ts"
import { baseUrlOf, type Option, tokenOf } from "./options.ts"
import { pause } from "./pause.ts"

/**
 * A typed client of the API. It retries after a connection failure, 15 seconds without a whole response, a 5xx, or an
 * error with `Retry-After` that may pass, and gives each POST its own `Idempotency-Key` unless you pass one.
 */
export function createClient(options: ClientOptions): ServiceClient {
  const client = createFetchClient<paths>({
    baseUrl: unresolved,
    fetch: (request) => fetchPatiently(options, request),
  })
  client.use({
    onRequest({ request }) {
      if (request.method === "POST" && !request.headers.has("idempotency-key"))
        request.headers.set("idempotency-key", newKey())
    },
    onResponse({ response, options: { parseAs } }) {
      if (parseAs === "json" && response.ok && response.status !== 204 && !isOf(response, "application/json"))
        throw new UnexpectedAnswer(response)
    },
  })
  const events = createEvents(async (path, init) => {
    const request = new Request(`${unresolved}${path}`, init)
    const response = await fetchPatiently(options, request)
    if (isStream(response) || (response.ok && isOf(response, "application/json"))) return response
    const refusal: unknown = await response.json().catch(() => null)
    throw isErrorResponse(refusal) ? new ServiceError(response, refusal) : new UnexpectedAnswer(response)
  })
  return Object.assign(client, { events })
}

export type ServiceClient = Client<paths> & { events: Events }

export type ClientOptions = {
  /** The base URL of the API, or a function that returns it, called before each attempt. */
  base_url: Option
  /** An API key, session token or publishable key, or a function that returns it. */
  token: Option
  /** How long after its start a request is still retried; 30 seconds by default, 0 for never. */
  patience_milliseconds?: number
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>
}

/** The resources by name, such as `Schemas["Unit"]`. */
export type Schemas = components["schemas"]

/** The codes known when this client was made; the service may return newer ones. */
export type ErrorCode = Schemas["KnownErrorCode"] | (string & {})

/** An error returned by the API. Branch on `code`; `message` is for people and may change. */
export class ServiceError extends Error {
  override name = "ServiceError"
  readonly code: ErrorCode
  readonly status: number
  readonly request_id: string
  readonly doc_url: string
  /** Only for `validation.failed`: what is wrong with the request as a whole, and with its top-level fields. */
  readonly details: Schemas["ErrorResponse"]["error"]["details"]
  /** After how many seconds to retry the same request; null if a retry is pointless. */
  readonly retry_after_seconds: number | null
  constructor(response: Pick<Response, "status" | "headers">, { error }: Schemas["ErrorResponse"]) {
    super(messageOf(error))
    this.status = response.status
    this.code = error.code
    this.request_id = error.request_id
    this.doc_url = error.doc_url
    this.details = error.details
    this.retry_after_seconds = retryAfterSeconds(response)
  }
}

/** A response that did not come from the service, such as a proxy's page or a truncated body. */
export class UnexpectedAnswer extends Error {
  override name = "UnexpectedAnswer"
  readonly status: number
  constructor({ url, status }: Pick<Response, "url" | "status">) {
    super(`${url} returned ${status}, but not as the service does: is base_url the URL of the API?`)
    this.status = status
  }
}

/** The body of a successful response. Throws `ServiceError` for an error of the API, `UnexpectedAnswer` for anything else. */
export async function dataOf<Data>(answer: Promise<Answered<Data>>): Promise<Data> {
  const { data, error, response } = await answer
  if (response.ok) return data as Data
  if (!isErrorResponse(error)) throw new UnexpectedAnswer(response)
  throw new ServiceError(response, error)
}

type Answered<Data> = {
  data?: Data
  error?: unknown
  response: FetchResponse<never, never, never>["response"]
}

function isErrorResponse(body: unknown): body is Schemas["ErrorResponse"] {
  const error = (body as { error?: Partial<Schemas["ErrorResponse"]["error"]> | null } | null)?.error
  return typeof error === "object" && typeof error?.code === "string"
}

const mostProblems = 10
const longestProblem = 200

/** Names the fields, because Node prints `details` without their texts. */
function messageOf({ code, message, request_id, details }: Schemas["ErrorResponse"]["error"]): string {
  const { formErrors = [], fieldErrors = {} } = details ?? {}
  const ofFields = Object.entries(fieldErrors).flatMap(([field, texts]) =>
    texts.map((text) => `${field}: ${text}`),
  )
  const problems = [...formErrors, ...ofFields].map((problem) => shortened(problem.replace(/\.$/, "")))
  const left = problems.length - mostProblems
  if (left > 0) problems.splice(mostProblems, left, `and ${left} more`)
  const told = problems.length > 0 ? ` ${problems.join("; ")}` : ""
  return `${code}: ${message}${told} (${request_id})`
}

/** The name of an unknown field may be of any length. */
function shortened(text: string): string {
  return text.length <= longestProblem ? text : `${text.slice(0, longestProblem - 1)}…`
}

/** Not `crypto.randomUUID`, which browsers offer only to pages on https or localhost. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
}

/** A placeholder, replaced by the base URL before each attempt. */
const unresolved = "http://service.invalid"

const defaultPatienceMilliseconds = 30_000
const longestBackoffMilliseconds = 5_000
/** A phone that changes its network is not told that a connection is gone. */
const attemptMilliseconds = 15_000
const tooLate = () => new Error(`no response within ${attemptMilliseconds / 1_000} seconds`)

async function fetchPatiently(options: ClientOptions, request: Request): Promise<Response> {
  const deadline = performance.now() + (options.patience_milliseconds ?? defaultPatienceMilliseconds)
  const body = await bodyOf(request)
  for (let attempt = 0; ; attempt++) {
    const { signal, abort, leave } = attemptUnder(request.signal)
    const asked = await addressed(options, request, body, signal)
    const answered = inTime(answerOf(options, asked), attemptMilliseconds, tooLate)
    const answer = await answered.catch((error: unknown): Lost => {
      abort()
      // An abort reason need not be an error.
      request.signal.throwIfAborted()
      return { error }
    })
    if ("error" in answer || !isStream(answer)) leave()
    const wait = await waitMilliseconds(answer, attempt)
    if (wait === null || request.signal.aborted || performance.now() + wait > deadline) {
      if ("error" in answer) throw answer.error
      return answer
    }
    if (!("error" in answer)) await answer.body?.cancel()
    await pause(wait, request.signal)
  }
}

/** No response. What was thrown may be an `Error` of another realm, as under Jest, or none. */
type Lost = { error: unknown }

/** Reads the body too, because it may end midway; a stream of events is read as it comes. */
async function answerOf(options: ClientOptions, request: Request): Promise<Response> {
  const answer = await (options.fetch ?? fetch)(request)
  if (answer.status === 204 || isStream(answer)) return answer
  const body = await answer.clone().text()
  if (answer.ok && isOf(answer, "application/json") && !isJson(body)) throw new UnexpectedAnswer(answer)
  return answer
}

function isStream(answer: Response): boolean {
  return isOf(answer, "text/event-stream")
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isOf({ headers }: Pick<Response, "headers">, mediaType: string): boolean {
  return headers.get("content-type")?.startsWith(mediaType) ?? false
}

/** Read once for all attempts: not every browser can send a stream as a body, or clone one. */
async function bodyOf(request: Request): Promise<string | null> {
  return request.method === "GET" ? null : (await request.text()) || null
}

async function addressed(
  options: ClientOptions,
  request: Request,
  body: string | null,
  signal: AbortSignal,
): Promise<Request> {
  const baseUrl = await baseUrlOf(options.base_url)
  const headers = new Headers(request.headers)
  if (!headers.has("authorization")) headers.set("authorization", `Bearer ${await tokenOf(options.token)}`)
  // The service redirects nothing here, and a followed redirect makes a GET of a POST or leaves the token behind.
  const init: RequestInit = { method: request.method, headers, body, signal, redirect: "manual" }
  return new Request(request.url.replace(unresolved, baseUrl), init)
}

/** How long to wait before retrying; null if that is pointless. */
async function waitMilliseconds(answer: Response | Lost, attempt: number): Promise<number | null> {
  const backoff = Math.min(longestBackoffMilliseconds, 250 * 2 ** attempt) * (0.5 + Math.random() / 2)
  if ("error" in answer) return (answer.error as Error | null)?.name === "AbortError" ? null : backoff
  if (answer.ok) return null
  const seconds = retryAfterSeconds(answer)
  if (seconds === null) return answer.status >= 500 ? backoff : null
  // A CDN may ask for 0 seconds when the service is away: the requests of all clients would follow each other at once.
  return (await isVain(answer)) ? null : seconds * 1_000 || backoff
}

/** What is open ends in its own time, and then the request is refused for another reason. */
const vain: ErrorCode[] = ["claim.in_progress", "transfer.in_progress"]

async function isVain(answer: Response): Promise<boolean> {
  if (answer.status !== 409) return false
  const body: unknown = await answer
    .clone()
    .json()
    .catch(() => null)
  return isErrorResponse(body) && vain.includes(body.error.code)
}

function retryAfterSeconds({ headers }: Pick<Response, "headers">): number | null {
  const seconds = headers.get("retry-after")
  return seconds !== null && /^\d+$/.test(seconds) ? Number(seconds) : null
}
