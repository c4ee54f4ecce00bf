import createFetchClient, { type Client, type FetchResponse } from "openapi-fetch"
import type { components, paths } from "./api.generated.ts"

/**
 * A typed client of the API. Every request that may be sent again is: after a connection failure, and after a refusal
 * that carries `Retry-After`, as long as it says; so each POST carries an idempotency key of its own unless
 * `Idempotency-Key` is given.
 */
export function createClient(options: ClientOptions): ServiceClient {
  const client = createFetchClient<paths>({
    baseUrl: unresolved,
    fetch: (request) => fetchPatiently(options, request),
  })
  client.use({
    onRequest({ request }) {
      if (request.method === "POST" && !request.headers.has("idempotency-key"))
        request.headers.set("idempotency-key", crypto.randomUUID())
    },
  })
  return client
}

export type ServiceClient = Client<paths>

export type ClientOptions = {
  /** The address of the API without a path, or what tells it; it is asked again before each attempt. */
  base_url: string | (() => string | Promise<string>)
  /** An API key, session token or publishable key, or what tells it. */
  token: string | (() => string | Promise<string>)
  /** How long after its start a request is still sent again; 30 seconds when absent, 0 for never. */
  patience_milliseconds?: number
  /** Stands in for the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>
}

/** The resources by name, such as `Schemas["Unit"]`. */
export type Schemas = components["schemas"]

/** What the API refused. Branch on `code`; `message` is for people and may change. */
export class ServiceError extends Error {
  override name = "ServiceError"
  readonly code: string
  readonly status: number
  readonly request_id: string
  readonly doc_url: string
  readonly details: Schemas["Error"]["error"]["details"]
  constructor(status: number, { error }: Schemas["Error"]) {
    super(`${error.code}: ${error.message} (${error.request_id})`)
    this.status = status
    this.code = error.code
    this.request_id = error.request_id
    this.doc_url = error.doc_url
    this.details = error.details
  }
}

/** The body of a success. Throws `ServiceError` for a refusal. */
export async function dataOf<Data>(answer: Promise<Answered<Data>>): Promise<Data> {
  const { data, error, response } = await answer
  if (response.ok) return data as Data
  if (!isServiceError(error)) throw new Error(`${response.url} answered ${response.status} and no error body`)
  throw new ServiceError(response.status, error)
}

type Answered<Data> = {
  data?: Data
  error?: unknown
  response: FetchResponse<never, never, never>["response"]
}

function isServiceError(body: unknown): body is Schemas["Error"] {
  return typeof body === "object" && body !== null && "error" in body
}

/** Stands where the address of the API will be once it is asked for. */
const unresolved = "http://service.invalid"

const defaultPatienceMilliseconds = 30_000
const longestBackoffMilliseconds = 5_000

async function fetchPatiently(options: ClientOptions, request: Request): Promise<Response> {
  const deadline = performance.now() + (options.patience_milliseconds ?? defaultPatienceMilliseconds)
  for (let attempt = 0; ; attempt++) {
    const answer = await fetchOnce(options, request.clone() as Request).catch((error: Error) => error)
    const wait = waitMilliseconds(answer, attempt)
    if (wait === null || performance.now() + wait > deadline) {
      if (answer instanceof Error) throw answer
      return answer
    }
    if (!(answer instanceof Error)) await answer.body?.cancel()
    await pause(wait, request.signal)
  }
}

async function fetchOnce(options: ClientOptions, request: Request): Promise<Response> {
  const baseUrl = (await told(options.base_url)).replace(/\/+$/, "")
  const addressed = new Request(request.url.replace(unresolved, baseUrl), request)
  if (!addressed.headers.has("authorization"))
    addressed.headers.set("authorization", `Bearer ${await told(options.token)}`)
  return await (options.fetch ?? fetch)(addressed)
}

/** Ends early when the caller aborts; the next attempt then fails as aborted. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  const end = () => resolve()
  signal.addEventListener("abort", end)
  await promise
  signal.removeEventListener("abort", end)
  clearTimeout(timer)
}

/** How long to wait before the same request is worth sending again; null when it is not. */
function waitMilliseconds(answer: Response | Error, attempt: number): number | null {
  const backoff = Math.min(longestBackoffMilliseconds, 250 * 2 ** attempt) * (0.5 + Math.random() / 2)
  if (answer instanceof Error) return answer.name === "AbortError" ? null : backoff
  const seconds = answer.headers.get("retry-after")
  if (seconds !== null && /^\d+$/.test(seconds)) return Number(seconds) * 1_000
  return answer.status >= 500 ? backoff : null
}

async function told(value: string | (() => string | Promise<string>)): Promise<string> {
  return typeof value === "string" ? value : await value()
}
