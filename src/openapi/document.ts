import type { Config } from "../config.ts"
import { type ErrorCode, errorCatalogue } from "../errors.ts"
import { id } from "../fields.ts"
import { NoContent, type Route } from "../http/route.ts"
import { errorExample, errorSchema, headers, schemeNames, securitySchemes } from "./components.ts"
import { describedFields } from "./described-fields.ts"
import { documentedComponents, documentedSchema, type JsonSchema } from "./schemas.ts"

export type Document = {
  openapi: string
  info: { title: string; version: string; [key: string]: unknown }
  servers: Record<string, unknown>[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>> & { schemas: Record<string, JsonSchema> }
}

export type Operation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Content }
  responses: Record<string, Response>
}

export type Parameter = {
  name: string
  in: string
  required: boolean
  description: string
  schema: JsonSchema
}
export type Content = Record<string, { schema: JsonSchema; examples: Record<string, Example> }>
export type Response = { description: string; headers?: Record<string, JsonSchema>; content?: Content }
export type Example = { summary?: string; value?: unknown; $ref?: string }

/** The API as an OpenAPI 3.1 document: everything in it follows from the routes. */
export function openApiDocument(
  routes: readonly Route[],
  config: Pick<Config, "api_base_url" | "docs_url">,
): Document {
  const paths: Document["paths"] = {}
  for (const route of routes) {
    paths[route.path] ??= {}
    Object.assign(paths[route.path] ?? {}, { [route.method.toLowerCase()]: operationOf(routes, route) })
  }
  const used = tags.filter(({ path }) => routes.some((route) => tagOf(route).path === path))
  return {
    openapi: "3.1.1",
    info: {
      title: "Chip Verification and Ownership API",
      version: "0.1.0",
      summary: "Verifies chips in products and hands ownership of the products to people, on chain.",
      description: `Start at ${config.docs_url}. Every error has a page below ${config.docs_url}/errors.`,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [server(config.api_base_url)],
    tags: used.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      securitySchemes,
      schemas: { ...documentedComponents(), Error: errorSchema },
      headers,
      examples: Object.fromEntries(
        Object.keys(errorCatalogue).map((code) => [code, errorExample(code as ErrorCode, config.docs_url)]),
      ),
    },
  }
}

/** A service on this machine is no server to recommend to others: then the address is something to fill in. */
function server(api_base_url: string) {
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(new URL(api_base_url).hostname)
  return isLocal
    ? { url: "{api_base_url}", variables: { api_base_url: { default: api_base_url } } }
    : { url: api_base_url }
}

const tags = [
  { path: "taps", name: "Taps", description: "Verified scans of chips, each of which starts a session." },
  { path: "chips", name: "Chips", description: "Tags, and test chips without hardware." },
  { path: "units", name: "Units", description: "Individual items; each is issued as a token." },
  {
    path: "collections",
    name: "Collections",
    description: "Groups of units, each with a contract of its own.",
  },
  { path: "claims", name: "Claims", description: "Handing a unit from the service's custody to a person." },
  { path: "transfers", name: "Transfers", description: "Handing a unit from its owner to somebody else." },
  {
    path: "chip-replacements",
    name: "Chip replacements",
    description: "Another chip for an unclaimed unit.",
  },
  { path: "session-tokens", name: "Session tokens", description: "The session of the person who tapped." },
  { path: "publishable-keys", name: "Publishable keys", description: "Keys for browser code." },
  { path: "settings", name: "Settings", description: "What holds for the whole organization." },
  { path: "", name: "Service", description: "The service itself. No credential is needed." },
] as const

type Tag = (typeof tags)[number]

/** The last part of the path that is a resource. */
function tagOf(route: Route): Tag {
  const parts = route.path.split("/").reverse()
  const tag = tags.find(({ path }) => path === parts.find((part) => tags.some((each) => each.path === part)))
  if (!tag) throw new Error(`no tag fits ${route.path}`)
  return tag
}

function operationOf(routes: readonly Route[], route: Route): Operation {
  return {
    operationId: route.operation,
    summary: route.summary,
    description: route.description,
    tags: [tagOf(route).name],
    security: route.credentials.map((kind) => ({ [schemeNames[kind]]: [] })),
    parameters: [...pathParametersOf(route), ...queryParametersOf(route), ...keyParameterOf(route)],
    ...(route.body && {
      requestBody: {
        required: true,
        content: json(documentedSchema(route.body), {
          [route.operation]: { value: route.example?.request },
          ...(route.example?.also && { alternative: { value: route.example.also.request } }),
        }),
      },
    }),
    responses: { ...successesOf(routes, route), ...refusalsOf(route) },
  }
}

function pathParametersOf(route: Route): Parameter[] {
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: describedFields[name] ?? "",
    schema: name === "chip_id" ? { type: "string", pattern: "^[0-9A-Fa-f]{10}$" } : documentedSchema(id),
  }))
}

function queryParametersOf(route: Route): Parameter[] {
  return Object.entries(route.query.properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    description: describedFields[name] ?? "",
    schema: queryTypes[name] ?? documentedSchema(schema),
  }))
}

/** An address holds text only; these have another type once they are read. */
const queryTypes: Record<string, JsonSchema> = {
  limit: { type: "integer", minimum: 1, maximum: 100, default: 50 },
  is_test: { type: "boolean" },
}

function keyParameterOf(route: Route): Parameter[] {
  if (!route.idempotent) return []
  return [
    {
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description:
        "Any text of your own. A retry with the same key and the same body gets the first answer again, with `Idempotent-Replayed: true`, and nothing happens twice. Keys are kept for 24 hours.",
      schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-+\\--~]+$" },
    },
  ]
}

function successesOf(routes: readonly Route[], route: Route): Record<string, Response> {
  const first = { [route.status]: successOf(routes, route, route.status, route.example?.response) }
  if (!route.alsoStatus) return first
  return {
    ...first,
    [route.alsoStatus]: successOf(routes, route, route.alsoStatus, route.example?.also?.response),
  }
}

function successOf(routes: readonly Route[], route: Route, status: number, value: unknown): Response {
  const hasAddress = status === 201 && routes.some(({ path }) => path.startsWith(`${route.path}/{`))
  return {
    description: statusWords[status] ?? "",
    headers: headersOf([
      "X-Request-Id",
      ...rateLimitHeaders(route),
      ...(route.idempotent ? ["Idempotent-Replayed"] : []),
      ...(hasAddress ? ["Location"] : []),
    ]),
    ...(route.response !== NoContent && {
      content: json(documentedSchema(route.response), { [route.operation]: { value } }),
    }),
  }
}

/** One response for each status, with an example for each of its codes. */
function refusalsOf(route: Route): Record<string, Response> {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codesOf(route)) {
    const { status } = errorCatalogue[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const responses = [...byStatus].map(([status, codes]) => [status, refusal(route, status, codes)] as const)
  if (route.credentials.length === 0)
    return { ...Object.fromEntries(responses), "4XX": refusal(route, 400, []) }
  return { ...Object.fromEntries(responses), 503: refusal(route, 503, ["internal.error"]) }
}

function refusal(route: Route, status: number, codes: ErrorCode[]): Response {
  const waits = status === 429 || status === 503 || codes.some((code) => isWorthWaiting(code))
  const examples = codes.length > 0 ? codes : anywhere
  return {
    description: `${statusWords[status] ?? ""} ${codes.map((code) => `\`${code}\``).join(", ")}`.trim(),
    headers: headersOf([
      "X-Request-Id",
      ...(status === 401 ? ["WWW-Authenticate"] : []),
      ...(status === 401 ? [] : rateLimitHeaders(route)),
      ...(waits ? ["Retry-After"] : []),
    ]),
    content: json(
      { $ref: "#/components/schemas/Error" },
      Object.fromEntries(examples.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    ),
  }
}

/** What an address answers that is wrong itself, or asked with another method. */
const anywhere = ["not_found.resource", "request.method_not_allowed"] as const

function isWorthWaiting(code: ErrorCode): boolean {
  const { status, retryable } = errorCatalogue[code]
  return status === 409 && retryable
}

/** The codes that an operation can answer: its own, and those that follow from its declaration. */
export function codesOf(route: Route): ErrorCode[] {
  if (route.credentials.length === 0) return ["internal.error"]
  const fromBrowsers = route.credentials.some((kind) => kind !== "api_key")
  const codes: ErrorCode[] = [
    "validation.failed",
    "auth.unauthorized",
    ...(route.credentials.includes("session_token") ? ["session_token.invalid_or_expired" as const] : []),
    ...(fromBrowsers ? ["auth.forbidden" as const] : []),
    ...route.errors,
    ...(route.body ? (["request.too_large", "request.unsupported_media_type"] as const) : []),
    ...(route.idempotent ? (["idempotency.key_conflict", "idempotency.in_progress"] as const) : []),
    "rate_limit.exceeded",
    "internal.error",
  ]
  return [...new Set(codes)]
}

const statusWords: Record<number, string> = {
  200: "Done.",
  201: "Recorded.",
  204: "Done. There is no body.",
  400: "The request does not have the expected form.",
  401: "The credential is not accepted.",
  403: "Not permitted.",
  404: "There is no such thing in your organization.",
  409: "The state of things does not allow it.",
  413: "The body is too large.",
  415: "The body is not JSON.",
  422: "The request is well formed and cannot be fulfilled.",
  429: "Too many requests.",
  500: "Something unexpected happened.",
  503: "Temporarily unavailable.",
}

function json(schema: JsonSchema, examples: Record<string, Example>): Content {
  return { "application/json": { schema, examples } }
}

function headersOf(names: string[]): Record<string, JsonSchema> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function rateLimitHeaders(route: Route): string[] {
  return route.credentials.length === 0
    ? []
    : ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
}
