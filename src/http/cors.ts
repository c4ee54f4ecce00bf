import { cors } from "@elysiajs/cors"

/** Which pages may call from a browser, as all organizations have registered them. */
export type CorsOrigins = {
  /** Reads the lists again when they have become old or were forgotten. */
  refresh(): Promise<void>
  /** Makes the next request read the lists again. */
  forget(): void
  /** Whether any organization lets the origin in: all that is known while a browser asks for permission. */
  anyLetsIn(origin: string): boolean
  organizationLetsIn(organization_id: string, origin: string): boolean
  /** Throws `Unavailable` while the lists could never be read: nobody can be told then that a page is on none. */
  requireKnown(): void
}

/**
 * Answers preflights, which carry no credential: with yes where some organization lets the origin in, or anybody may
 * read. Who may read the answer to the request itself is known only when its caller is: `holdToOwnOrigins`.
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

/** Whether a browser asks for permission (Fetch standard, CORS-preflight request); any other OPTIONS is a method. */
export function isPreflight(request: Request): boolean {
  const { headers } = request
  return headers.has("origin") && headers.has("access-control-request-method")
}
