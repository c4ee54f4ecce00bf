import { afterCommit } from "../db/database.ts"
import { corsOriginsOf } from "../http/cors-origins.ts"
import { type Route, readRoute, writeRoute } from "../http/route.ts"
import * as examples from "../openapi/examples.ts"
import {
  corsOriginsResource,
  presentSettings,
  replaceCorsOriginsBody,
  settingsResource,
  updateSettingsBody,
} from "./model.ts"
import { getCorsOrigins, getSettings, replaceCorsOrigins, updateSettings } from "./service.ts"

export const settingsRoutes: Route[] = [
  readRoute({
    operation: "getSettings",
    summary: "Get the organization's settings",
    description: "The default redirect and, read-only, the networks that collections may use.",
    path: "/v1/settings",
    credentials: ["api_key"],
    response: settingsResource,
    example: { response: examples.settings },
    async read(context, caller) {
      return { body: presentSettings(await getSettings(context.db.read, caller)) }
    },
  }),
  writeRoute({
    operation: "updateSettings",
    summary: "Change the organization's default redirect",
    description:
      "The default redirect is used only where no unit, product or collection has one; null clears it.",
    method: "PATCH",
    path: "/v1/settings",
    credentials: ["api_key"],
    body: updateSettingsBody,
    status: 200,
    response: settingsResource,
    example: { request: examples.updateSettings, response: examples.updatedSettings },
    async write(turn, _context, caller, { body }) {
      return { body: presentSettings(await updateSettings(turn, caller, body)) }
    },
  }),
  readRoute({
    operation: "getCorsOrigins",
    summary: "Get the origins whose pages may call from a browser",
    description: "The CORS allow-list in canonical form, as it was saved.",
    path: "/v1/settings/cors-origins",
    credentials: ["api_key"],
    response: corsOriginsResource,
    example: { response: examples.corsOrigins },
    async read(context, caller) {
      return { body: { cors_origins: await getCorsOrigins(context.db.read, caller) } }
    },
  }),
  writeRoute({
    operation: "replaceCorsOrigins",
    summary: "Replace the origins whose pages may call from a browser",
    description:
      "Replaces the whole CORS allow-list; an empty one removes all origins. An entry is an exact origin, `https://*.example.com` for every subdomain, or `http://localhost:*` for every port, which is meant for development. Changes take effect within a minute.",
    method: "PUT",
    path: "/v1/settings/cors-origins",
    credentials: ["api_key"],
    body: replaceCorsOriginsBody,
    status: 200,
    response: corsOriginsResource,
    example: { request: examples.replaceCorsOrigins, response: examples.corsOrigins },
    async write(turn, context, caller, { body }) {
      const cors_origins = await replaceCorsOrigins(turn, caller, body)
      afterCommit(() => corsOriginsOf(context).forget())
      return { body: { cors_origins } }
    },
  }),
]
