import { Hono, type Context as HonoContext, type MiddlewareHandler } from "hono"
import { methodNotAllowed } from "hono/method-not-allowed"
import { DatabaseUnavailable } from "../../db/database.ts"
import { wantsHtml } from "../../http/accept.ts"
import type { Context } from "../../platform/context.ts"
import { listenFailure } from "../../platform/listen-failure.ts"
import { loggable } from "../../platform/log.ts"
import { missingPage } from "../console/page.ts"
import { shellAssets } from "../console/shell.ts"
import { createAccess } from "./access.ts"
import { probePages } from "./probes.ts"

export type OperatorServer = {
  url: string
  /** From now on the process reports that it is not ready, so that it gets no more requests. */
  announceStop(): void
  stop(): Promise<void>
}

/**
 * Serves the operators' pages on their own port until it is stopped: probes, the login and what is mounted. Throws
 * `StartError` if it cannot listen there.
 */
export function startOperatorServer(context: Context, mounted: readonly Hono[]): OperatorServer {
  const { operator_host: hostname, operator_port: port } = context.config
  let isStopping = false
  const app = createApp(context, mounted, () => isStopping)
  try {
    const server = Bun.serve({
      hostname,
      port,
      development: false,
      reusePort: false,
      idleTimeout: 30,
      maxRequestBodySize: 64 * 1024,
      fetch(request, server) {
        const peer = { peer: server.requestIP(request)?.address ?? "" }
        if (isHost(request.headers.get("host") ?? "")) return app.fetch(request, peer)
        // Load balancers that use HTTP/1.0 name no host, and probes reveal no secret.
        const [probe] = /\/(livez|readyz)$/.exec(request.url) ?? []
        if (probe && !request.headers.has("host"))
          return app.fetch(new Request(`http://localhost${probe}`), peer)
        return new Response("The Host header names no host.\n", { status: 400, headers: securityHeaders })
      },
    })
    const name = ["0.0.0.0", "::"].includes(hostname) ? "localhost" : hostname
    return {
      url: `http://${name.includes(":") ? `[${name}]` : name}:${server.port}`,
      announceStop() {
        isStopping = true
      },
      stop: () => server.stop(true),
    }
  } catch (error) {
    throw listenFailure(error, {
      port: `port ${port} for operators`,
      another: "set OPERATOR_PORT to another one (0 picks one)",
      host: { variable: "OPERATOR_HOST", value: hostname },
    })
  }
}

function createApp(context: Context, mounted: readonly Hono[], isStopping: () => boolean): Hono {
  const access = createAccess(context)
  const app = new Hono()
  app.use(setSecurityHeaders)
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }))
  // The order decides who may see what: each guard protects everything after it.
  app.route("/", probePages(context, isStopping))
  app.use(access.refuseStrangers)
  app.route("/", access.loginPages)
  app.route("/", shellAssets())
  app.use(access.requireToken)
  for (const pages of mounted) app.route("/", pages)
  app.notFound((c) => {
    const what = `There is nothing at ${new URL(c.req.url).pathname}.`
    return wantsHtml(c.req.header("accept") ?? "") ? c.html(missingPage(what), 404) : c.text(`${what}\n`, 404)
  })
  app.onError((error, c) => {
    if (error instanceof DatabaseUnavailable)
      return c.text("The database does not answer at the moment.\n", 503)
    context.log.error({ page: c.req.url.replace(/[?#].*/, ""), ...loggable(error) }, "a page failed")
    return c.text("This page failed; the log says why.\n", 500)
  })
  return app
}

/**
 * Whether it is a name or address with at most a port (RFC 9110, 7.2), so that page addresses can be formed from it.
 */
function isHost(text: string): boolean {
  return /^(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(text) && URL.canParse(`http://${text}`)
}

/** A page that needs others, such as one with its own scripts, sets them itself. */
const setSecurityHeaders: MiddlewareHandler = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of Object.entries(securityHeaders))
    if (!headers.has(name)) headers.set(name, value)
}

const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // With a stricter referrer policy browsers would send no origin with a form.
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
}

function refuseMethod(c: HonoContext, methods: string[]): Response {
  return c.body(null, 405, { allow: methods.join(", ") })
}
