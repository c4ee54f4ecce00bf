import { Type } from "@sinclair/typebox"
import { openRoute, type Route } from "../../http/route.ts"
import type { Config } from "../../platform/config.ts"
import { type Api, type Document, openApiDocument } from "./document.ts"

/** `GET /openapi.json`: the document of all operations, itself included. It is built once per configuration. */
export function openApiRoute(api: () => Api): Route {
  const built = new WeakMap<Config, Document>()
  return openRoute({
    operation: "getOpenApiDocument",
    summary: "This API as an OpenAPI 3.1 document",
    description: "Everything that can be asked and answered, for tools: generators, linters, importers.",
    path: "/openapi.json",
    response: Type.Record(Type.String(), Type.Unknown()),
    answer({ config }) {
      const document = built.get(config) ?? openApiDocument(api(), config)
      built.set(config, document)
      return { body: document }
    },
  })
}
