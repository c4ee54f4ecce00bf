import { Type } from "@sinclair/typebox"
import { instant } from "../fields.ts"
import { openRoute, type Route } from "../http/route.ts"
import * as examples from "../openapi/examples.ts"

const service = "service-api" as const
const health = "/health" as const

export const welcomeRoutes: Route[] = [
  openRoute({
    operation: "getWelcome",
    summary: "Where to go from here",
    description: "The service, its documentation and the versions of the API. Needs no credential.",
    path: "/",
    response: Type.Object(
      {
        service: Type.Literal(service),
        docs: Type.String(),
        api_versions: Type.Array(Type.String()),
        health: Type.String(),
      },
      { additionalProperties: false },
    ),
    example: { response: examples.welcome },
    answer: ({ config }) => ({ body: { service, docs: config.docs_url, api_versions: ["v1"], health } }),
  }),
  openRoute({
    operation: "getHealth",
    summary: "Whether the service answers",
    description:
      "For orchestrators: answers as long as the process does, and asks nothing else whether it is well.",
    path: health,
    response: Type.Object(
      {
        status: Type.Literal("ok"),
        service: Type.Literal(service),
        api_base_url: Type.String(),
        request_id: Type.String(),
        timestamp: instant,
      },
      { additionalProperties: false },
    ),
    example: { response: examples.health },
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
