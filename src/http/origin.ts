import type { Caller } from "../platform/caller.ts"
import { ApiError } from "../platform/errors.ts"
import type { CorsOrigins } from "./cors.ts"

/**
 * Keeps an answer from pages that the caller's own organization has not registered, whoever else has: nobody may read
 * it then. Throws `auth.forbidden`, or `Unavailable` where the lists are not known, when the credential is one that browsers hold.
 */
export function holdToOwnOrigins(
  origins: CorsOrigins,
  caller: Caller,
  request: Request,
  visit: { readable_from: string | null },
): void {
  const origin = request.headers.get("origin")
  if (origin === null || origins.organizationLetsIn(caller.organization_id, origin)) return
  visit.readable_from = null
  if (caller.kind === "api_key") return
  origins.requireKnown()
  throw new ApiError("auth.forbidden", "The page's origin is not on the organization's list of CORS origins.")
}
