import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { eq, sql } from "drizzle-orm"
import * as tables from "../../src/db/schema.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { newCredential } from "../../src/platform/credentials.ts"
import { type ErrorCode, errorCatalogue } from "../../src/platform/errors.ts"
import { newId } from "../../src/platform/ids.ts"
import { revokeApiKey } from "../../src/resources/api-keys/service.ts"
import { reapExpired } from "../../workers/watches/reap-expired.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  type Question,
  sendRaw,
  startService,
  type Visitor,
} from "../harness/api.ts"
import { alice, bob } from "../harness/ownership.ts"
import { startBeside } from "../harness/service-beside.ts"
import { activeCollection, importedChip, newUnit, pairedTestChip, settle } from "../harness/services.ts"

// Every known bad input, sent over a real socket: each response says what is wrong, and nothing is recorded.

let service: HttpService
let maker: Customer
let other: Customer
let visitor: Visitor
let stranger: Visitor
let publishable: string

const origin = "https://shop.brand.test"
const someE = "0123456789ABCDEF0123456789ABCDEF"

beforeAll(async () => {
  service = await startService()
  maker = await createCustomer(service, { cors_origins: ["https://*.brand.test"] })
  other = await createCustomer(service)
  visitor = await createVisitor(service, maker)
  stranger = await createVisitor(service, other)
  publishable = await publishableKeyOf(service, maker)
})
afterAll(() => service.close())

describe("transport and headers", () => {
  const crlf = (...lines: string[]) => `${lines.join("\r\n")}\r\n\r\n`
  const asMaker = () => `Authorization: Bearer ${maker.key}`

  const unparsed: [input: string, statuses: number[], text: () => string][] = [
    ["no Host header", [400], () => crlf("GET /health HTTP/1.1")],
    [
      "both Content-Length and chunked encoding",
      [400],
      () =>
        `${crlf("POST /v1/units HTTP/1.1", "Host: x", asMaker(), "Content-Length: 5", "Transfer-Encoding: chunked")}0\r\n\r\n`,
    ],
    [
      "two different Content-Length headers",
      [400],
      () =>
        `${crlf("POST /v1/units HTTP/1.1", "Host: x", asMaker(), "Content-Length: 2", "Content-Length: 3")}{}`,
    ],
    [
      "headers of more than 16 KiB",
      [431],
      () => crlf("GET /health HTTP/1.1", "Host: x", `X-Long: ${"a".repeat(20_000)}`),
    ],
    [
      "a URL of more than 16 KiB",
      [414, 431],
      () => crlf(`GET /health?${"a".repeat(20_000)} HTTP/1.1`, "Host: x"),
    ],
  ]
  for (const [input, statuses, text] of unparsed)
    test(`${input}: rejected by the HTTP parser`, async () => {
      const answer = await nothingHappens(async () => rawAnswer(await sendRaw(service, text())))
      expect(statuses).toContain(answer.status)
    })

  for (const host of ["a/b?c", "u:p@x", "a b", "x"])
    test(`the host ${host}: a normal response`, async () => {
      const head = ["GET /v1/units?limit=1 HTTP/1.1", `Host: ${host}`, asMaker()]
      const answer = rawAnswer(await sendRaw(service, crlf(...head)))
      expect(answer.status).toBe(200)
      expect(JSON.parse(answer.text).pagination.limit).toBe(1)
    })

  test("an unknown method: the HTTP parser closes the connection, and nothing crashes", async () => {
    const answer = await nothingHappens(() =>
      sendRaw(service, crlf("FOO /v1/units HTTP/1.1", "Host: x", asMaker())),
    )
    expect(answer).toBe("")
    expect((await ask(service, "GET /health")).status).toBe(200)
  })

  test("a method that the path does not support: 405 with Allow", async () => {
    const answer = await refused("request.method_not_allowed", () =>
      ask(service, "PUT /v1/test-helpers/taps"),
    )
    expect(answer.headers.get("allow")).toBe("POST")
  })

  test("a method that neither of a path's two operations supports: 405, each method listed once in Allow", async () => {
    const answer = await refused("request.method_not_allowed", () =>
      ask(service, "DELETE /v1/events/stream", { as: maker.key }),
    )
    expect(answer.headers.get("allow")).toBe("GET")
  })

  test("HEAD of an operation: 405 without a body", async () => {
    const answer = await ask(service, "HEAD /v1/publishable-keys", { as: other.key })
    expect([answer.status, answer.text]).toEqual([405, ""])
    expect((await count(tables.publishableKeys, other)).rows).toBe(0)
  })

  test("an unknown path without a credential: 404", () =>
    refused("not_found.resource", () => ask(service, "GET /v1/nothing")))

  for (const path of ["//v1/units", "/V1/units", "/v1/units/", "/v1//units"])
    test(`${path}: 404`, () =>
      refused("not_found.resource", async () =>
        rawAnswer(await sendRaw(service, crlf(`GET ${path} HTTP/1.1`, "Host: x", asMaker()))),
      ))

  for (const path of [
    "/v1/chips/a%00b",
    "/v1/chips/%zz",
    "/v1/chips/123",
    "/v1/chips/bulk",
    "/v1/chips/12345678%EF%AC%80",
  ])
    test(`${path}: rejected on chip_id`, () =>
      refused("validation.failed", () => ask(service, `GET ${path}`, { as: maker.key }), ["chip_id"]))

  test("a GET with a body: the body is ignored", async () => {
    const head = ["GET /v1/settings HTTP/1.1", "Host: x", asMaker(), "Content-Type: application/json"]
    const answer = rawAnswer(await sendRaw(service, `${crlf(...head, "Content-Length: 5")}{bad}`))
    expect(answer.status).toBe(200)
  })

  test("Accept: application/xml: JSON all the same", async () => {
    const answer = await ask(service, "GET /v1/settings", {
      as: maker.key,
      headers: { accept: "application/xml" },
    })
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"])
  })

  test("Expect: 100-continue: a normal response", async () => {
    const body = JSON.stringify({ default_redirect_url: null })
    const head = ["PATCH /v1/settings HTTP/1.1", "Host: x", asMaker(), "Content-Type: application/json"]
    const answer = await sendRaw(
      service,
      `${crlf(...head, "Expect: 100-continue", `Content-Length: ${body.length}`)}${body}`,
    )
    expect(answer).toContain("HTTP/1.1 200")
  })

  test("a request ID from the caller: the response has the service's own", async () => {
    const answer = await ask(service, "GET /health", { headers: { "x-request-id": "req_evil" } })
    expect(answer.headers.get("x-request-id")).toMatch(/^req_[0-9a-f-]{36}$/)
    expect(answer.body.request_id).toBe(answer.headers.get("x-request-id"))
  })
})

describe("credentials", () => {
  const unauthorized: [input: string, question: () => Question][] = [
    ["no credential", () => ({})],
    ["Basic authentication", () => ({ headers: { authorization: "Basic dTpw" } })],
    ["a tab after the scheme", () => ({ headers: { authorization: `Bearer\t${maker.key}` } })],
    ["two spaces after the scheme", () => ({ headers: { authorization: `Bearer  ${maker.key}` } })],
    [
      "two credentials in one header",
      () => ({ headers: { authorization: `Bearer ${maker.key}, Bearer ${maker.key}` } }),
    ],
    ["an unknown key", () => ({ as: newCredential("api_key").token })],
    ["a mistyped key", () => ({ as: maker.key.slice(0, -1) })],
    ["a token in JWT format", () => ({ as: "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln" })],
    ["a session token", () => ({ as: visitor.token })],
    ["a publishable key", () => ({ as: publishable })],
  ]
  for (const [input, question] of unauthorized)
    test(`${input} on the list of taps: 401`, () =>
      refused("auth.unauthorized", () => ask(service, "GET /v1/taps", question())))

  test("a key in the query string: 401, and the key is not logged", async () => {
    await refused("auth.unauthorized", () => ask(service, `GET /v1/units?access_token=${maker.key}`))
    expect(service.logged.join("\n")).not.toContain(maker.key)
  })

  test("two Authorization headers: 401", () =>
    refused("auth.unauthorized", async () =>
      rawAnswer(
        await sendRaw(
          service,
          `GET /v1/units HTTP/1.1\r\nHost: x\r\n${`Authorization: Bearer ${maker.key}\r\n`.repeat(2)}\r\n`,
        ),
      ),
    ))

  test("the scheme in lower case: accepted", async () => {
    const headers = { authorization: `bearer ${maker.key}` }
    expect((await ask(service, "GET /v1/settings", { headers })).status).toBe(200)
  })

  test("a revoked key: 401", async () => {
    const { key, key_id } = await createCustomer(service)
    await service.behind.turn((turn) => revokeApiKey(turn, key_id))
    await refused("auth.unauthorized", () => ask(service, "GET /v1/units", { as: key }))
  })

  test("an unknown session: 401 with its own error code", () =>
    refused("session_token.invalid_or_expired", () =>
      ask(service, "GET /v1/session-tokens/current", { as: newCredential("session_token").token }),
    ))

  test("an expired session: the same error, and its status says expired", async () => {
    const { token } = await createVisitor(service, maker, 60)
    service.advance(60_000)
    const answer = await ask(service, "GET /v1/session-tokens/current", { as: token })
    expectRefusal(answer, "session_token.invalid_or_expired")
    const hash = createHash("sha256").update(token).digest("hex")
    const [row] = await service.context.db.read
      .select()
      .from(tables.sessionTokens)
      .where(eq(tables.sessionTokens.hash, hash))
    expect(row?.status).toBe("expired")
  })

  test("a session that was ended: ending it again is 401", async () => {
    const { token } = await createVisitor(service, maker)
    expect((await ask(service, "DELETE /v1/session-tokens/current", { as: token })).status).toBe(204)
    for (const question of ["DELETE /v1/session-tokens/current", "GET /v1/session-tokens/current"] as const)
      await refused("session_token.invalid_or_expired", () => ask(service, question, { as: token }))
  })

  test("an API key where a session is required: 401 before anything else is checked", async () => {
    await refused("auth.unauthorized", () =>
      ask(service, "GET /v1/session-tokens/current?no=1", { as: maker.key }),
    )
    await refused("auth.unauthorized", () =>
      ask(service, `POST /v1/units/${visitor.unit_id}/claims`, { as: maker.key, body: "{bad" }),
    )
  })

  test("a publishable key with dry_run: 403", () =>
    refused("auth.forbidden", () =>
      ask(service, "POST /v1/taps", {
        as: publishable,
        body: { chip_id: visitor.chip_id, e: someE, dry_run: true },
      }),
    ))

  for (const ttl of [60, 3_600, 0, -1, 86_400, 1e300])
    test(`a publishable key with ttl ${ttl}: the session still lasts 600 seconds`, async () => {
      const answer = await tap({ as: publishable, headers: { origin } }, { ttl })
      expect(answer.status).toBe(201)
      const { expires_at } = answer.body.session_token as { expires_at: string }
      expect(new Date(expires_at).getTime() - service.context.clock().getTime()).toBe(600_000)
    })

  for (const foreign of ["https://evil-brand.test", "https://brand.test", "http://shop.brand.test", "null"])
    test(`a publishable key from a page of ${foreign}: 403, which the page cannot read`, async () => {
      const body = { chip_id: visitor.chip_id, e: await emit() }
      const answer = await refused("auth.forbidden", () =>
        ask(service, "POST /v1/taps", { as: publishable, body, headers: { origin: foreign } }),
      )
      expect(answer.headers.get("access-control-allow-origin")).toBeNull()
    })

  test("a publishable key without Origin: allowed", async () => {
    expect((await tap({ as: publishable })).status).toBe(201)
  })

  test("a session of one chip, used on the unit of another: 403", async () => {
    const { unit_id } = await createVisitor(service, maker)
    await refused("session_token.wrong_chip", () =>
      ask(service, `POST /v1/units/${unit_id}/claims`, { as: visitor.token, body: { recipient: alice } }),
    )
  })

  test("the eleventh failed credential within a minute from one IP address: 429, while valid credentials still work", async () => {
    const { rate_limits } = loadConfig({ SERVICE_SECRET: service.behind.secret.current })
    const limited = startBeside(service, { rate_limits })
    try {
      for (let attempt = 1; attempt <= 10; attempt++)
        expect((await ask(limited, "GET /v1/units", { as: newCredential("api_key").token })).status).toBe(401)
      const answer = await refused("rate_limit.exceeded", () =>
        ask(limited, "GET /v1/units", { as: newCredential("api_key").token }),
      )
      expect(Number(answer.headers.get("retry-after"))).toBeWithin(1, 61)
      expect((await ask(limited, "GET /v1/units", { as: maker.key })).status).toBe(200)
    } finally {
      await limited.close()
    }
  })
})

describe("bodies", () => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  const json = { "content-type": "application/json" }
  const missing = ["collection_id"]

  const refusals: [input: string, code: ErrorCode, question: () => Question, fields: string[]][] = [
    ["an empty body", "validation.failed", () => ({ headers: json }), missing],
    ["only white space", "validation.failed", () => ({ body: " \n" }), missing],
    ["neither Content-Type nor body", "validation.failed", () => ({}), missing],
    ["broken JSON", "validation.failed", () => ({ body: "{bad" }), []],
    ["an array", "validation.failed", () => ({ body: "[]" }), []],
    ["null", "validation.failed", () => ({ body: "null" }), []],
    ["a string", "validation.failed", () => ({ body: '"x"' }), []],
    ["a number", "validation.failed", () => ({ body: "3" }), []],
    ["an unknown key", "validation.failed", () => unit({ colour: "red" }), ["colour"]],
    ["a duplicate key", "validation.failed", () => ({ body: '{"name":"a","name":"b"}' }), []],
    [
      "a duplicate key, once with an escape",
      "validation.failed",
      () => ({ body: '{"name":"a","n\\u0061me":"b"}' }),
      [],
    ],
    ["a key that could change the prototype", "validation.failed", () => ({ body: '{"__proto__":{}}' }), []],
    [
      "33 levels",
      "validation.failed",
      () => ({ body: `{"attributes":${"[".repeat(32)}${"]".repeat(32)}}` }),
      [],
    ],
    ["invalid UTF-8", "validation.failed", () => ({ body: new Uint8Array([0x7b, 0xff, 0x7d]) }), []],
    ["half a surrogate pair", "validation.failed", () => unit({ name: "\ud800" }), ["name"]],
    ["a control character", "validation.failed", () => unit({ name: "a\u0007b" }), ["name"]],
    ["an empty name", "validation.failed", () => unit({ name: "" }), ["name"]],
    ["a name of 257 characters", "validation.failed", () => unit({ name: "n".repeat(257) }), ["name"]],
    [
      "an external_id of 257 characters",
      "validation.failed",
      () => unit({ external_id: "n".repeat(257) }),
      ["external_id"],
    ],
    [
      "attributes of 17 KiB",
      "validation.failed",
      () => unit({ attributes: { text: "n".repeat(17_000) } }),
      ["attributes"],
    ],
    [
      "metadata with a value of an unsupported type, whatever its key",
      "validation.failed",
      () => unit({ metadata: { "a\u2028b": { x: 1 } } }),
      ["metadata"],
    ],
    [
      "attributes nested 9 levels deep",
      "validation.failed",
      () => unit({ attributes: nested(9) }),
      ["attributes"],
    ],
    [
      "a form",
      "request.unsupported_media_type",
      () => typed("application/x-www-form-urlencoded", "name=x"),
      [],
    ],
    ["XML", "request.unsupported_media_type", () => typed("application/xml", "<name>x</name>"), []],
    ["JSON as text/plain", "request.unsupported_media_type", () => typed("text/plain", "{}"), []],
    [
      "a compressed body",
      "request.unsupported_media_type",
      () => ({ body: "{}", headers: { "content-encoding": "gzip" } }),
      [],
    ],
    ["70 KB", "request.too_large", () => ({ body: `{"name":"${"n".repeat(70_000)}"}` }), []],
  ]
  for (const [input, code, question, fields] of refusals)
    test(`${input}: ${errorCatalogue[code].status}`, async () => {
      const answer = await refused(
        code,
        () => ask(service, "POST /v1/units", { as: maker.key, ...question() }),
        fields,
      )
      if (code === "validation.failed" && fields.length === 0) expect(answer.formErrors).not.toBeEmpty()
    })

  test("70 KB in chunks without Content-Length: 413", () =>
    refused("request.too_large", async () => {
      const chunk = `1000\r\n${"n".repeat(4_096)}\r\n`
      const head = `POST /v1/units HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${maker.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
      return rawAnswer(await sendRaw(service, `${head}${chunk.repeat(18)}0\r\n\r\n`))
    }))

  test("a byte order mark: accepted", async () => {
    const { id } = await activeCollection(service.behind, maker.caller)
    const body = bytes(`\ufeff${JSON.stringify({ collection_id: id })}`)
    expect((await ask(service, "POST /v1/units", { as: maker.key, body })).status).toBe(201)
  })

  for (const chain_id of ['"60"', "60.5", "1e400", "true", "0", "-1"])
    test(`${chain_id} where an integer is expected: 400 on the field`, () =>
      refused(
        "validation.failed",
        () =>
          ask(service, "POST /v1/collections", {
            as: maker.key,
            body: `{"name":"x","chain_id":${chain_id}}`,
          }),
        ["chain_id"],
      ))

  function unit(fields: Record<string, unknown>): Question {
    return { body: { collection_id: newId(), ...fields } }
  }

  function typed(type: string, body: string): Question {
    return { body, headers: { "content-type": type } }
  }

  function nested(levels: number): unknown {
    return levels === 0 ? 1 : { inner: nested(levels - 1) }
  }
})

describe("queries and pagination", () => {
  const refusals: [query: string, field: string, list?: string][] = [
    ...["0", "101", "-1", "1e1", "0x10", "+10", "10.0", "", "%2010"].map(
      (text) => [`limit=${text}`, "limit"] as [string, string],
    ),
    ["limit[]=5", "limit[]"],
    ["limit=5&limit=6", "limit"],
    ["foo=1", "foo"],
    ["cursor=garbage", "cursor"],
    ["cursor=", "cursor"],
    ["external_id=", "external_id"],
    [`external_id=${"n".repeat(257)}`, "external_id"],
    ...["1", "TRUE", "yes", ""].map(
      (text) => [`is_test=${text}`, "is_test", "taps"] as [string, string, string],
    ),
    ["is_test=1", "is_test", "chips"],
    ["chip_id=12", "chip_id", "taps"],
    ["unit_id=12", "unit_id", "taps"],
    ["created_after=2026-02-01T00:00:00Z&created_before=2026-01-01T00:00:00Z", "created_before", "taps"],
    ["created_after=yesterday", "created_after", "taps"],
    ["created_after=2026-02-30T00:00:00Z", "created_after", "taps"],
    ["created_before=99999-01-01T00:00:00Z", "created_before", "taps"],
    ["created_before=0000-01-01T00:00:00Z", "created_before", "taps"],
    ["created_before=2026-01-01T00:00:00%2B01:00", "created_before", "taps"],
  ]
  for (const [query, field, list = "units"] of refusals)
    test(`${list}?${query.slice(0, 60)}: 400 on ${field}`, () =>
      refused("validation.failed", () => ask(service, `GET /v1/${list}?${query}`, { as: maker.key }), [
        field,
      ]))

  test("a query parameter on an operation that has none: 400", () =>
    refused("validation.failed", () => ask(service, "GET /v1/settings?a=1", { as: maker.key }), ["a"]))

  test("a cursor that is truncated or belongs to another list, organization or filter: 400 on cursor", async () => {
    for (const customer of [maker, other])
      for (let made = 0; made < 2; made++) await pairedTestChip(service.behind, customer.caller)
    const first = await ask(service, "GET /v1/chips?limit=1&is_test=true", { as: maker.key })
    const { next_cursor } = first.body.pagination as { next_cursor: string }
    const on = (path: string, cursor = next_cursor, as = maker.key) =>
      refused("validation.failed", () => ask(service, `GET ${path}cursor=${cursor}`, { as }), ["cursor"])
    expect(
      (await ask(service, `GET /v1/chips?is_test=true&cursor=${next_cursor}`, { as: maker.key })).status,
    ).toBe(200)
    await on("/v1/chips?is_test=true&", next_cursor.slice(0, -2))
    await on("/v1/chips?is_test=true&", `${next_cursor}AA`)
    await on("/v1/chips?")
    await on("/v1/chips?is_test=false&")
    await on("/v1/units?")
    await on("/v1/chips?is_test=true&", next_cursor, other.key)
  })

  test("a cursor whose row was deleted: the list continues after it", async () => {
    const customer = await createCustomer(service)
    const collection = await activeCollection(service.behind, customer.caller)
    const ids: string[] = []
    for (let made = 0; made < 3; made++)
      ids.unshift((await newUnit(service.behind, customer.caller, collection)).id)
    const first = await ask(service, "GET /v1/units?limit=2", { as: customer.key })
    const { next_cursor } = first.body.pagination as { next_cursor: string }
    await service.behind.turn(({ tx }) => tx.delete(tables.units).where(eq(tables.units.id, String(ids[1]))))
    const rest = await ask(service, `GET /v1/units?cursor=${next_cursor}`, { as: customer.key })
    expect((rest.body.units as { id: string }[]).map(({ id }) => id)).toEqual(ids.slice(2))
  })

  test("a filter by another organization's unit: an empty list", async () => {
    const answer = await ask(service, `GET /v1/taps?unit_id=${stranger.unit_id}`, { as: maker.key })
    expect([answer.status, answer.body.taps]).toEqual([200, []])
  })
})

describe("taps and chips", () => {
  const forms: [field: string, value: unknown][] = [
    ["e", someE.toLowerCase()],
    ["e", someE.slice(1)],
    ["e", `${someE}0`],
    ["e", `${someE.slice(1)}G`],
    ["c", "0123456789abcdef"],
    ["c", "0123456789ABCDE"],
    ["ttl", 59],
    ["ttl", 3_601],
    ["ttl", 600.5],
    ["ttl", "600"],
    ["dry_run", "true"],
    ["chip_id", "04A1"],
  ]
  for (const [field, value] of forms)
    test(`${field} of ${JSON.stringify(value)}: 400 on ${field}`, () =>
      refused(
        "validation.failed",
        () =>
          ask(service, "POST /v1/taps", {
            as: maker.key,
            body: { chip_id: visitor.chip_id, e: someE, [field]: value },
          }),
        [field],
      ))

  test("a value of e that the chip did not produce: 422", async () => {
    const foreign = (
      await ask(service, "POST /v1/test-helpers/taps", { as: other.key, body: { chip_id: stranger.chip_id } })
    ).body.e
    for (const e of [someE, foreign])
      await refused("chip.invalid_e_value", () =>
        ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id: visitor.chip_id, e } }),
      )
  })

  test("a verification code that the chip did not produce: 422", async () => {
    const body = { chip_id: visitor.chip_id, e: await emit(), c: "0123456789ABCDEF" }
    await refused("chip.invalid_e_value", () => ask(service, "POST /v1/taps", { as: maker.key, body }))
  })

  test("a used or older value of e: 409, also in a dry run", async () => {
    const old = await emit()
    const { e } = await tapWithValue()
    for (const used of [e, old])
      for (const dry_run of [false, true])
        await refused("chip.already_scanned", () =>
          ask(service, "POST /v1/taps", {
            as: maker.key,
            body: { chip_id: visitor.chip_id, e: used, dry_run },
          }),
        )
  })

  test("two concurrent taps with one value of e: one is recorded", async () => {
    const body = { chip_id: visitor.chip_id, e: await emit() }
    const answers = await Promise.all(
      [1, 2].map(() => ask(service, "POST /v1/taps", { as: maker.key, body })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
  })

  test("a tap repeated with its idempotency key: the same response, including the session token", async () => {
    const body = { chip_id: visitor.chip_id, e: await emit() }
    const question = { as: maker.key, body, headers: { "idempotency-key": newId() } }
    const first = await ask(service, "POST /v1/taps", question)
    const again = await nothingHappens(() => ask(service, "POST /v1/taps", question))
    expect([again.status, again.text]).toEqual([201, first.text])
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"))
  })

  test("an unknown chip, or one of another organization: the same 404", async () => {
    const answers = await Promise.all(
      ["00000000AA", stranger.chip_id].map((chip_id) =>
        refused("chip.not_found", () =>
          ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id, e: someE } }),
        ),
      ),
    )
    const [one, two] = answers.map(({ text }) => text.replace(/req_[0-9a-f-]+/g, ""))
    expect(one).toBe(String(two))
  })

  test("an authentic chip without a unit: 404 on the unit", async () => {
    const { chip_id, tag } = await importedChip(service.behind, maker.caller)
    await refused("unit.not_found", () =>
      ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id, ...emitSun(tag, 1) } }),
    )
  })

  test("a test tap of a real chip: 422", async () => {
    const { chip_id } = await importedChip(service.behind, maker.caller)
    await refused("chip.not_a_test_chip", () =>
      ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } }),
    )
  })

  test("a chip ID in lower case: accepted, and returned in upper case", async () => {
    const { id } = await newUnit(
      service.behind,
      maker.caller,
      await activeCollection(service.behind, maker.caller),
    )
    const { chip_id, tag } = await importedChip(service.behind, maker.caller)
    const body = { unit_id: id, chip_id: chip_id.toLowerCase(), ...emitSun(tag, 1) }
    const answer = await ask(service, "POST /v1/chips", { as: maker.key, body })
    expect([answer.status, answer.body.chip_id]).toEqual([201, chip_id])
  })

  const variants: [input: string, body: Record<string, unknown>, field: string][] = [
    ["is_test: false without a chip", { is_test: false }, "is_test"],
    ["a test chip with a value of e", { is_test: true, e: someE }, "e"],
    ["a test chip with a chip ID", { is_test: true, chip_id: "04A1B2C3D4" }, "chip_id"],
    ["an encoded chip without a value of e", { chip_id: "04A1B2C3D4" }, "e"],
  ]
  for (const [input, body, field] of variants)
    test(`${input}: 400 on ${field}`, async () => {
      const unit_id = visitor.unit_id
      const answer = await nothingHappens(() =>
        ask(service, "POST /v1/chips", { as: maker.key, body: { unit_id, ...body } }),
      )
      expectRefusal(answer, "validation.failed")
      expect(answer.fields).toContain(field)
    })

  test("a unit or chip that is already paired: 409", async () => {
    await refused("chip.already_paired", () =>
      ask(service, "POST /v1/chips", { as: maker.key, body: { unit_id: visitor.unit_id, is_test: true } }),
    )
    const collection = await activeCollection(service.behind, maker.caller)
    const units = [1, 2].map(() => newUnit(service.behind, maker.caller, collection))
    const [one, two] = await Promise.all(units)
    const { chip_id, tag } = await importedChip(service.behind, maker.caller)
    const pair = (unit_id: string | undefined, counter: number) =>
      ask(service, "POST /v1/chips", { as: maker.key, body: { unit_id, chip_id, ...emitSun(tag, counter) } })
    expect((await pair(one?.id, 1)).status).toBe(201)
    await refused("chip.already_paired", () => pair(two?.id, 2))
  })

  test("a unit whose collection is not active: 409", async () => {
    const made = await ask(service, "POST /v1/collections", { as: maker.key, body: { name: "Slow" } })
    const body = { collection_id: made.body.id }
    const { body: made2 } = await ask(service, "POST /v1/units", { as: maker.key, body })
    await refused("collection.not_active", () =>
      ask(service, "POST /v1/chips", { as: maker.key, body: { unit_id: made2.id, is_test: true } }),
    )
  })

  for (const size of [0, 101])
    test(`a bulk request of ${size}: 400 on chips`, () =>
      refused(
        "validation.failed",
        () =>
          ask(service, "POST /v1/chips/bulk", {
            as: maker.key,
            body: { chips: Array.from({ length: size }, () => ({ unit_id: newId(), is_test: true })) },
          }),
        ["chips"],
      ))

  test("a bulk request across two collections: 422", async () => {
    const units = [1, 2].map(async () =>
      newUnit(service.behind, maker.caller, await activeCollection(service.behind, maker.caller)),
    )
    const chips = (await Promise.all(units)).map(({ id }) => ({ unit_id: id, is_test: true }))
    await refused("chip.bulk_mixed_collections", () =>
      ask(service, "POST /v1/chips/bulk", { as: maker.key, body: { chips } }),
    )
  })

  test("a bulk request while an earlier one is still being issued: 409, retryable", async () => {
    const collection = await activeCollection(service.behind, maker.caller)
    const bulk = async () => {
      const { id } = await newUnit(service.behind, maker.caller, collection)
      return { as: maker.key, body: { chips: [{ unit_id: id, is_test: true }] } }
    }
    expect((await ask(service, "POST /v1/chips/bulk", await bulk())).status).toBe(201)
    const second = await bulk()
    const answer = await refused("chip.bulk_pending", () => ask(service, "POST /v1/chips/bulk", second))
    expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
  })
})

describe("units, collections and settings", () => {
  const notFound: [path: string, code: ErrorCode][] = [
    ["/v1/units/1", "unit.not_found"],
    ["/v1/collections/not-a-uuid", "collection.not_found"],
    [`/v1/units/${"1".repeat(36)}`, "unit.not_found"],
  ]
  for (const [path, code] of notFound)
    test(`GET ${path}: the 404 of that resource`, () =>
      refused(code, () => ask(service, `GET ${path}`, { as: maker.key })))

  test("a claim, transfer or chip replacement ID that is not a UUID: the 404 of that resource", async () => {
    const of = (path: string) => ask(service, `GET /v1/units/${visitor.unit_id}/${path}/x`, { as: maker.key })
    await refused("claim.not_found", () => of("claims"))
    await refused("transfer.not_found", () => of("transfers"))
    await refused("chip_replacement.not_found", () => of("chip-replacements"))
  })

  test("a UUID in upper case: accepted", async () => {
    const answer = await ask(service, `GET /v1/units/${visitor.unit_id.toUpperCase()}`, { as: maker.key })
    expect([answer.status, answer.body.id]).toEqual([200, visitor.unit_id])
  })

  test("an external_id that the organization already uses: 409; another organization may use it", async () => {
    for (const customer of [maker, other]) {
      const collection_id = (await activeCollection(service.behind, customer.caller)).id
      const create = () =>
        ask(service, "POST /v1/units", { as: customer.key, body: { collection_id, external_id: "serial-1" } })
      expect((await create()).status).toBe(201)
      await refused("unit.already_exists", create)
      const collection = { as: customer.key, body: { name: "Autumn", external_id: "autumn" } }
      expect((await ask(service, "POST /v1/collections", collection)).status).toBe(201)
      await refused("collection.already_exists", () => ask(service, "POST /v1/collections", collection))
    }
  })

  const redirects = [
    "javascript:alert(1)",
    "data:text/html,x",
    "ftp://brand.test",
    "http://brand.test",
    "https://u:p@brand.test",
    "https://brand.test\\x",
    "https://brand.test/\n",
    "https://brand.test/a b",
    "//brand.test",
    "https:brand.test",
    `https://brand.test/${"x".repeat(2_048)}`,
    "",
  ]
  for (const redirect_url of redirects)
    test(`a redirect to ${JSON.stringify(redirect_url.slice(0, 40))}: 400 on redirect_url`, () =>
      refused(
        "validation.failed",
        () => ask(service, `PATCH /v1/units/${visitor.unit_id}`, { as: maker.key, body: { redirect_url } }),
        ["redirect_url"],
      ))

  test("an update without changes: 400", async () => {
    const patch = (path: string) => ask(service, `PATCH ${path}` as "PATCH /", { as: maker.key, body: {} })
    await refused("validation.failed", () => patch("/v1/settings"), ["default_redirect_url"])
    const { id } = await activeCollection(service.behind, maker.caller)
    await refused("validation.failed", () => patch(`/v1/collections/${id}`), ["redirect_url"])
    await refused("validation.failed", () => patch(`/v1/units/${visitor.unit_id}`))
  })

  const collections: [input: string, body: Record<string, unknown>, field: string][] = [
    ["a chain that is not allowed", { name: "x", chain_id: 1 }, "chain_id"],
    ["an empty symbol", { name: "x", symbol: "" }, "symbol"],
    ["a symbol of five characters", { name: "x", symbol: "ABCDE" }, "symbol"],
    ["no name", {}, "name"],
    ["a name of 257 characters", { name: "n".repeat(257) }, "name"],
  ]
  for (const [input, body, field] of collections)
    test(`${input}: 400 on ${field}`, () =>
      refused("validation.failed", () => ask(service, "POST /v1/collections", { as: maker.key, body }), [
        field,
      ]))

  test("no chain_id and no default chain: 400 on chain_id", async () => {
    const { key } = await createCustomer(service, { default_chain_id: null })
    await refused(
      "validation.failed",
      () => ask(service, "POST /v1/collections", { as: key, body: { name: "x" } }),
      ["chain_id"],
    )
  })

  const manyOrigins = Array.from({ length: 51 }, (_, index) => `https://s${index}.brand.test`)
  const refusedOrigins = [
    ...["", "*", "https://*", "https://*.", "https://*.com", "https://*.co.uk", "https://*.*.example.com"],
    ...["https://a*.example.com", "https://*example.com", "https://example.*", "https://example.com/p"],
    ...[
      "https://example.com?x",
      "https://example.com#f",
      "https://u:p@example.com",
      "https://example.com:*:*",
    ],
    ...["https://*.example.com:*", "http://localhost:*x", "ftp://example.com", "null", "file://"],
    ...[
      "javascript:alert(1)",
      "//example.com",
      "example.com",
      "https://example.com.",
      "https://exa mple.com",
    ],
    ...["https://exämple.com", "https://example.com:99999", "https://-a.com", "https://a..b.com"],
    ...[
      "https://*.127.0.0.1",
      "https://*.localhost",
      "https://2130706433",
      "https://127.1",
      "https://0x7f.0.0.1",
    ],
    ...["https://*.github.io", "https://example.com\\", "https://ex%61mple.com", "https://example.com//"],
    ...["https://[::1", `https://${"a".repeat(244)}.com`],
  ]
  for (const entry of refusedOrigins)
    test(`the origin ${JSON.stringify(entry.slice(0, 40))}: 400`, () =>
      refused("validation.failed", () => putOrigins([entry]), ["cors_origins"]))

  test("51 origins: 400", () => refused("validation.failed", () => putOrigins(manyOrigins), ["cors_origins"]))

  test("origins that are equal in canonical form: kept once, in order", async () => {
    const { key } = await createCustomer(service)
    const cors_origins = ["https://B.test:443/", "http://localhost:*", "https://b.test", "http://a.test:80"]
    const answer = await ask(service, "PUT /v1/settings/cors-origins", { as: key, body: { cors_origins } })
    expect([answer.status, answer.body]).toEqual([
      200,
      { cors_origins: ["https://b.test", "http://localhost:*", "http://a.test"] },
    ])
  })

  function putOrigins(cors_origins: string[]): Promise<Answer> {
    return ask(service, "PUT /v1/settings/cors-origins", { as: maker.key, body: { cors_origins } })
  }
})

describe("ownership", () => {
  const claim = (of: Visitor, body: Record<string, unknown> = { recipient: alice }) =>
    ask(service, `POST /v1/units/${of.unit_id}/claims`, { as: of.token, body })

  const recipients = [
    "0x12",
    alice.toLowerCase().replace("0x7", "0X7"),
    alice.replace("C5", "c5"),
    `0x${"0".repeat(40)}`,
    "",
  ]
  for (const recipient of recipients)
    test(`the recipient ${JSON.stringify(recipient)}: 400`, () =>
      refused("validation.failed", () => claim(visitor, { recipient }), ["recipient"]))

  test("the collection's own contract as recipient: 400", async () => {
    const unit = await ask(service, `GET /v1/units/${visitor.unit_id}`, { as: maker.key })
    const { contract } = unit.body.collection as { contract: { address: string } }
    await refused("validation.failed", () => claim(visitor, { recipient: contract.address }), ["recipient"])
  })

  test("a claim while another is open: 409, retryable", async () => {
    const fresh = await createVisitor(service, maker)
    expect((await claim(fresh)).status).toBe(201)
    const answer = await refused("claim.in_progress", () => claim(fresh, { recipient: bob }))
    expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
  })

  test("a claim for the current owner: 409", async () => {
    service.chain.owner = alice
    try {
      await refused("claim.already_to_recipient", () => claim(visitor))
      await refused("claim.already_claimed", () => claim(visitor, { recipient: bob }))
    } finally {
      service.chain.owner = null
    }
  })

  test("a claim while the chain is unreachable: 409", async () => {
    service.chain.isReachable = false
    try {
      await refused("claim.owner_unknown", () => claim(visitor))
    } finally {
      service.chain.isReachable = true
    }
  })

  test("a claim or transfer before the token is active: 409", async () => {
    const { chip_id, unit } = await pairedTestChip(service.behind, maker.caller)
    const e = await emit(chip_id)
    const { body } = await ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id, e } })
    const { token } = body.session_token as { token: string }
    for (const what of ["claims", "transfers"])
      await refused("unit.issuance_pending", () =>
        ask(service, `POST /v1/units/${unit?.id}/${what}`, { as: token, body: { recipient: alice } }),
      )
  })

  test("a chip replacement of a unit that was never issued: 409", async () => {
    const { id } = await newUnit(
      service.behind,
      maker.caller,
      await activeCollection(service.behind, maker.caller),
    )
    await refused("unit.not_minted", () => replace(id))
  })

  test("a transfer before the claim: 409", () =>
    refused("transfer.owner_unknown", () =>
      ask(service, `POST /v1/units/${visitor.unit_id}/transfers`, {
        as: visitor.token,
        body: { recipient: bob },
      }),
    ))

  test("a chip replacement after the claim: 409, not retryable", async () => {
    const fresh = await createVisitor(service, maker)
    const { body } = await claim(fresh)
    await settle(service.behind, String(body.id), { transaction_hash: `0x${"03".repeat(32)}` })
    await refused("chip_replacement.locked", () => replace(fresh.unit_id))
  })

  test("a chip replacement while another is open: 409, retryable", async () => {
    const fresh = await createVisitor(service, maker)
    expect((await replace(fresh.unit_id)).status).toBe(201)
    const answer = await refused("chip_replacement.in_progress", () => replace(fresh.unit_id))
    expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
    await refused("chip_replacement.in_progress", () => claim(fresh))
  })

  test("a chip replacement with a paired chip or the current one: 409", async () => {
    const paired = await createVisitor(service, maker)
    for (const chip_id of [paired.chip_id, visitor.chip_id])
      await refused("chip.already_paired", () => replace(visitor.unit_id, { chip_id, e: someE }))
  })

  function replace(unitId: string, body: Record<string, unknown> = { is_test: true }): Promise<Answer> {
    return ask(service, `POST /v1/units/${unitId}/chip-replacements`, { as: maker.key, body })
  }
})

describe("idempotency", () => {
  const create = (key: string | undefined, name: string, as = maker.key) =>
    ask(service, "POST /v1/collections", {
      as,
      body: { name },
      ...(key !== undefined && { headers: { "idempotency-key": key } }),
    })

  for (const key of ["", "a".repeat(256), "a b", "a,b", '""'])
    test(`the key ${JSON.stringify(key.slice(0, 20))}: 400`, () =>
      refused("validation.failed", () => create(key, "x")))

  for (const lines of [["Idempotency-Key: é"], ["Idempotency-Key: a", "Idempotency-Key: b"]])
    test(`the header ${JSON.stringify(lines)}: 400`, () =>
      refused("validation.failed", async () => {
        const head = [
          "POST /v1/collections HTTP/1.1",
          "Host: x",
          `Authorization: Bearer ${maker.key}`,
          ...lines,
        ]
        const body = '{"name":"x"}'
        const text = `${head.join("\r\n")}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
        return rawAnswer(await sendRaw(service, text))
      }))

  test("the same request again: the same response, marked as replayed", async () => {
    const key = newId()
    const first = await create(key, "Same")
    const again = await nothingHappens(() => create(key, "Same"))
    expect([again.status, again.text, again.headers.get("location")]).toEqual([
      first.status,
      first.text,
      first.headers.get("location"),
    ])
    expect([first, again].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"])
  })

  test("the key in quotes equals the key without quotes", async () => {
    const key = newId()
    const first = await create(key, "Quoted")
    expect((await create(`"${key}"`, "Quoted")).text).toBe(first.text)
  })

  test("the same key with another body or operation: 409", async () => {
    const key = newId()
    await create(key, "One")
    await refused("idempotency.key_conflict", () => create(key, "Two"))
    const { id } = await activeCollection(service.behind, maker.caller)
    await refused("idempotency.key_conflict", () =>
      ask(service, "POST /v1/units", {
        as: maker.key,
        body: { collection_id: id },
        headers: { "idempotency-key": key },
      }),
    )
  })

  test("the same key with another claim: 409 on the key, before the state of the unit is checked", async () => {
    const fresh = await createVisitor(service, maker)
    const claim = (recipient: string) =>
      ask(service, `POST /v1/units/${fresh.unit_id}/claims`, {
        as: fresh.token,
        body: { recipient },
        headers: { "idempotency-key": "claim" },
      })
    expect((await claim(alice)).status).toBe(201)
    await refused("idempotency.key_conflict", () => claim(bob))
  })

  test("the same key after an error response: the request is executed", async () => {
    const key = newId()
    await refused("validation.failed", () => create(key, ""))
    expect((await create(key, "Now right")).status).toBe(201)
  })

  test("the same key from another organization or session: a separate request", async () => {
    const key = newId()
    const [one, two] = [await create(key, "Mine"), await create(key, "Theirs", other.key)]
    expect([one.status, two.status]).toEqual([201, 201])
    const fresh = await createVisitor(service, maker)
    const claimed = await ask(service, `POST /v1/units/${fresh.unit_id}/claims`, {
      as: fresh.token,
      body: { recipient: alice },
      headers: { "idempotency-key": key },
    })
    expect(claimed.status).toBe(201)
  })

  test("a key where none is used: ignored, even if malformed", async () => {
    const headers = { "idempotency-key": "not, a key" }
    expect((await ask(service, "GET /v1/settings", { as: maker.key, headers })).status).toBe(200)
    const body = { default_redirect_url: null }
    expect((await ask(service, "PATCH /v1/settings", { as: maker.key, body, headers })).status).toBe(200)
  })

  test("the same key a day later: a new request, whether the old response was deleted or not", async () => {
    const key = newId()
    const first = await create(key, "Daily")
    service.advance(24 * 60 * 60 * 1000)
    const second = await create(key, "Daily")
    service.advance(24 * 60 * 60 * 1000)
    await reapExpired(service.context)
    expect((await service.context.db.read.select().from(tables.idempotencyKeys)).length).toBe(0)
    const third = await create(key, "Daily")
    expect(new Set([first, second, third].map(({ body }) => body.id)).size).toBe(3)
  })
})

/** Checks that the response is the given error and well-formed, and that the service recorded nothing. */
async function refused(code: ErrorCode, question: () => Promise<Answer>, fields?: string[]): Promise<Answer> {
  const answer = await nothingHappens(question)
  expectRefusal(answer, code)
  if (fields) expect(answer.fields).toEqual(fields)
  return answer
}

function expectRefusal({ status, headers, body, text }: Answer, code: ErrorCode): void {
  const { error } = body as { error: Record<string, unknown> }
  expect([error?.code, status]).toEqual([code, errorCatalogue[code].status])
  const keys = [
    "code",
    "message",
    "request_id",
    "doc_url",
    ...(code === "validation.failed" ? ["details"] : []),
  ]
  expect(Object.keys(body)).toEqual(["error"])
  expect(Object.keys(error).sort()).toEqual(keys.sort())
  expect(error.request_id).toMatch(/^req_[0-9a-f-]{36}$/)
  expect(String(headers.get("x-request-id"))).toBe(String(error.request_id))
  expect(String(error.doc_url)).toEndWith(`/docs/errors/${code}`)
  expect(headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null)
  expect(headers.get("x-content-type-options")).toBe("nosniff")
  for (const secret of [someE, maker.key, visitor.token]) expect(text).not.toContain(secret)
}

async function nothingHappens<T>(work: () => Promise<T>): Promise<T> {
  const before = await recorded()
  const result = await work()
  expect(await recorded()).toEqual(before)
  return result
}

/** Everything that could be recorded: the row count of each table, and the counters of the chips. */
async function recorded() {
  const { read } = service.context.db
  const kinds = [
    ...[tables.units, tables.collections, tables.chips, tables.taps, tables.sessionTokens, tables.claims],
    ...[tables.transfers, tables.chipReplacements, tables.bulkPairings, tables.publishableKeys],
    ...[tables.idempotencyKeys, tables.identityTokenUses, tables.effects, tables.actorEvents],
  ]
  const rows = await Promise.all(kinds.map((kind) => read.select({ rows: sql<number>`count(*)` }).from(kind)))
  const { counter, emitted_counter, scan_count } = tables.chips
  const counters = await read
    .select({ moved: sql<number>`sum(${counter}) + sum(${emitted_counter}) + sum(${scan_count})` })
    .from(tables.chips)
  const settings = await read
    .select({
      redirect: tables.organizations.default_redirect_url,
      origins: tables.organizations.cors_origins,
    })
    .from(tables.organizations)
  const redirects = await read.select({ redirect: tables.units.redirect_url }).from(tables.units)
  return { rows: rows.map(([each]) => Number(each?.rows)), counters, settings, redirects }
}

async function count(table: typeof tables.publishableKeys, { caller }: Customer): Promise<{ rows: number }> {
  const rows = await service.context.db.read
    .select()
    .from(table)
    .where(eq(table.organization_id, caller.organization_id))
  return { rows: rows.length }
}

/** Returns a new value of e from the visitor's chip. */
async function emit(chip_id = visitor.chip_id): Promise<string> {
  const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
  return String(body.e)
}

async function tap(question: Question, fields: Record<string, unknown> = {}): Promise<Answer> {
  const body = { chip_id: visitor.chip_id, e: await emit(), ...fields }
  return await ask(service, "POST /v1/taps", { ...question, body })
}

async function tapWithValue(): Promise<{ e: string }> {
  const e = await emit()
  expect(
    (await ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id: visitor.chip_id, e } })).status,
  ).toBe(201)
  return { e }
}

/** Parses a raw HTTP response. */
function rawAnswer(received: string): Answer {
  const [head = "", text = ""] = received.split("\r\n\r\n", 2)
  const [line = "", ...lines] = head.split("\r\n")
  const headers = new Headers(lines.map((each) => each.split(/: ?(.*)/s).slice(0, 2) as [string, string]))
  const body = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {}
  const { error } = body as {
    error?: { code?: string; details?: { fieldErrors: object; formErrors: string[] } }
  }
  return {
    status: Number(line.split(" ")[1]),
    headers,
    text,
    body,
    code: error?.code ?? null,
    fields: Object.keys(error?.details?.fieldErrors ?? {}),
    formErrors: error?.details?.formErrors ?? [],
  }
}
