import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type TSchema, Type } from "@sinclair/typebox"
import fc, { type Arbitrary } from "fast-check"
import { codesOf, openApiDocument } from "../../src/api/openapi/document.ts"
import { api, routes } from "../../src/api/routes.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import type { Route } from "../../src/http/route.ts"
import { type ErrorCode, errorCatalogue } from "../../src/platform/errors.ts"
import { newId } from "../../src/platform/ids.ts"
import { tapRedirect } from "../../src/resources/taps/redirect.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  startService,
  type Visitor,
} from "../harness/api.ts"
import { validatorOf } from "../harness/openapi.ts"
import { alice, bob } from "../harness/ownership.ts"
import { seedOf } from "../harness/seed.ts"
import { activeCollection, createProduct, importedChip, newUnit } from "../harness/services.ts"

// Requests generated from the schemas, valid and invalid, to every operation: no response is a 5xx, and every response
// is one that the OpenAPI document declares. FUZZ_SEED repeats a run.

const seed = seedOf("FUZZ_SEED")
const requestsPerOperation = 100

const urls = { api_base_url: "https://api.brand.test", docs_url: "https://api.brand.test/docs" }
const document = openApiDocument(api, urls)

let service: HttpService
let maker: Customer
let stranger: Customer
let visitors: Visitor[]
let publishable: string
/** Values that exist in this service, by field name. */
let real: Record<string, string[]>
/** Bodies that an operation accepts, each usable once. */
let good: Record<string, Record<string, unknown>[]>

beforeAll(async () => {
  service = await startService()
  maker = await createCustomer(service, { cors_origins: ["https://*.brand.test"] })
  stranger = await createCustomer(service)
  visitors = []
  for (let made = 0; made < 8; made++) visitors.push(await createVisitor(service, maker))
  publishable = await publishableKeyOf(service, maker)
  await furnish()
}, 120_000)
afterAll(() => service.close())

const successful = new Map<string, number>()

// endSession comes last, because it ends the session that the others use.
/** A stream never ends, so it has no whole response to compare; test/events/stream.test.ts covers it. */
const ending = routes.filter(({ run }) => run.kind !== "stream")

const inOrder = [...ending].sort(
  (one, other) => Number(one.method === "DELETE") - Number(other.method === "DELETE"),
)

describe(`with the seed ${seed}`, () => {
  test.each(inOrder.map((route) => [route.operation, route] as const))(
    "%s returns only responses that it declares",
    async (_operation, route) => {
      await fc.assert(
        fc.asyncProperty(requestsTo(route), async (request) => {
          expectDeclared(route, await send(route, request))
        }),
        { seed, numRuns: requestsPerOperation, endOnFailure: true },
      )
    },
    30_000,
  )

  test("the tap URL of a chip returns only declared responses, whatever the chip ID is", async () => {
    const { path, documented } = tapRedirect
    const declared = document.paths[path]?.get?.responses ?? {}
    const seen = new Set<number>()
    const asked = fc.record({
      chip_id: parameter("chip_id", documented.operation),
      query: valuesOf(Type.Partial(Type.Object(documented.query))) as Arbitrary<Record<string, string>>,
    })
    const opened = fc.asyncProperty(asked, async ({ chip_id, query }) => {
      const address = `${service.base_url}${path.replace("{chip_id}", chip_id)}?${new URLSearchParams(query)}`
      const answer = await fetch(address, { redirect: "manual" })
      seen.add(answer.status)
      expect(Object.keys(declared)).toContain(`${answer.status}`)
      const [type] = Object.keys(declared[answer.status]?.content ?? {})
      expect(answer.headers.get("content-type")?.split(";")[0]).toBe(type)
      for (const name of Object.keys(declared[answer.status]?.headers ?? {}))
        expect([name, answer.headers.has(name)]).toEqual([name, true])
    })
    await fc.assert(opened, { seed, numRuns: 60, endOnFailure: true })
    expect([...seen]).toContain(200)
  })

  test("every operation succeeded at least once", () => {
    expect(
      ending.map(({ operation }) => operation).filter((operation) => !successful.get(operation)),
    ).toEqual([])
  })
})

type Wanted = {
  credential: "fitting" | "session" | "publishable" | "foreign" | "none"
  params: Record<string, string>
  query: Record<string, string>
  body: unknown
  headers: Record<string, string>
}

function requestsTo(route: Route): Arbitrary<Wanted> {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  return fc.record({
    credential: fc.oneof(
      { arbitrary: fc.constant("fitting" as const), weight: 17 },
      {
        arbitrary: fc.constantFrom(
          "session" as const,
          "publishable" as const,
          "foreign" as const,
          "none" as const,
        ),
        weight: 3,
      },
    ),
    params: fc.record(Object.fromEntries(names.map((name) => [name, parameter(name, route.operation)]))),
    query: fc.oneof(
      { arbitrary: fc.constant({}), weight: route.method === "GET" ? 2 : 12 },
      { arbitrary: valuesOf(route.query) as Arbitrary<Record<string, string>>, weight: 3 },
      { arbitrary: broken(valuesOf(route.query)) as Arbitrary<Record<string, string>>, weight: 1 },
    ),
    body: route.body ? bodies(route, route.body) : fc.constant(undefined),
    headers: fc.oneof(
      { arbitrary: fc.constant({}), weight: 6 },
      {
        arbitrary: fc.constantFrom("k1", "k2", "k 3", "").map((key) => ({ "idempotency-key": key })),
        weight: 2,
      },
      {
        arbitrary: fc
          .constantFrom("https://a.brand.test", "https://b.test", "null")
          .map((origin) => ({ origin })),
        weight: 1,
      },
      {
        arbitrary: fc
          .constantFrom("text/plain", "application/json; charset=utf-8")
          .map((type) => ({ "content-type": type })),
        weight: 1,
      },
    ),
  })
}

function parameter(name: string, operation: string): Arbitrary<string> {
  return fc.oneof(
    { arbitrary: fc.nat().map((index) => chosen(name, index, operation)), weight: 6 },
    { arbitrary: fc.constant(name === "chip_id" ? "00000000AA" : newId()), weight: 1 },
    {
      arbitrary: fc
        .string({ minLength: 1, maxLength: 40 })
        .filter((text) => text !== "." && text !== "..")
        .map(encodeAnything),
      weight: 1,
    },
  )
}

/** Evaluated when the request is made: the service does not exist yet when the requests are described. */
function chosen(name: string, index: number, operation = ""): string {
  const values = real[`${name} of ${operation}`] ?? real[name] ?? []
  return values[index % values.length] ?? newId()
}

function bodies(route: Route, schema: TSchema): Arbitrary<unknown> {
  const valid = valuesOf(schema)
  return fc
    .oneof(
      { arbitrary: fc.constant("good"), weight: 4 },
      { arbitrary: valid, weight: 4 },
      { arbitrary: broken(valid), weight: 3 },
      { arbitrary: fc.jsonValue(), weight: 1 },
      { arbitrary: fc.string(), weight: 1 },
      { arbitrary: fc.uint8Array({ maxLength: 40 }), weight: 1 },
    )
    .map((body) => (body === "good" ? { [goodBody]: route.operation } : body))
}

const goodBody = "a good body of"

/** Generates values that a schema allows. */
function valuesOf(schema: TSchema): Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.anyOf) return fc.oneof(...(schema.anyOf as TSchema[]).map(valuesOf))
  switch (schema.type) {
    case "object":
      return schema.properties
        ? objectsOf(schema)
        : fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 })
    case "array":
      return fc.array(valuesOf(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 5, 5),
      })
    case "integer":
      return fc.integer({
        min: schema.minimum ?? schema.exclusiveMinimum ?? 0,
        max: schema.maximum ?? 100_000,
      })
    case "boolean":
      return fc.boolean()
    case "null":
      return fc.constant(null)
    default:
      return textsOf(schema)
  }
}

function objectsOf(schema: TSchema): Arbitrary<unknown> {
  const required: string[] = schema.required ?? []
  const fields = Object.entries(schema.properties as Record<string, TSchema>).map(([name, field]) => [
    name,
    fc.oneof({ arbitrary: valuesOf(field), weight: 2 }, { arbitrary: meaningful(name, field), weight: 3 }),
  ])
  const model: Record<string, Arbitrary<unknown>> = Object.fromEntries(fields)
  return fc.record(model, { requiredKeys: required })
}

/** Generates an existing value if the field can hold one. */
function meaningful(name: string, schema: TSchema): Arbitrary<unknown> {
  const known = fc.nat().map((index) => (real[name] ? chosen(name, index) : undefined))
  return fc.tuple(known, valuesOf(schema)).map(([value, other]) => value ?? other)
}

function textsOf({ pattern, minLength = 0, maxLength = 40 }: TSchema): Arbitrary<string> {
  const size = { minLength, maxLength: Math.min(maxLength, 300) }
  if (pattern && !pattern.includes("u0000")) return fc.stringMatching(new RegExp(pattern))
  return fc.oneof(fc.string(size), fc.string({ ...size, unit: "grapheme-composite", maxLength: 20 }))
}

/** A valid object with one error in it. */
function broken(values: Arbitrary<unknown>): Arbitrary<unknown> {
  return fc
    .tuple(values, fc.nat(), fc.constantFrom("drop", "junk", "add"), fc.jsonValue())
    .map(([value, index, how, junk]) => {
      const object = { ...(value as Record<string, unknown>) }
      const name = Object.keys(object)[index % Math.max(1, Object.keys(object).length)] ?? "none"
      if (how === "drop") delete object[name]
      else object[how === "junk" ? name : "unknown"] = junk
      return object
    })
}

async function send(route: Route, { credential, params, query, body, headers }: Wanted): Promise<Answer> {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? "")
  const pairs = Object.entries(query).map(([name, value]): [string, string] => [
    name.toWellFormed(),
    (typeof value === "string" ? value : JSON.stringify(value)).toWellFormed(),
  ])
  const search = pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ""
  service.chain.owner = route.operation === "createTransfer" ? alice : null
  const token = tokenFor(route, credential, params.unit_id)
  const asked =
    body !== null && typeof body === "object" && goodBody in body ? good[route.operation]?.pop() : body
  return await ask(service, `${route.method} ${path}${search}`, {
    ...(token !== null && { as: token }),
    ...(asked !== undefined && { body: isPlain(asked) ? asked : JSON.stringify(asked) }),
    headers,
  })
}

function isPlain(body: unknown): boolean {
  return typeof body === "string" || body instanceof Uint8Array
}

function tokenFor(route: Route, credential: Wanted["credential"], unitId: string | undefined): string | null {
  const visitor = visitors.find(({ unit_id }) => unit_id === unitId) ?? (visitors[0] as Visitor)
  if (credential === "none") return null
  if (credential === "session") return visitor.token
  if (credential === "publishable") return publishable
  if (credential === "foreign") return stranger.key
  if (route.credentials.includes("api_key")) return maker.key
  return route.credentials.length > 0 ? visitor.token : null
}

function expectDeclared(route: Route, answer: Answer): void {
  const { status, headers, body, text, code } = answer
  const operation = document.paths[route.path]?.[route.method.toLowerCase()]
  if (!operation) throw new Error(`${route.operation} is not in the document`)
  expect(headers.get("x-request-id")).toMatch(/^req_[0-9a-f-]{36}$/)
  if (code === null) {
    expect([route.status, route.alsoStatus]).toContain(status as Route["status"])
    successful.set(route.operation, (successful.get(route.operation) ?? 0) + 1)
  } else {
    expect(
      `${route.operation}: ${[...codesOf(route)].filter((each) => each !== "internal.error").join(" ")} `,
    ).toContain(`${code} `)
    expect([code, status]).toEqual([code, errorCatalogue[code as ErrorCode].status])
    expect((body.error as { request_id: string }).request_id).toBe(String(headers.get("x-request-id")))
  }
  const documented = operation.responses[status]
  if (!documented) throw new Error(`${route.operation} answers ${status}, which is not in the document`)
  const schema = documented.content?.["application/json"]?.schema
  if (!schema) expect(text).toBe("")
  else expect(validatorOf(document, schema)(body)).toEqual([])
}

/** Percent-encodes what is needed to keep the text a single path segment. */
function encodeAnything(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

/** Fills the service with resources that the requests can refer to. */
async function furnish(): Promise<void> {
  const { behind } = service
  const { caller } = maker
  const collection = await activeCollection(behind, caller)
  const unpaired = await many(120, async () => (await newUnit(behind, caller, collection)).id)
  const free = () => unpaired.pop() ?? newId()
  const chips = await many(60, async () => await importedChip(behind, caller))
  const value = () => {
    const chip = chips.pop()
    return chip && { chip_id: chip.chip_id, ...emitSun(chip.tag, 1) }
  }
  const [claimed, replaced] = visitors.slice(-2) as [Visitor, Visitor]
  const claim = await ask(service, `POST /v1/units/${claimed.unit_id}/claims`, {
    as: claimed.token,
    body: { recipient: alice },
  })
  const replacement = await ask(service, `POST /v1/units/${replaced.unit_id}/chip-replacements`, {
    as: maker.key,
    body: { is_test: true },
  })
  const transferred = visitors[5] as Visitor
  service.chain.owner = alice
  const transfer = await ask(service, `POST /v1/units/${transferred.unit_id}/transfers`, {
    as: transferred.token,
    body: { recipient: bob },
  })
  service.chain.owner = null
  const test = visitors[0] as Visitor
  const values = await many(60, async () => {
    const { body } = await ask(service, "POST /v1/test-helpers/taps", {
      as: maker.key,
      body: { chip_id: test.chip_id },
    })
    return { chip_id: test.chip_id, e: body.e }
  })

  const replaceable = await many(4, async () => (await createVisitor(service, maker)).unit_id)
  const url = "https://receiver.test/events"
  const endpoints = await many(4, async () => {
    const { body } = await ask(service, "POST /v1/webhook-endpoints", { as: maker.key, body: { url } })
    return String(body.id)
  })
  const { body: feed } = await ask(service, "GET /v1/events?after=0", { as: maker.key })
  const event_id = String((feed.events as { id: string }[])[0]?.id)

  const refreshed = await activeCollection(behind, caller)
  const refresh = await ask(service, `POST /v1/collections/${refreshed.id}/metadata-refreshes`, {
    as: maker.key,
  })
  const { body: history } = await ask(service, "GET /v1/taps?is_test=true", { as: maker.key })

  real = {
    collection_id: [collection.id],
    "collection_id of getMetadataRefresh": [refreshed.id],
    refresh_id: [String(refresh.body.id)],
    tap_id: (history.taps as { id: string }[]).map(({ id }) => id),
    "unit_id of createChipReplacement": replaceable,
    event_id: [event_id],
    webhook_endpoint_id: endpoints,
    url: [url],
    after: ["0", event_id],
    unit_id: [...visitors.map(({ unit_id }) => unit_id), free()],
    "unit_id of createTransfer": visitors.slice(3, 6).map(({ unit_id }) => unit_id),
    "unit_id of createClaim": [...visitors.slice(0, 3), claimed].map(({ unit_id }) => unit_id),
    chip_id: visitors.map(({ chip_id }) => chip_id),
    product_id: [await createProduct(behind, caller)],
    claim_id: [String(claim.body.id)],
    transfer_id: [String(transfer.body.id)],
    replacement_id: [String(replacement.body.id)],
    recipient: [alice, bob, alice.toLowerCase()],
    redirect_url: ["https://brand.test/a", "https://brand.test/ä?x=1#y"],
    default_redirect_url: ["https://brand.test/"],
    external_id: ["one", "two", "three"],
    limit: ["1", "100"],
    created_after: ["2026-01-01T00:00:00Z"],
    created_before: ["2027-01-01T00:00:00.5Z"],
  }
  good = {
    createTap: values.reverse(),
    createTestTap: repeated({ chip_id: test.chip_id }),
    pairChip: [
      ...(await many(10, async () => ({ unit_id: free(), is_test: true }))),
      ...(await many(30, async () => ({ unit_id: free(), ...value() }))),
    ],
    pairChipsInBulk: await many(20, async () => ({ chips: [{ unit_id: free(), is_test: true }] })),
    createUnit: repeated({
      collection_id: collection.id,
      name: "A unit",
      attributes: { a: [1, { b: null }] },
    }),
    updateUnit: repeated({ name: "Another name" }),
    createCollection: repeated({ name: "A collection" }),
    updateCollection: repeated({ redirect_url: "https://brand.test/c" }),
    createClaim: repeated({ recipient: alice }),
    createTransfer: repeated({ recipient: bob }),
    createChipReplacement: repeated({ is_test: true }),
    createWebhookEndpoint: repeated({ url }),
    updateWebhookEndpoint: repeated({ description: "Ours" }),
    createWebhookReplay: repeated({ event_id }),
    updateSettings: repeated({ default_redirect_url: null }),
    replaceCorsOrigins: repeated({ cors_origins: ["https://*.brand.test"] }),
  }
}

function repeated(body: Record<string, unknown>): Record<string, unknown>[] {
  return Array.from({ length: 200 }, () => body)
}

async function many<T>(times: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = []
  for (let time = 0; time < times; time++) made.push(await make())
  return made
}
