import { type Route, readRoute, writeRoute } from "../http/route.ts"
import * as examples from "../openapi/examples.ts"
import { presentSettings, settingsResource, updateSettingsBody } from "./model.ts"
import { getSettings, updateSettings } from "./service.ts"

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
]
