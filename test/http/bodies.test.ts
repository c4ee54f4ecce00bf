import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type TSchema, Type } from "@sinclair/typebox"
import fc from "fast-check"
import { routes } from "../../src/api/routes.ts"
import { parseJsonObject } from "../../src/http/json.ts"
import { checkOf } from "../../src/http/validate.ts"
import { nullable } from "../../src/platform/fields.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  sendRaw,
  startService,
} from "../harness/api.ts"

let service: HttpService
let customer: Customer

beforeAll(async () => {
  service = await startService()
  customer = await createCustomer(service)
})
afterAll(() => service.close())

const collections = "POST /v1/collections"
const post = (body: unknown, headers: Record<string, string> = {}) =>
  ask(service, collections, { as: customer.key, body, headers })
const seen = ({ status, code, fields }: Answer) => ({ status, code, fields })
const refusedOn = (...fields: string[]) => ({ status: 400, code: "validation.failed", fields })

describe("a body of 64 KiB", () => {
  const most = 64 * 1024
  const bodyOf = (bytes: number) => {
    const frame = JSON.stringify({ name: "" })
    return `${frame.slice(0, -2)}${"x".repeat(bytes - frame.length)}"}`
  }
  const streamed = (text: string) => {
    const half = text.length / 2
    const parts = [text.slice(0, half), text.slice(half)]
    return new ReadableStream({
      pull(controller) {
        const part = parts.shift()
        if (part === undefined) controller.close()
        else controller.enqueue(new TextEncoder().encode(part))
      },
    })
  }
  const statusOf = async (body: string | ReadableStream) => {
    const headers = { authorization: `Bearer ${customer.key}`, "content-type": "application/json" }
    return (await fetch(`${service.base_url}/v1/collections`, { method: "POST", headers, body })).status
  }

  test("is read completely, and one byte more is too large, with or without Content-Length", async () => {
    const statuses = await Promise.all(
      [most, most + 1].flatMap((bytes) => [statusOf(bodyOf(bytes)), statusOf(streamed(bodyOf(bytes)))]),
    )
    expect(statuses).toEqual([400, 400, 413, 413])
  })
})

test("a value may equal a key", async () => {
  expect((await post('{"name":"name"}')).status).toBe(201)
})

test("an error on a nullable field names the type that it has besides null", async () => {
  const { body } = await post({ name: "Autumn", redirect_url: 7 })
  expect(body).toMatchObject({ error: { details: { fieldErrors: { redirect_url: ["must be a string"] } } } })
})

test("a number or null in place of a text is told that a string is needed", async () => {
  const text = "must be a string of 1 to 256 characters, without control characters or lone surrogates"
  const answer = await post({ name: 12345, external_id: null })
  expect(answer.body).toMatchObject({
    error: { details: { fieldErrors: { name: [text], external_id: [text] } } },
  })
  const tap = await ask(service, "POST /v1/taps", {
    as: customer.key,
    body: { chip_id: 1234567890, e: "0".repeat(32), c: null },
  })
  expect(tap.body).toMatchObject({
    error: {
      details: {
        fieldErrors: {
          chip_id: ["must be a string of 10 hexadecimal digits"],
          c: ["must be a string of 16 upper-case hexadecimal digits"],
        },
      },
    },
  })
})

describe("a validation message says in words:", () => {
  const list = (minItems: number, maxItems: number) => Type.Array(Type.Null(), { minItems, maxItems })
  const whole = Type.Integer({ minimum: 2, maximum: 3 })
  test.each<[words: string, schema: TSchema, value: unknown]>([
    ["is required", Type.Object({ a: Type.Null() }), {}],
    ["is not a known field", Type.Object({}, { additionalProperties: false }), { a: 1 }],
    ["must be small", Type.String({ maxLength: 1, "x-message": "must be small" }), "ab"],
    ["must have at least 1 character", Type.String({ minLength: 1 }), ""],
    ["must have at most 2 characters", Type.String({ maxLength: 2 }), "abc"],
    ["must have at least 1 entry", list(1, 2), []],
    ["must have at most 2 entries", list(1, 2), [null, null, null]],
    ["must have at least 1 field", Type.Object({}, { minProperties: 1 }), {}],
    ["must have at most 1 field", Type.Object({}, { maxProperties: 1 }), { a: 1, b: 2 }],
    ["must be at least 2", whole, 1],
    ["must be at most 3", whole, 4],
    ["must be a whole number", whole, "2"],
    ["must be true or false", Type.Boolean(), 1],
    ['must be one of "a", "b"', Type.Union([Type.Literal("a"), Type.Literal("b")]), "c"],
    ["must be a string", nullable(Type.String()), 7],
    ["Expected union value", Type.Union([Type.String(), Type.Boolean()]), 7],
  ])("%s", (words, schema, value) => {
    expect(checkOf(schema)(value).map(({ message }) => message)).toEqual([words])
  })
})

test("an error about the whole body is reported on the body, not on a field", async () => {
  const unit = `/v1/units/${crypto.randomUUID()}` as const
  const changed = await ask(service, `PATCH ${unit}`, { as: customer.key, body: {} })
  const { error } = changed.body as { error: { details: { formErrors: string[]; fieldErrors: object } } }
  expect(changed.status).toBe(400)
  expect(error.details.formErrors).toHaveLength(1)
  expect(error.details.fieldErrors).toEqual({})
})

describe("a missing body counts as an empty object:", () => {
  test.each([
    ["an empty body", ""],
    ["whitespace", " \n\t"],
  ])("%s", async (_name, body) => {
    expect(seen(await post(body))).toEqual(refusedOn("name"))
  })

  test("no body and no content type", async () => {
    expect(seen(await ask(service, collections, { as: customer.key }))).toEqual(refusedOn("name"))
  })
})

describe("a body that is not an acceptable JSON object is rejected as a whole:", () => {
  const deep = (levels: number) => `{"attributes":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`
  test.each([
    ["broken JSON", "{bad"],
    ["text after the object", '{"name":"a"} x'],
    ["an array", "[]"],
    ["null", "null"],
    ["text", '"x"'],
    ["a number", "3"],
    ["a duplicate key", '{"name":"a","name":"b"}'],
    ["a duplicate key, once with an escape", '{"name":"a","n\\u0061me":"b"}'],
    ["a duplicate key at a deeper level", '{"attributes":{"list":[{"a":1,"a":2}]}}'],
    ["__proto__", '{"__proto__":{"name":"a"}}'],
    ["constructor", '{"attributes":{"constructor":{}}}'],
    ["prototype, with an escape", '{"attributes":{"prototyp\\u0065":1}}'],
    ["33 levels", deep(33)],
    ["thousands of levels", deep(20_000)],
    ["invalid UTF-8", Uint8Array.of(0x7b, 0xff, 0x7d)],
  ])("%s", async (_name, body) => {
    const answer = await post(body)
    expect(seen(answer)).toEqual(refusedOn())
    expect(answer.formErrors).toHaveLength(1)
  })
})

test("32 levels of nesting are allowed", () => {
  expect(() => parseJsonObject(`{"a":${"[".repeat(31)}${"]".repeat(31)}}`)).not.toThrow()
})

test("an unknown field is rejected by name", async () => {
  expect(seen(await post({ name: "a", colour: "red" }))).toEqual(refusedOn("colour"))
})

test.each(
  routes
    .filter(({ method }) => method !== "GET" && method !== "DELETE")
    .map((route) => [route.operation, route] as const),
)("%s rejects unknown fields", async (_operation, { method, path, credentials }) => {
  const as = credentials.includes("api_key") ? customer.key : (await createVisitor(service, customer)).token
  const question = `${method} ${path.replaceAll(/\{\w+\}/g, newId())}`
  const { status, fields } = await ask(service, question, { as, body: { surprise: 1 } })
  expect({ status, fields }).toEqual({ status: 400, fields: expect.arrayContaining(["surprise"]) })
})

test("a byte order mark is accepted", async () => {
  expect((await post(new TextEncoder().encode('\ufeff{"name":"Marked"}'))).status).toBe(201)
})

describe("anything but plain JSON is rejected with 415:", () => {
  test.each([
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "text/plain",
    "application/merge-patch+json",
    "application/jsonx",
    "application/json, application/json",
    "",
  ])("as %p", async (type) => {
    const { status, code } = await post('{"name":"a"}', { "content-type": type })
    expect({ status, code }).toEqual({ status: 415, code: "request.unsupported_media_type" })
  })

  test("a compressed body", async () => {
    const { status } = await post(Bun.gzipSync('{"name":"a"}'), { "content-encoding": "gzip" })
    expect(status).toBe(415)
  })
})

test.each(["application/json; charset=utf-8", "APPLICATION/JSON", "application/json ;x=y"])(
  "%s is accepted as JSON",
  async (type) => {
    expect((await post('{"name":"Typed"}', { "content-type": type })).status).toBe(201)
  },
)

describe("a body of more than 64 KiB is rejected with 413", () => {
  const large = `{"name":"${"x".repeat(70_000)}"}`

  test("by its Content-Length", async () => {
    const { status, code } = await post(large)
    expect({ status, code }).toEqual({ status: 413, code: "request.too_large" })
  })

  test("by its size, if it is chunked", async () => {
    const received = await sendRaw(
      service,
      `POST /v1/collections HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${customer.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`,
    )
    expect(received).toStartWith("HTTP/1.1 413")
    expect(received).toContain('"request.too_large"')
  })

  test("but 415 comes first if its media type is wrong, too", async () => {
    expect((await post(large, { "content-type": "text/plain" })).status).toBe(415)
  })

  test("while one of exactly 64 KiB is read", async () => {
    const body = `{"name":"Padded"}${" ".repeat(65_536 - 17)}`
    expect((await post(body)).status).toBe(201)
  })
})

describe("an invalid field is rejected by name:", () => {
  test.each([
    ["an empty string", { name: "" }, ["name"]],
    ["a string of 257 characters", { name: "x".repeat(257) }, ["name"]],
    ["control characters", { name: "a\u0007b" }, ["name"]],
    ["half a surrogate pair", '{"name":"\\ud800"}', ["name"]],
    ["a number for a string", { name: 3 }, ["name"]],
    ["null for a string", { name: null }, ["name"]],
    ["a string for a number", { name: "a", chain_id: "1" }, ["chain_id"]],
    ["a fraction for an integer", { name: "a", chain_id: 1.5 }, ["chain_id"]],
    ["true for a number", { name: "a", chain_id: true }, ["chain_id"]],
    ["a number that overflows", '{"name":"a","chain_id":1e400}', ["chain_id"]],
    ["a symbol of 5 characters", { name: "a", symbol: "ABCDE" }, ["symbol"]],
    ["an empty symbol", { name: "a", symbol: "" }, ["symbol"]],
    ["a chain that is not allowed", { name: "a", chain_id: 1 }, ["chain_id"]],
    ["a javascript: redirect", { name: "a", redirect_url: "javascript:alert(1)" }, ["redirect_url"]],
    ["a redirect with a password", { name: "a", redirect_url: "https://u:p@example.com" }, ["redirect_url"]],
    ["several fields at once", { symbol: "ABCDE", external_id: "" }, ["external_id", "name", "symbol"]],
  ])("%s", async (_name, body, fields) => {
    const answer = await post(body)
    expect(seen({ ...answer, fields: answer.fields.sort() })).toEqual(refusedOn(...fields))
  })

  test("an empty update", async () => {
    const { fields } = await ask(service, "PATCH /v1/settings", { as: customer.key, body: {} })
    expect(fields).toEqual(["default_redirect_url"])
  })
})

test("an error deep inside a field has its position in the message", async () => {
  const unit_id = "01890000-0000-7000-8000-000000000000"
  const chips = Array.from({ length: 60 }, () => ({ unit_id, is_test: true }) as Record<string, unknown>)
  chips[56] = { unit_id, chip_id: "0123456789", e: "too short" }
  const { body } = await ask(service, "POST /v1/chips/bulk", { as: customer.key, body: { chips } })
  expect(body).toMatchObject({
    error: { details: { formErrors: [], fieldErrors: { chips: [expect.stringMatching(/^\[56\]\.e: /)] } } },
  })
})

test("at most 20 messages are returned", async () => {
  const chips = Array.from({ length: 100 }, () => ({ unit_id: "nobody", is_test: "perhaps" }))
  const { body } = await ask(service, "POST /v1/chips/bulk", { as: customer.key, body: { chips } })
  const { error } = body as { error: { details: { fieldErrors: { chips: string[] } } } }
  expect(error.details.fieldErrors.chips).toHaveLength(20)
  const unknown = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`unknown_${index}`, 1]))
  expect((await post({ name: "a", ...unknown })).fields).toHaveLength(20)
})

test("an error response does not repeat what was sent", async () => {
  const secret = "5ECRE75ECRE75ECRE75ECRE75ECRE7xx"
  const body = { chip_id: "0123456789", e: secret, c: secret, ttl: secret }
  const answer = await ask(service, "POST /v1/taps", { as: customer.key, body })
  expect(answer.fields.sort()).toEqual(["c", "e", "ttl"])
  expect(answer.text).not.toContain(secret)
})

describe("the JSON parser", () => {
  const key = fc.string().filter((text) => !["__proto__", "constructor", "prototype"].includes(text))
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, depthSize: "small" },
      fc.constant(null),
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.string({ unit: "grapheme" }),
      fc.array(tie("value")),
      fc.dictionary(key, tie("value")),
    ),
  }))

  test("parses what JSON.stringify writes exactly as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.dictionary(key, value), fc.constantFrom(0, 2), (object, indent) => {
        const text = JSON.stringify(object, null, indent)
        expect(parseJsonObject(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  test("rejects every object with a duplicate key, however deep", () => {
    fc.assert(
      fc.property(key, value, value, (name, one, other) => {
        const [written, first, second] = [name, one, other].map((each) => JSON.stringify(each))
        expect(() => parseJsonObject(`{"x":[{${written}:${first},"y y":0,${written}:${second}}]}`)).toThrow()
      }),
    )
  })
})
