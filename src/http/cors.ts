import { cors } from "@elysiajs/cors"

/** The origins that organizations have registered for calls from browsers. */
export type CorsOrigins = {
  /** Reloads the lists if they are old or were forgotten. */
  refresh(): Promise<void>
  /** Makes the next `refresh` reload the lists. */
  forget(): void
  /** Returns whether any organization allows the origin, which is all a preflight can be checked for. */
  anyLetsIn(origin: string): boolean
  organizationLetsIn(organization_id: string, origin: string): boolean
  /** Throws `Unavailable` if the lists were never loaded: then no origin can be rejected. */
  requireKnown(): void
}

/**
 * Handles preflights, which carry no credential: allowed if any organization allows the origin or the response is
 * public. Who may read the actual response depends on the caller: `holdToOwnOrigins`.
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

/** Returns whether this is a CORS preflight (Fetch standard); any other OPTIONS is an ordinary request. */
export function isPreflight(request: Request): boolean {
  const { headers } = request
  return headers.has("origin") && headers.has("access-control-request-method")
}
