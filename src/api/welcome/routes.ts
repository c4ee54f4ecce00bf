import { Type } from "@sinclair/typebox"
import { openRoute, type Route } from "../../http/route.ts"
import { described, instant } from "../../platform/fields.ts"

const service = "service-api" as const
const health = "/health" as const
const serviceName = Type.Literal(service, { description: "Always `service-api`." })

export const welcomeRoutes: Route[] = [
  openRoute({
    operation: "getWelcome",
    summary: "Get the service's name and links",
    description:
      "The name of the service, its documentation and the versions of the API. Needs no credential.",
    path: "/",
    response: Type.Object(
      {
        service: serviceName,
        docs: Type.String({ description: "The URL of the documentation." }),
        api_versions: Type.Array(Type.String(), {
          description: "The versions of the API that the service has.",
        }),
        health: Type.String({ description: "The path of the health check." }),
      },
      { additionalProperties: false },
    ),
    answer: ({ config }) => ({ body: { service, docs: config.docs_url, api_versions: ["v1"], health } }),
  }),
  openRoute({
    operation: "getHealth",
    summary: "Check that the service responds",
    description: "For orchestrators: it responds as long as the process runs, and checks no dependency.",
    path: health,
    response: Type.Object(
      {
        status: Type.Literal("ok", { description: "Always `ok`." }),
        service: serviceName,
        api_base_url: Type.String({ description: "The URL of this API." }),
        request_id: Type.String({ description: "The id of the request, the same as in `X-Request-Id`." }),
        timestamp: described(instant, "The time of the service."),
      },
      { additionalProperties: false },
    ),
    answer: ({ config, clock }, request_id) => ({
      body: {
        status: "ok" as const,
        service,
        api_base_url: config.api_base_url,
        request_id,
        timestamp: clock().toISOString(),
      },
    }),
  }),
]
