import { eq } from "drizzle-orm"
import type { Caller } from "../caller.ts"
import type { Context } from "../context.ts"
import { organizations } from "../db/schema.ts"
import { ApiError } from "../errors.ts"

/** Throws `auth.forbidden` when a browser asks from a page whose origin the organization has not registered. */
export async function requireRegisteredOrigin(
  context: Context,
  caller: Caller,
  request: Request,
): Promise<void> {
  const origin = request.headers.get("origin")
  if (origin === null || caller.kind === "api_key") return
  const [organization] = await context.db.read
    .select({ cors_origins: organizations.cors_origins })
    .from(organizations)
    .where(eq(organizations.id, caller.organization_id))
  if (organization?.cors_origins.some((entry) => letsIn(entry, origin))) return
  throw new ApiError("auth.forbidden", "The page's origin is not on the organization's list of CORS origins.")
}

/**
 * Whether a canonical entry (an exact origin, `https://*.example.com` or `http://localhost:*`) lets an origin in.
 * Browsers send origins in canonical form; anything else is not from a browser.
 */
export function letsIn(entry: string, origin: string): boolean {
  if (!URL.canParse(origin) || new URL(origin).origin !== origin) return false
  if (entry.endsWith(":*")) {
    const start = entry.slice(0, -1)
    return (
      origin === start.slice(0, -1) || (origin.startsWith(start) && /^\d+$/.test(origin.slice(start.length)))
    )
  }
  const [before, after] = entry.split("*")
  if (before === undefined || after === undefined) return entry === origin
  const middle = origin.slice(before.length, -after.length)
  return origin.startsWith(before) && origin.endsWith(after) && /^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(middle)
}
