import type { TProperties, TSchema } from "@sinclair/typebox"
import { Value } from "@sinclair/typebox/value"
import type { DocumentedPage } from "../../http/page.ts"
import { NoContent, type Route } from "../../http/route.ts"
import type { Config } from "../../platform/config.ts"
import { type ErrorCode, errorCatalogue } from "../../platform/errors.ts"
import { errorExample, errorSchema, headers, knownWords, schemeNames, securitySchemes } from "./components.ts"
import { type Example as Exchange, examples } from "./examples.ts"
import { answeredSchema, documentedComponents, documentedSchema, type JsonSchema } from "./schemas.ts"

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

type Parameter = {
  name: string
  in: string
  required: boolean
  description: string
  schema: JsonSchema
}
export type Content = Record<string, { schema: JsonSchema; examples: Record<string, Example> }>
export type Response = { description: string; headers?: Record<string, JsonSchema>; content?: Content }
export type Example = { summary?: string; value?: unknown; $ref?: string }

/** What the document describes: every operation, and the pages that others build on. */
export type Api = { routes: readonly Route[]; pages: readonly DocumentedPage[] }

/** The API as an OpenAPI 3.1 document: everything in it follows from the routes and pages. */
export function openApiDocument(
  { routes, pages }: Api,
  config: Pick<Config, "api_base_url" | "docs_url">,
): Document {
  const paths: Document["paths"] = {}
  for (const route of routes) {
    const method = route.method.toLowerCase()
    paths[route.path] = { ...paths[route.path], [method]: operationOf(routes, route) }
  }
  for (const page of pages) paths[page.path] = { get: operationOfPage(page) }
  const used = tags.filter(({ path }) => routes.some((route) => tagOf(route).path === path))
  return {
    openapi: "3.1.1",
    info: {
      title: "Chip Verification and Ownership API",
      version: "0.1.0",
      summary: "Verify the chips in products, and hand ownership of the products to people, on chain.",
      description: `Start at ${config.docs_url}. Every error code has a page under ${config.docs_url}/errors.`,
      contact: { name: "Documentation and support", url: config.docs_url },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: config.api_base_url }],
    tags: used.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      securitySchemes,
      schemas: {
        ...documentedComponents(routes.flatMap(sentBy), routes.flatMap(answeredBy)),
        ...knownWords,
        ErrorResponse: errorSchema,
      },
      headers,
      examples: Object.fromEntries(
        Object.keys(errorCatalogue).map((code) => [code, errorExample(code as ErrorCode, config.docs_url)]),
      ),
    },
  }
}

const tags = [
  { path: "taps", name: "Taps", description: "Verified scans of chips, each of which starts a session." },
  { path: "tap-diagnoses", name: "Tap diagnoses", description: "Why a tag does or does not verify." },
  { path: "chips", name: "Chips", description: "NFC tags, and test chips without hardware." },
  { path: "units", name: "Units", description: "Individual items; each is issued as a token." },
  {
    path: "collections",
    name: "Collections",
    description: "Groups of units, each with a contract of its own.",
  },
  {
    path: "metadata-refreshes",
    name: "Metadata refreshes",
    description: "Announcements to marketplaces that metadata has changed.",
  },
  { path: "claims", name: "Claims", description: "Hand a unit from the custody of the service to a person." },
  { path: "transfers", name: "Transfers", description: "Hand a unit from its owner to somebody else." },
  {
    path: "chip-replacements",
    name: "Chip replacements",
    description: "Give an unclaimed unit another chip.",
  },
  { path: "session-tokens", name: "Session tokens", description: "The session of the person who tapped." },
  { path: "publishable-keys", name: "Publishable keys", description: "Keys for browser code." },
  { path: "events", name: "Events", description: "Everything that happened, in one feed, in order." },
  {
    path: "webhook-endpoints",
    name: "Webhook endpoints",
    description: "URLs of yours to which events are sent as they happen.",
  },
  { path: "settings", name: "Settings", description: "Settings of the whole organization." },
  { path: "", name: "Service", description: "The service itself. No credential is needed." },
] as const

type Tag = (typeof tags)[number]

/** The last part of the path that is a resource. */
function tagOf(route: Route): Tag {
  const parts = route.path.split("/").reverse()
  const [tag] = parts.flatMap((part) => tags.filter(({ path }) => path === part))
  if (!tag) throw new Error(`no tag fits ${route.path}`)
  return tag
}

function exchangeOf({ operation }: Route): Exchange | undefined {
  return (examples as Record<string, Exchange>)[operation]
}

function sentBy({ body }: Route): TSchema[] {
  return body ? [body] : []
}

function answeredBy({ response, alsoResponse }: Route): TSchema[] {
  return alsoResponse ? [response, alsoResponse] : [response]
}

function operationOf(routes: readonly Route[], route: Route): Operation {
  const example = exchangeOf(route)
  return {
    operationId: route.operation,
    summary: route.summary,
    description: route.description,
    tags: [tagOf(route).name],
    security: route.credentials.map((kind) => ({ [schemeNames[kind]]: [] })),
    parameters: [
      ...parametersIn("path", route.params.properties),
      ...parametersIn("query", route.query.properties),
      ...keyParameterOf(route),
      ...lastEventParameterOf(route),
    ],
    ...(route.body && {
      requestBody: {
        required: needsBody(route.body),
        content: json(documentedSchema(route.body), {
          [route.operation]: { value: example?.request },
          ...(example?.also && { alternative: { value: example.also.request } }),
        }),
      },
    }),
    responses: { ...successesOf(routes, route), ...refusalsOf(route) },
  }
}

/** An empty body counts as {}. */
function needsBody(schema: TSchema): boolean {
  const variants: TSchema[] = schema["x-variants"] ?? [schema]
  return !variants.some((variant) => Value.Check(variant, {}))
}

function operationOfPage({ bucket, documented }: DocumentedPage): Operation {
  const { operation, summary, description, resource, params, query } = documented
  const tag = tags.find(({ path }) => path === resource)
  if (!tag) throw new Error(`no tag fits ${operation}`)
  return {
    operationId: operation,
    summary,
    description,
    tags: [tag.name],
    security: [],
    parameters: [...parametersIn("path", params), ...parametersIn("query", query)],
    responses: {
      ...answersOfPage(documented),
      ...refusalsWith([...anywhere, "internal.error"], []),
      ...(bucket && refusalsWith(["rate_limit.exceeded"], rateLimitNames)),
      503: refusal(503, ["internal.error"], []),
    },
  }
}

function answersOfPage({ operation, answers }: DocumentedPage["documented"]): Record<string, Response> {
  const responses = Object.entries(answers).map(([status, { description, location, html }]) => [
    status,
    {
      description,
      headers: {
        ...headersOf(["X-Request-Id"]),
        ...(location && { Location: { description: location, schema: { type: "string", format: "uri" } } }),
      },
      ...(html && {
        content: { "text/html": { schema: { type: "string" }, examples: { [operation]: { value: html } } } },
      }),
    },
  ])
  return Object.fromEntries(responses)
}

function parametersIn(place: "path" | "query", schemas: TProperties): Parameter[] {
  return Object.entries(schemas).map(([name, schema]) => ({
    name,
    in: place,
    required: place === "path",
    description: schema.description ?? "",
    schema: documentedSchema(schema),
  }))
}

function keyParameterOf(route: Route): Parameter[] {
  if (!route.idempotent) return []
  return [
    {
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description:
        "A unique text of your choice, such as a UUID. A retry with the same key and the same body gets the first response again, with `Idempotent-Replayed: true`, and nothing happens twice. Keys are kept for 24 hours.",
      schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-+\\--~]+$" },
    },
  ]
}

function lastEventParameterOf({ run }: Route): Parameter[] {
  if (run.kind !== "stream") return []
  return [
    {
      name: "Last-Event-ID",
      in: "header",
      required: false,
      description:
        "The id of the last event received, as browsers and other clients of server-sent events send it when they reconnect. It takes precedence over `after`.",
      schema: { type: "string" },
    },
  ]
}

function successesOf(routes: readonly Route[], route: Route): Record<string, Response> {
  const example = exchangeOf(route)
  const { status, alsoStatus, response } = route
  const first = { [status]: successOf(routes, route, { status, response, value: example?.response }) }
  if (!alsoStatus) return first
  const other = { status: alsoStatus, response: route.alsoResponse ?? response }
  return {
    ...first,
    [alsoStatus]: successOf(routes, route, { ...other, value: example?.also?.response }),
  }
}

function successOf(
  routes: readonly Route[],
  route: Route,
  { status, response, value }: { status: number; response: TSchema; value: unknown },
): Response {
  const isOfOne = ({ path, response: shown }: Route) =>
    path.endsWith("}") && (path.startsWith(`${route.path}/{`) || shown === response)
  const hasAddress = status === 201 && routes.some(isOfOne)
  return {
    description: statusWords[status] ?? "",
    headers: headersOf([
      "X-Request-Id",
      ...rateLimitHeaders(route),
      ...(route.idempotent ? ["Idempotent-Replayed"] : []),
      ...(hasAddress ? ["Location"] : []),
    ]),
    ...(response !== NoContent && {
      content: {
        [route.run.kind === "stream" ? "text/event-stream" : "application/json"]: {
          schema: answeredSchema(response),
          examples: { [route.operation]: { value } },
        },
      },
    }),
  }
}

/** By single status: some generators cannot read a range such as 4XX. */
function refusalsOf(route: Route): Record<string, Response> {
  const limitHeaders = rateLimitHeaders(route)
  const codes = codesOf(route)
  return {
    ...refusalsWith(isOpen(route) ? [...codes, ...anywhere] : codes, limitHeaders),
    ...(route.needs_database && { 503: refusal(503, ["internal.error"], limitHeaders) }),
  }
}

/** One response for each status, with an example for each of its codes. */
function refusalsWith(codes: readonly ErrorCode[], limitHeaders: string[]): Record<string, Response> {
  const byStatus = Map.groupBy(codes, (code) => errorCatalogue[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [status, refusal(status, ofStatus, limitHeaders)]),
  )
}

function refusal(status: number, codes: readonly ErrorCode[], limitHeaders: string[]): Response {
  const waits = status === 429 || status === 503 || codes.some(isWorthWaiting)
  return {
    description: `${statusWords[status] ?? ""} ${codes.map((code) => `\`${code}\``).join(", ")}`.trim(),
    headers: headersOf([
      "X-Request-Id",
      ...(status === 401 ? ["WWW-Authenticate"] : limitHeaders),
      ...(waits ? ["Retry-After"] : []),
    ]),
    content: json(
      { $ref: "#/components/schemas/ErrorResponse" },
      Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    ),
  }
}

/** For an unknown path or a wrong method. */
const anywhere = ["not_found.resource", "request.method_not_allowed"] as const

function isWorthWaiting(code: ErrorCode): boolean {
  const { status, retryable } = errorCatalogue[code]
  return status === 409 && retryable
}

/** The error codes that an operation can return: its own, and those implied by its declaration. */
export function codesOf(route: Route): ErrorCode[] {
  if (isOpen(route)) return ["internal.error"]
  const codes: ErrorCode[] = [
    "validation.failed",
    "auth.unauthorized",
    ...(route.credentials.includes("session_token") ? ["session_token.invalid_or_expired" as const] : []),
    "auth.forbidden",
    ...route.errors,
    ...(route.body ? (["request.too_large", "request.unsupported_media_type"] as const) : []),
    ...(route.idempotent ? (["idempotency.key_conflict", "idempotency.in_progress"] as const) : []),
    "rate_limit.exceeded",
    "internal.error",
  ]
  return [...new Set(codes)]
}

const statusWords: Record<number, string> = {
  200: "Success.",
  201: "Created.",
  204: "Success, without a body.",
  400: "The request is not valid.",
  401: "The credential is missing or not accepted.",
  403: "Not permitted.",
  404: "Not found in your organization.",
  405: "The method is not allowed.",
  409: "The current state does not allow this.",
  413: "The body is too large.",
  415: "The body is not JSON.",
  422: "The request is well formed but cannot be fulfilled.",
  429: "Too many requests.",
  500: "Unexpected error.",
  503: "Temporarily unavailable.",
}

function json(schema: JsonSchema, examples: Record<string, Example>): Content {
  return { "application/json": { schema, examples } }
}

function headersOf(names: string[]): Record<string, JsonSchema> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function rateLimitHeaders(route: Route): string[] {
  return isOpen(route) ? [] : rateLimitNames
}

function isOpen({ credentials }: Route): boolean {
  return credentials.length === 0
}

const rateLimitNames = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
