import { randomUUID } from "node:crypto"
import { Elysia } from "elysia"
import type { Context } from "./context.ts"
import { ApiError } from "./errors.ts"
import { createAnswerRequest, type Visit } from "./http/answer.ts"
import { corsFor, isPreflight } from "./http/cors.ts"
import { corsOriginsOf } from "./http/cors-origins.ts"
import { type Answer, errorAnswer } from "./http/envelope.ts"
import { createRateLimits } from "./http/rate-limits.ts"
import type { Route } from "./http/route.ts"
import { countRequest } from "./metrics.ts"
import { pages } from "./pages.ts"
import { routes } from "./routes.ts"

/** The API as an Elysia app: it routes, and gives every request an id, an answer and a log line. */
export function createApp(context: Context, mounted: readonly Route[] = routes) {
  const limits = createRateLimits(context.config, context.log)
  const answerRequest = createAnswerRequest(context, limits)
  const origins = corsOriginsOf(context)
  const addresses = addressesOf(mounted)
  const visits = new WeakMap<Request, TimedVisit>()

  function send(request: Request, set: ResponseSettings, answer: Answer): string | undefined {
    set.status = answer.status
    Object.assign(set.headers, answer.headers)
    if (answer.body !== null) set.headers["content-type"] ??= "application/json"
    logVisit(context, visits.get(request), answer)
    return answer.body ?? undefined
  }

  const app = new Elysia({
    normalize: false,
    strictPath: true,
    serve: {
      development: false,
      // Two processes on one port would share its requests without a word.
      reusePort: false,
      // Beyond this Bun answers by itself, so it is far above what a body may have.
      maxRequestBodySize: 1024 * 1024,
      idleTimeout: 30,
    },
  })
    .onRequest(async ({ request, set, server }) => {
      const request_id = `req_${randomUUID()}`
      visits.set(request, {
        request_id,
        operation: null,
        caller: null,
        headers: set.headers as Visit["headers"],
        peer: () => server?.requestIP(request)?.address ?? "",
        since: performance.now(),
        traceparent: request.headers.get("traceparent"),
      })
      Object.assign(set.headers, { "x-request-id": request_id, ...securityHeaders })
      if (request.headers.has("origin")) await origins.refresh()
      if (request.method === "OPTIONS" && !isPreflight(request)) throw noRoute(addresses, request)
    })
    .onError(({ request, set, error, code }) => {
      const cause = code === "NOT_FOUND" ? noRoute(addresses, request) : error
      const answer = errorAnswer(context, cause, visits.get(request)?.request_id ?? `req_${randomUUID()}`)
      if (answer.status === 405) set.headers.allow = methodsAt(addresses, request).join(", ")
      return send(request, set, answer)
    })
    .onStop(() => limits.close())
    .use(corsFor(origins))

  for (const page of pages)
    app.get(patternOf(page.path), async ({ request, set, params }: RouteRequest) => {
      const query = new URLSearchParams(/\?[^#]*/.exec(request.url)?.[0])
      const { status, headers, html } = await page.open(context, { params: params ?? {}, query })
      const text = html === null ? {} : { "content-type": "text/html; charset=utf-8" }
      return send(request, set, { status, body: html, headers: { ...text, ...headers }, code: null })
    })

  for (const route of mounted) {
    const path = patternOf(route.path)
    app.route(
      route.method,
      path,
      async ({ request, set, params }: RouteRequest) => {
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
  return [...mounted, ...opened].map(({ method, path }) => ({
    method,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  }))
}

/** The methods of the path that a request names. Its host may be anything, so the path is cut out by hand. */
function methodsAt(addresses: readonly Address[], request: Request): string[] {
  const path = request.url.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/[?#].*$/, "")
  return addresses.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
}

type TimedVisit = Visit & { since: number; traceparent: string | null }

/** One line and one span for each request; never a header, a body or the value of a parameter. */
function logVisit(context: Context, visit: TimedVisit | undefined, { status, code }: Answer): void {
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
