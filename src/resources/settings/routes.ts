import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { corsOriginsResource, replaceCorsOriginsBody, settingsResource, updateSettingsBody } from "./model.ts"
import { presentSettings } from "./present.ts"
import { getCorsOrigins, getSettings, replaceCorsOrigins, updateSettings } from "./service.ts"

export const settingsRoutes: Route[] = [
  readRoute({
    operation: "getSettings",
    summary: "Get the organization's settings",
    description: "The default redirect URL and, read-only, the networks that collections may use.",
    path: "/v1/settings",
    credentials: ["api_key"],
    response: settingsResource,
    async read(context, caller) {
      return { body: presentSettings(await getSettings(context.db.read, caller)) }
    },
  }),
  writeRoute({
    operation: "updateSettings",
    summary: "Change the organization's default redirect URL",
    description:
      "The default is used only if neither the unit nor its product or collection has a redirect URL; null clears it.",
    method: "PATCH",
    path: "/v1/settings",
    credentials: ["api_key"],
    body: updateSettingsBody,
    status: 200,
    response: settingsResource,
    async write(turn, { caller, body }) {
      return { body: presentSettings(await updateSettings(turn, caller, body)) }
    },
  }),
  readRoute({
    operation: "getCorsOrigins",
    summary: "Get the CORS origins",
    description: "The origins whose pages may call this API from a browser, in canonical form.",
    path: "/v1/settings/cors-origins",
    credentials: ["api_key"],
    response: corsOriginsResource,
    async read(context, caller) {
      return { body: { cors_origins: await getCorsOrigins(context.db.read, caller) } }
    },
  }),
  writeRoute({
    operation: "replaceCorsOrigins",
    summary: "Replace the CORS origins",
    description:
      "Replaces the whole list of origins whose pages may call this API from a browser; an empty list removes all. An entry is an exact origin, `https://*.example.com` for every subdomain, or `http://localhost:*` for every port, which is meant for development. Changes take effect within a minute.",
    method: "PUT",
    path: "/v1/settings/cors-origins",
    credentials: ["api_key"],
    body: replaceCorsOriginsBody,
    changes_origins: true,
    status: 200,
    response: corsOriginsResource,
    async write(turn, { caller, body }) {
      return { body: { cors_origins: await replaceCorsOrigins(turn, caller, body) } }
    },
  }),
]
