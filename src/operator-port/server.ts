import type { Context } from "../context.ts"
import { DatabaseUnavailable } from "../db/database.ts"
import { loggable } from "../log.ts"
import { StartError } from "../start-error.ts"
import { createAccess } from "./access.ts"
import { type OperatorPage, textAnswer } from "./page.ts"
import { probePages } from "./probes.ts"

export type OperatorServer = {
  url: string
  /** From now on the process says that it is not ready, so that it is sent nothing more. */
  announceStop(): void
  stop(): Promise<void>
}

/**
 * Answers the operator's own pages on their own port until it is stopped: probes, the login and what is mounted.
 * Throws `StartError` when the port is taken.
 */
export function startOperatorServer(context: Context, mounted: readonly OperatorPage[]): OperatorServer {
  const { operator_host: hostname, operator_port: port } = context.config
  const access = createAccess(context)
  let isStopping = false
  const pages = [...probePages(context, () => isStopping), ...access.pages, ...mounted]

  async function answer(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const found = pages.flatMap((page) => {
      const params = paramsOf(page.path, url.pathname)
      return params ? [{ page, params }] : []
    })
    const chosen = found.find(({ page }) => page.method === "*" || page.method === request.method)
    const refusal = access.refuse(request, chosen?.page.access ?? "token")
    if (refusal) return refusal
    if (chosen) return await chosen.page.answer({ request, url, params: chosen.params })
    if (found.length === 0) return textAnswer(`There is nothing at ${url.pathname}.`, 404)
    const allow = found.map(({ page }) => page.method).join(", ")
    return new Response(null, { status: 405, headers: { allow } })
  }

  async function answerSafely(request: Request): Promise<Response> {
    const response = await answer(request).catch((error: unknown) => {
      if (error instanceof DatabaseUnavailable) return textAnswer("The database does not answer now.", 503)
      context.log.error({ page: request.url.replace(/[?#].*/, ""), ...loggable(error) }, "a page failed")
      return textAnswer("This page failed; the log says why.", 500)
    })
    for (const [name, value] of Object.entries(securityHeaders))
      if (!response.headers.has(name)) response.headers.set(name, value)
    return response
  }

  try {
    const server = Bun.serve({
      hostname,
      port,
      development: false,
      reusePort: false,
      idleTimeout: 30,
      maxRequestBodySize: 64 * 1024,
      fetch: answerSafely,
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
    if ((error as { code?: string }).code !== "EADDRINUSE") throw error
    throw new StartError(
      `port ${port} for operators is in use; free it, or set OPERATOR_PORT to another one (0 picks one)`,
    )
  }
}

/** A page that needs more, such as one that brings its own scripts, sets its own. */
const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // Without a referrer policy that allows it, browsers send no origin with a form.
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
}

/** The path's named parts, or null when it is another path. */
function paramsOf(pattern: string, path: string): Record<string, string> | null {
  const expression = pattern.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)").replace(/\/\*$/, "(?:/.*)?")
  const groups = new RegExp(`^${expression}$`).exec(path)
  if (!groups) return null
  try {
    return Object.fromEntries(
      Object.entries(groups.groups ?? {}).map(([name, text]) => [name, decodeURIComponent(text)]),
    )
  } catch {
    return null
  }
}
