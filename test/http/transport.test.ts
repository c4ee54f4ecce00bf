import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createApp } from "../../src/api/app.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
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

const headOf = (received: string) => received.split("\r\n", 1)[0]
const get = (path: string, host: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n`

describe("every response", () => {
  const answers: [string, () => Promise<Answer>][] = [
    ["to a successful request", () => ask(service, "GET /health")],
    ["to a successful request with a credential", () => ask(service, "GET /v1/units", { as: customer.key })],
    ["to a request without a credential", () => ask(service, "GET /v1/units")],
    ["to a request with an invalid query", () => ask(service, "GET /v1/units?limit=0", { as: customer.key })],
    [
      "to a request with a malformed body",
      () => ask(service, "POST /v1/units", { as: customer.key, body: "{" }),
    ],
    ["to a request for an unknown path", () => ask(service, "GET /nowhere")],
    ["to a request with an unsupported method", () => ask(service, "PUT /v1/units")],
  ]

  test.each(answers)("%s has the request ID in its header", async (_name, answer) => {
    expect((await answer()).headers.get("x-request-id")).toMatch(/^req_[0-9a-f-]{36}$/)
  })

  test.each(answers)("%s carries the security headers", async (_name, answer) => {
    const { headers } = await answer()
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("referrer-policy")).toBe("no-referrer")
    expect(headers.get("vary")).toContain("Origin")
  })

  test.each(answers.slice(2))(
    "%s has the error envelope, with the same request ID as the header",
    async (_name, answer) => {
      const { headers, body, status } = await answer()
      const { error } = body as { error: Record<string, string> }
      expect(status).toBeGreaterThanOrEqual(400)
      expect(headers.get("content-type")).toBe("application/json")
      expect(String(error.request_id)).toBe(String(headers.get("x-request-id")))
      expect(String(error.doc_url)).toEndWith(`/errors/${error.code}`)
      expect(error.message).not.toBe("")
    },
  )
})

test("a request ID from the client is ignored", async () => {
  const headers = { "x-request-id": "req_evil" }
  expect((await ask(service, "GET /health", { headers })).headers.get("x-request-id")).not.toBe("req_evil")
})

describe("a path", () => {
  test.each([
    ["GET /nowhere", 404],
    ["GET //v1/units", 404],
    ["GET /V1/units", 404],
    ["GET /v1/units/", 404],
    ["GET /v1", 404],
    ["GET /v1/units/a/b", 404],
  ] as const)("%s gets %i not_found.resource before the credential is checked", async (question, status) => {
    const [method = "", path = ""] = question.split(" ")
    const received = await sendRaw(service, `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    expect(headOf(received)).toBe(`HTTP/1.1 ${status} Not Found`)
    expect(received).toContain('"not_found.resource"')
  })

  test.each(["a%00b", "%zz", "%E0%A4%A", "a%2Fb"])(
    "with the chip ID %s is rejected on chip_id",
    async (text) => {
      const { status, fields } = await ask(service, `GET /v1/chips/${text}`, { as: customer.key })
      expect({ status, fields }).toEqual({ status: 400, fields: ["chip_id"] })
    },
  )

  test("with a chip ID in lower case finds that chip", async () => {
    const { code } = await ask(service, "GET /v1/chips/abcdef0123", { as: customer.key })
    expect(code).toBe("chip.not_found")
  })

  test.each([
    ["/v1/units/none", "unit.not_found"],
    ["/v1/collections/none", "collection.not_found"],
    ["/v1/units/none/claims/none", "unit.not_found"],
    ["/v1/units/01890000-0000-7000-8000-000000000000/transfers/none", "unit.not_found"],
  ])("%s, with an ID that is not a UUID, gets the same response as an unknown one", async (path, code) => {
    expect((await ask(service, `GET ${path}`, { as: customer.key })).code).toBe(code as never)
  })
})

describe("a method that a path does not support", () => {
  test.each([
    ["PUT /v1/units", "POST, GET"],
    ["DELETE /v1/units", "POST, GET"],
    ["PATCH /v1/taps", "POST, GET"],
    ["POST /v1/units/01890000-0000-7000-8000-000000000000", "GET, PATCH"],
    ["GET /v1/chips/bulk/", null],
    ["PURGE /v1/units", "POST, GET"],
  ] as const)("%s gets 405 with the supported methods", async (question, allowed) => {
    const { status, code, headers } = await ask(service, question)
    expect({ status, code, allow: headers.get("allow") }).toEqual(
      allowed === null
        ? { status: 404, code: "not_found.resource", allow: null }
        : { status: 405, code: "request.method_not_allowed", allow: allowed },
    )
  })

  test("HEAD is not supported under /v1, so it creates no publishable key", async () => {
    const { status, text } = await ask(service, "HEAD /v1/publishable-keys", { as: customer.key })
    expect({ status, text }).toEqual({ status: 405, text: "" })
  })

  test("an unknown HTTP method closes the connection and does nothing else", async () => {
    await sendRaw(service, "FOO /v1/units HTTP/1.1\r\nHost: localhost\r\n\r\n")
    expect((await ask(service, "GET /health")).status).toBe(200)
  })
})

describe("a host", () => {
  test.each(["x", "a/b?c", "u:p@x", "a b", "[::1", "localhost:99999", "a#b"])(
    "of %s gets a normal response",
    async (host) => {
      expect(headOf(await sendRaw(service, `${get("/health", host)}\r\n`))).toBe("HTTP/1.1 200 OK")
      const units = `${get("/v1/units?limit=1", host)}Authorization: Bearer ${customer.key}\r\n\r\n`
      expect(headOf(await sendRaw(service, units))).toBe("HTTP/1.1 200 OK")
      expect(headOf(await sendRaw(service, `${get("/nowhere", host)}\r\n`))).toBe("HTTP/1.1 404 Not Found")
      const wrongMethod = get("/v1/units", host).replace("GET", "PUT")
      expect(headOf(await sendRaw(service, `${wrongMethod}\r\n`))).toBe("HTTP/1.1 405 Method Not Allowed")
    },
  )

  test("that is missing is rejected", async () => {
    expect(headOf(await sendRaw(service, "GET /health HTTP/1.1\r\n\r\n"))).toStartWith("HTTP/1.1 400")
  })
})

describe("an ambiguous request", () => {
  test.each([
    ["with both Content-Length and Transfer-Encoding", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"],
    ["with two Content-Length headers", "Content-Length: 4\r\nContent-Length: 5\r\n"],
    ["with a negative Content-Length", "Content-Length: -4\r\n"],
  ])("%s is rejected", async (_name, headers) => {
    const received = await sendRaw(
      service,
      `POST /v1/units HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n0\r\n\r\n`,
    )
    expect(headOf(received)).toStartWith("HTTP/1.1 400")
  })
})

describe("a body", () => {
  const post = (length: number) =>
    `POST /v1/units HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${customer.key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{"name":"${"x".repeat(70_000)}`

  test.each([100_000, 2_000_000, 5_000_000_000])(
    "of %i bytes is rejected with the service's own error",
    async (length) => {
      const received = await sendRaw(service, post(length))
      expect(headOf(received)).toBe("HTTP/1.1 413 Payload Too Large")
      expect(received).toContain('"code":"request.too_large"')
      expect(received).toMatch(/^x-request-id: req_/im)
    },
  )
})

test("headers of more than 16 KiB are rejected with 431", async () => {
  const received = await sendRaw(
    service,
    `${get("/health", "localhost")}X-Long: ${"x".repeat(20_000)}\r\n\r\n`,
  )
  expect(headOf(received)).toStartWith("HTTP/1.1 431")
})

test("a URL of more than 16 KiB is rejected with 414 or 431", async () => {
  const received = await sendRaw(service, `${get(`/health?${"x".repeat(20_000)}`, "localhost")}\r\n`)
  expect(headOf(received)).toMatch(/^HTTP\/1\.1 4(14|31)/)
})

test("the body of a GET is not read", async () => {
  const received = await sendRaw(
    service,
    `${get("/v1/units", "localhost")}Authorization: Bearer ${customer.key}\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{`,
  )
  expect(headOf(received)).toBe("HTTP/1.1 200 OK")
})

test("an idle connection is kept longer than load balancers keep it, which is 60 seconds", () => {
  expect(createApp(service.context).config.serve?.idleTimeout).toBeGreaterThan(60)
})

test("a request for XML gets JSON", async () => {
  const { headers } = await ask(service, "GET /health", { headers: { accept: "application/xml" } })
  expect(headers.get("content-type")).toBe("application/json")
})

test("Expect: 100-continue gets 100, and then the response", async () => {
  const body = '{"name":""}'
  const received = await sendRaw(
    service,
    `POST /v1/collections HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${customer.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n${body}`,
  )
  expect(received).toStartWith("HTTP/1.1 100 Continue")
  expect(received).toContain("HTTP/1.1 400 Bad Request")
})
