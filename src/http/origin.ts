import type { Caller } from "../platform/caller.ts"
import { ApiError } from "../platform/errors.ts"
import type { CorsOrigins } from "./cors.ts"

/**
 * Hides the response from pages whose origin the caller's own organization has not registered, even if another has. For
 * credentials that browsers hold, throws `auth.forbidden`, or `Unavailable` while the lists are not loaded.
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
