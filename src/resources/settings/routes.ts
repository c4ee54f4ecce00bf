import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { corsOriginsResource, replaceCorsOriginsBody, settingsResource, updateSettingsBody } from "./model.ts"
import { presentSettings } from "./present.ts"
import { getCorsOrigins, getSettings, replaceCorsOrigins, updateSettings } from "./service.ts"

export const settingsRoutes: Route[] = [
  readRoute({
    operation: "getSettings",
    summary: "Get the organization's settings",
    description: "The default redirect and, read-only, the networks that collections may use.",
    path: "/v1/settings",
    credentials: ["api_key"],
    response: settingsResource,
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
    async write(turn, { caller, body }) {
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
    changes_origins: true,
    status: 200,
    response: corsOriginsResource,
    async write(turn, { caller, body }) {
      return { body: { cors_origins: await replaceCorsOrigins(turn, caller, body) } }
    },
  }),
]
