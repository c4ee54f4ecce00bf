import type { Caller } from "../caller.ts"
import { ApiError } from "../errors.ts"
import type { CorsOrigins } from "./cors-origins.ts"

/**
 * Keeps an answer from pages that the caller's own organization has not registered, whoever else has: takes the
 * permission to read it out of the headers, and throws `auth.forbidden` when the credential is one that browsers hold.
 */
export function holdToOwnOrigins(
  origins: CorsOrigins,
  caller: Caller,
  request: Request,
  headers: Record<string, string | number>,
): void {
  const origin = request.headers.get("origin")
  if (origin === null || origins.organizationLetsIn(caller.organization_id, origin)) return
  delete headers["access-control-allow-origin"]
  if (caller.kind !== "api_key")
    throw new ApiError(
      "auth.forbidden",
      "The page's origin is not on the organization's list of CORS origins.",
    )
}
