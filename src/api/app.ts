import { randomUUID } from "node:crypto"
import { Elysia } from "elysia"
import { wantsHtml } from "../http/accept.ts"
import { createAnswerRequest, type Visit } from "../http/answer.ts"
import { clientAddress } from "../http/client-address.ts"
import { corsFor, isPreflight } from "../http/cors.ts"
import {
  type Answer,
  errorAnswer,
  type FileAnswer,
  type StreamAnswer,
  type TextStream,
} from "../http/envelope.ts"
import type { Page, PageAnswer } from "../http/page.ts"
import { createRateLimits, headersOf } from "../http/rate-limits.ts"
import type { Route } from "../http/route.ts"
import type { Context } from "../platform/context.ts"
import { ApiError } from "../platform/errors.ts"
import { loggable } from "../platform/log.ts"
import { countRequest } from "../platform/metrics.ts"
import { createAuthenticate } from "../resources/credentials/authenticate.ts"
import { createCorsOrigins } from "../resources/settings/cors-origins.ts"
import { createBelowPath } from "./below-path.ts"
import { pages } from "./pages.ts"
import { routes } from "./routes.ts"
import { nothingHere, welcomePage } from "./welcome/pages.ts"

/**
 * The API as an Elysia app: it routes, and gives every request an id, an answer and a log line. Streams end with
 * `stopping`.
 */
export function createApp(
  context: Context,
  mounted: readonly Route[] = routes,
  stopping: AbortSignal = new AbortController().signal,
) {
  const limits = createRateLimits(context)
  const origins = createCorsOrigins(context)
  const authenticate = createAuthenticate(context)
  const answerRequest = createAnswerRequest(context, { limits, authenticate, origins, stopping })
  const addresses = addressesOf(mounted)
  const belowPath = createBelowPath(context.config.api_base_url)
  const visits = new WeakMap<Request, TimedVisit>()

  function send(
    request: Request,
    set: ResponseSettings,
    given: Answer | FileAnswer | StreamAnswer,
  ): string | Response | undefined {
    const visit = visits.get(request)
    const answer = belowPath(given)
    set.status = answer.status
    Object.assign(set.headers, answer.headers)
    if (answer.body !== null) set.headers["content-type"] ??= "application/json"
    if (visit?.readable_from) set.headers["access-control-allow-origin"] = visit.readable_from
    logVisit(context, visit, answer)
    if (answer.body instanceof Uint8Array) return new Response(answer.body)
    if (typeof answer.body !== "object" || !answer.body) return answer.body ?? undefined
    const broken = (error: unknown) =>
      context.log.error({ request_id: visit?.request_id, ...loggable(error) }, "a stream broke off")
    return new Response(bytesOf(answer.body, broken))
  }

  const app = new Elysia({
    normalize: false,
    strictPath: true,
    serve: {
      development: false,
      // Two processes on one port would silently share its requests.
      reusePort: false,
      // Beyond this Bun would answer by itself, without an envelope. Unread bodies are discarded as they come.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // A load balancer loses requests on a connection that we close first; most keep idle ones for 60 seconds.
      idleTimeout: 75,
    },
  })
    .onRequest(async ({ request, set, server }) => {
      const request_id = `req_${randomUUID()}`
      const visit: TimedVisit = {
        request_id,
        operation: null,
        caller: null,
        headers: set.headers as Visit["headers"],
        readable_from: null,
        peer: () => server?.requestIP(request)?.address ?? "",
        since: performance.now(),
        traceparent: request.headers.get("traceparent"),
      }
      visits.set(request, visit)
      Object.assign(set.headers, { "x-request-id": request_id, ...securityHeaders })
      // Otherwise a client would send its next request on a connection that is closed by then.
      if (stopping.aborted) set.headers.connection = "close"
      const origin = request.headers.get("origin")
      if (origin !== null) await origins.refresh()
      if (request.method === "OPTIONS" && !isPreflight(request)) throw noRoute(addresses, request)
      // Until the caller is known it may read every answer, refusals too.
      if (origin !== null && (origins.anyLetsIn(origin) || isReadableFromAnywhere(request)))
        visit.readable_from = origin
    })
    .onError(({ request, set, error, code }) => {
      const cause = code === "NOT_FOUND" ? noRoute(addresses, request) : error
      const answer = errorAnswer(context, cause, visits.get(request)?.request_id ?? `req_${randomUUID()}`)
      if (answer.code === "not_found.resource" && isOpenedByPerson(request))
        return send(request, set, { ...answerOfPage(nothingHere), code: answer.code })
      if (answer.status === 405) set.headers.allow = methodsAt(addresses, request).join(", ")
      return send(request, set, answer)
    })
    .onStop(() => limits.close())
    .use(corsFor((request) => Boolean(visits.get(request)?.readable_from)))

  async function holdClient(
    bucketName: NonNullable<Page["bucket"]>,
    request: Request,
    set: ResponseSettings,
  ): Promise<void> {
    const peer = visits.get(request)?.peer() ?? ""
    const client = clientAddress(request, peer, context.config.trusted_proxies)
    const bucket = await limits.countPage(bucketName, client)
    if (!bucket.overfull) return
    Object.assign(set.headers, headersOf(bucket, context.clock()))
    throw new ApiError("rate_limit.exceeded")
  }

  for (const page of pages)
    app.get(patternOf(page.path), async ({ request, set, params }: RouteRequest) => {
      if (page.bucket) await holdClient(page.bucket, request, set)
      const query = new URLSearchParams(/\?[^#]*/.exec(request.url)?.[0])
      const accept = request.headers.get("accept") ?? ""
      const if_none_match = request.headers.get("if-none-match")
      const opened = await page.open(context, { params: params ?? {}, query, accept, if_none_match })
      return send(request, set, answerOfPage(opened))
    })

  for (const route of mounted) {
    const path = patternOf(route.path)
    app.route(
      route.method,
      path,
      async ({ request, set, params }: RouteRequest) => {
        if (route.path === "/" && isOpenedByPerson(request))
          return send(request, set, answerOfPage(welcomePage))
        const visit = visits.get(request) as Visit
        return send(request, set, await answerRequest(route, request, params ?? {}, visit))
      },
      // The answer reads the body itself, after the credential is known.
      { parse: "none" },
    )
    if (route.method === "GET" && route.path.startsWith("/v1/"))
      app.route("HEAD", path, () => {
        throw new ApiError("request.method_not_allowed")
      })
  }
  return app
}

/** Pulls the next text only once the previous one was taken, and none after the reader has left. */
function bytesOf(texts: TextStream, broken: (error: unknown) => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await texts.next().catch((error) => {
        broken(error)
        throw error
      })
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel: () => texts.end(),
  })
}

/** A browser opening a page; the API itself answers everybody in JSON. */
function isOpenedByPerson(request: Request): boolean {
  const isApi = pathOf(request).startsWith("/v1")
  return request.method === "GET" && !isApi && wantsHtml(request.headers.get("accept") ?? "")
}

function answerOfPage({ status, headers, body }: PageAnswer): Answer | FileAnswer {
  const type = body === null ? {} : { "content-type": "text/html; charset=utf-8" }
  const answer = { status, headers: { ...type, ...headers }, code: null }
  return body instanceof Uint8Array ? { ...answer, body } : { ...answer, body }
}

function patternOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1")
}

type ResponseSettings = { status?: number | string; headers: Record<string, string | number> }

type RouteRequest = { request: Request; set: ResponseSettings; params?: Record<string, string> }

const securityHeaders = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  vary: "Origin",
}

function noRoute(addresses: readonly Address[], request: Request): ApiError {
  const isKnown = methodsAt(addresses, request).length > 0
  return new ApiError(isKnown ? "request.method_not_allowed" : "not_found.resource")
}

type Address = { method: string; pattern: RegExp }

function addressesOf(mounted: readonly Route[]): Address[] {
  const opened = pages.map(({ path }) => ({ method: "GET", path }))
  return [...mounted, ...opened].map(({ method, path }) => ({ method, pattern: expressionOf(path) }))
}

function expressionOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`)
}

const readableFromAnywhere = [...pages, ...routes].flatMap(({ path, is_readable_from_anywhere }) =>
  is_readable_from_anywhere ? [expressionOf(path)] : [],
)

function isReadableFromAnywhere(request: Request): boolean {
  const path = pathOf(request)
  return readableFromAnywhere.some((expression) => expression.test(path))
}

/** The methods of the request's path, each once. */
function methodsAt(addresses: readonly Address[], request: Request): string[] {
  const path = pathOf(request)
  const methods = addresses.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
  return [...new Set(methods)]
}

function pathOf(request: Request): string {
  return request.url.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/[?#].*$/, "")
}

type TimedVisit = Visit & { since: number; traceparent: string | null }

/** One line and one span for each request; never a header, a body or the value of a parameter. */
function logVisit(
  context: Context,
  visit: TimedVisit | undefined,
  { status, code }: Pick<Answer, "status" | "code">,
): void {
  if (!visit) return
  const { request_id, operation, caller, since, traceparent } = visit
  const milliseconds = Math.round((performance.now() - since) * 100) / 100
  countRequest({ operation, status, code, milliseconds })
  context.log.info(
    {
      request_id,
      organization_id: caller?.organization_id ?? null,
      credential_id: caller?.credential_id ?? null,
      operation,
      status,
      code,
      milliseconds,
    },
    "request",
  )
  context.tracing.record({
    name: operation ?? "request",
    kind: "server",
    since,
    attributes: { "http.response.status_code": status, request_id, ...(code && { "error.type": code }) },
    is_failed: status >= 500,
    traceparent,
  })
}
