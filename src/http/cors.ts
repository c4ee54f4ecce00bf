import { cors } from "@elysiajs/cors"
import type { CorsOrigins } from "./cors-origins.ts"

/**
 * Answers preflights, which carry no credential, by the lists of all organizations, and lets pages of those origins
 * read every answer, refusals too. The caller's own list is for `requireRegisteredOrigin`.
 */
export function corsFor(origins: CorsOrigins) {
  return cors({
    origin: (request: Request) => {
      const origin = request.headers.get("origin")
      return origin !== null && origins.anyLetsIn(origin)
    },
    credentials: false,
    methods: ["GET", "POST", "PATCH", "PUT", "DELETE"],
    allowedHeaders: ["Authorization", "Content-Type", "Idempotency-Key"],
    exposeHeaders: [
      "X-Request-Id",
      "X-RateLimit-Limit",
      "X-RateLimit-Remaining",
      "X-RateLimit-Reset",
      "Retry-After",
      "Idempotent-Replayed",
    ],
    maxAge: 60,
  })
}

/** Whether a browser asks for permission (Fetch standard, CORS-preflight request); any other OPTIONS is a method. */
export function isPreflight(request: Request): boolean {
  const { headers } = request
  return headers.has("origin") && headers.has("access-control-request-method")
}
