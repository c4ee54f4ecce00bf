import { NoContent, type Route, readRoute, writeRoute } from "../../http/route.ts"
import { ApiError } from "../../platform/errors.ts"
import { currentSessionToken } from "./model.ts"
import { presentCurrentSessionToken } from "./present.ts"
import { revokeSessionToken } from "./service.ts"

export const sessionTokenRoutes: Route[] = [
  readRoute({
    operation: "getCurrentSessionToken",
    summary: "Get the current session token",
    description: "When the session token of this request expires, and what it is bound to.",
    path: "/v1/session-tokens/current",
    credentials: ["session_token"],
    response: currentSessionToken,
    async read(_context, { organization_id, session }) {
      if (!session) throw new ApiError("auth.unauthorized")
      return { body: presentCurrentSessionToken({ organization_id, ...session }) }
    },
  }),
  writeRoute({
    operation: "revokeCurrentSessionToken",
    summary: "Revoke the current session token",
    description:
      "Ends the session at once: later requests with the token get `session_token.invalid_or_expired`.",
    method: "DELETE",
    path: "/v1/session-tokens/current",
    credentials: ["session_token"],
    status: 204,
    response: NoContent,
    async write(turn, { caller }) {
      await revokeSessionToken(turn, caller)
      return { body: null }
    },
  }),
]
