import { randomUUID } from "node:crypto"
import { Elysia } from "elysia"
import { wantsHtml } from "../http/accept.ts"
import { createAnswerRequest, type Visit } from "../http/answer.ts"
import { type ClientOf, createClientOf } from "../http/client-address.ts"
import { corsFor, isPreflight } from "../http/cors.ts"
import {
  type Answer,
  errorAnswer,
  type FileAnswer,
  type StreamAnswer,
  type TextStream,
} from "../http/envelope.ts"
import type { Page, PageAnswer } from "../http/page.ts"
import { createRateLimits, headersOf, type RateLimits } from "../http/rate-limits.ts"
import type { Route } from "../http/route.ts"
import type { Context } from "../platform/context.ts"
import { ApiError } from "../platform/errors.ts"
import { loggable } from "../platform/log.ts"
import { createAuthenticate } from "../resources/credentials/authenticate.ts"
import { createCorsOrigins } from "../resources/settings/cors-origins.ts"
import { addressesOf, isReadableFromAnywhere, methodsAt, noRoute, pathOf } from "./addresses.ts"
import { createBelowPath } from "./below-path.ts"
import { pages } from "./pages.ts"
import { routes } from "./routes.ts"
import { beginVisit, logVisit, type TimedVisit } from "./visits.ts"
import { nothingHere, welcomePage } from "./welcome/pages.ts"

/**
 * The API as an Elysia app: it routes, and gives every request an id, a response and a log line. Streams end with
 * `stopping`.
 */
export function createApp(
  context: Context,
  mounted: readonly Route[] = routes,
  stopping: AbortSignal = new AbortController().signal,
) {
  const limits = createRateLimits(context)
  const clientOf = createClientOf(context)
  const origins = createCorsOrigins(context)
  const authenticate = createAuthenticate(context)
  const answerRequest = createAnswerRequest(context, { limits, clientOf, authenticate, origins, stopping })
  const addresses = addressesOf(mounted)
  const visits: Visits = new WeakMap()
  const send = createSend(context, visits)
  const holdClient = createHoldClient(context, { limits, clientOf, visits })

  const app = new Elysia(serverSettings)
    .onRequest(async ({ request, set, server }) => {
      const peer = () => server?.requestIP(request)?.address ?? ""
      const visit = beginVisit(request, set.headers as Visit["headers"], peer)
      visits.set(request, visit)
      Object.assign(set.headers, { "x-request-id": visit.request_id, ...securityHeaders })
      // Otherwise a client would send its next request on a connection that is closed by then.
      if (stopping.aborted) set.headers.connection = "close"
      const origin = request.headers.get("origin")
      if (origin !== null) await origins.refresh()
      if (request.method === "OPTIONS" && !isPreflight(request)) throw noRoute(addresses, request)
      // Until the caller is known it may read every response, errors too.
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

  for (const page of pages)
    app.get(patternOf(page.path), async ({ request, set, params }: RouteRequest) => {
      const visit = visits.get(request) as Visit
      visit.operation = page.documented?.operation ?? null
      if (page.bucket) await holdClient(page.bucket, request, set)
      const query = new URLSearchParams(/\?[^#]*/.exec(request.url)?.[0])
      const opened = await page.open(context, {
        params: params ?? {},
        query,
        accept: request.headers.get("accept") ?? "",
        accept_language: request.headers.get("accept-language") ?? "",
        if_none_match: request.headers.get("if-none-match"),
      })
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
      // The body is read later, after the credential is known.
      { parse: "none" },
    )
    if (route.method === "GET" && route.path.startsWith("/v1/"))
      app.route("HEAD", path, () => {
        throw new ApiError("request.method_not_allowed")
      })
  }
  return app
}

const serverSettings = {
  normalize: false,
  strictPath: true,
  serve: {
    development: false,
    // Two processes on one port would silently share its requests.
    reusePort: false,
    // Beyond this Bun would respond by itself, without an envelope. Unread bodies are discarded as they come.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    // A load balancer loses requests on a connection that we close first; most keep idle ones for 60 seconds.
    idleTimeout: 75,
  },
} as const

const securityHeaders = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  vary: "Origin",
}

type Visits = WeakMap<Request, TimedVisit>

type RouteRequest = { request: Request; set: ResponseSettings; params?: Record<string, string> }

type ResponseSettings = { status?: number | string; headers: Record<string, string | number> }

/** Turns `Answer`s into responses of Elysia, each with its log line. */
function createSend(context: Context, visits: Visits) {
  const belowPath = createBelowPath(context.config.api_base_url)
  return (
    request: Request,
    set: ResponseSettings,
    given: Answer | FileAnswer | StreamAnswer,
  ): string | Response | undefined => {
    const visit = visits.get(request)
    const answer = belowPath(given)
    set.status = answer.status
    Object.assign(set.headers, answer.headers)
    if (answer.body !== null) set.headers["content-type"] ??= "application/json"
    if (visit?.readable_from) set.headers["access-control-allow-origin"] = visit.readable_from
    if (visit) logVisit(context, visit, answer)
    if (answer.body instanceof Uint8Array) return new Response(answer.body)
    if (typeof answer.body !== "object" || !answer.body) return answer.body ?? undefined
    const broken = (error: unknown) =>
      context.log.error({ request_id: visit?.request_id, ...loggable(error) }, "a response stream failed")
    return new Response(bytesOf(answer.body, broken))
  }
}

/** Counts a page that a client opens in one of the client's buckets. Throws `rate_limit.exceeded`. */
function createHoldClient(
  { clock }: Context,
  { limits, clientOf, visits }: { limits: RateLimits; clientOf: ClientOf; visits: Visits },
) {
  return async (
    bucketName: NonNullable<Page["bucket"]>,
    request: Request,
    set: ResponseSettings,
  ): Promise<void> => {
    const client = clientOf(request, visits.get(request)?.peer() ?? "")
    const bucket = await limits.countPage(bucketName, client)
    if (!bucket.is_exhausted) return
    Object.assign(set.headers, headersOf(bucket, clock()))
    throw new ApiError("rate_limit.exceeded")
  }
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

/** A browser opening a page; the API itself responds to everybody in JSON. */
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
