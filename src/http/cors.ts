import { cors } from "@elysiajs/cors"

/** Which pages may call from a browser, as registered by all organizations. */
export type CorsOrigins = {
  /** Reads the lists again if they are old or were forgotten. */
  refresh(): Promise<void>
  /** Makes the next request read the lists again. */
  forget(): void
  /** Whether any organization lets the origin in: all that can be known during a preflight. */
  anyLetsIn(origin: string): boolean
  organizationLetsIn(organization_id: string, origin: string): boolean
  /** Throws `Unavailable` if the lists could never be read: then no page can be said to be on none. */
  requireKnown(): void
}

/**
 * Answers preflights, which carry no credential: yes if some organization lets the origin in, or anybody may read.
 * Who may read the answer to the request itself is known only once its caller is: `holdToOwnOrigins`.
 */
export function corsFor(mayRead: (request: Request) => boolean) {
  return cors({
    origin: (request: Request) => isPreflight(request) && mayRead(request),
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

/** Whether this is a CORS preflight (Fetch standard); any other OPTIONS is an ordinary request. */
export function isPreflight(request: Request): boolean {
  const { headers } = request
  return headers.has("origin") && headers.has("access-control-request-method")
}
