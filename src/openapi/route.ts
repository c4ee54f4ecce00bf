import { Type } from "@sinclair/typebox"
import type { Config } from "../config.ts"
import { openRoute, type Route } from "../http/route.ts"
import { type Document, openApiDocument } from "./document.ts"

/** `GET /openapi.json`: the document of all routes, itself among them. It is built once for each configuration. */
export function openApiRoute(routes: () => readonly Route[]): Route {
  const built = new WeakMap<Config, Document>()
  return openRoute({
    operation: "getOpenApiDocument",
    summary: "This API as an OpenAPI 3.1 document",
    description: "Everything that can be asked and answered, for tools: generators, linters, importers.",
    path: "/openapi.json",
    response: Type.Record(Type.String(), Type.Unknown()),
    example: { response: { openapi: "3.1.1", info: { title: "Chip Verification and Ownership API" } } },
    answer({ config }) {
      const document = built.get(config) ?? openApiDocument(routes(), config)
      built.set(config, document)
      return { body: document }
    },
  })
}
