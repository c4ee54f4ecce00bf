import { Type } from "@sinclair/typebox"
import { openRoute, type Route } from "../../http/route.ts"
import type { Config } from "../../platform/config.ts"
import { type Api, type Document, openApiDocument } from "./document.ts"

/** `GET /openapi.json`: the document of all operations, itself included. It is built once per configuration. */
export function openApiRoute(api: () => Api): Route {
  const built = new WeakMap<Config, Document>()
  return openRoute({
    operation: "getOpenApiDocument",
    summary: "Get the OpenAPI 3.1 document of this API",
    description: "Every request and response, for tools such as generators, linters and importers.",
    path: "/openapi.json",
    response: Type.Record(Type.String(), Type.Unknown()),
    answer({ config }) {
      const document = built.get(config) ?? openApiDocument(api(), config)
      built.set(config, document)
      return { body: document }
    },
  })
}
