import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { examples } from "../../src/api/openapi/examples.ts"
import { DatabaseUnavailable, queriesOver } from "../../src/db/database.ts"
import { canonicalCorsOrigins, entriesFor } from "../../src/resources/settings/cors-entry.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { startBeside } from "../harness/service-beside.ts"

const preflight = {
  "access-control-request-method": "POST",
  "access-control-request-headers": "authorization",
}

let service: HttpService
let maker: Customer
let other: Customer

beforeAll(async () => {
  service = await startService()
  maker = await createCustomer(service)
  other = await createCustomer(service)
  await register(maker, ["https://*.brand.test", "http://localhost:*"])
  await register(other, ["https://other.test"])
})
afterAll(() => service.close())

describe("a preflight", () => {
  for (const origin of [
    "https://shop.brand.test",
    "https://a.b.brand.test",
    "http://localhost:5173",
    "https://other.test",
  ])
    test(`from ${origin}, which is registered, is allowed without a credential`, async () => {
      const { status, headers, text } = await ask(service, "OPTIONS /v1/taps", {
        headers: { origin, ...preflight },
      })
      expect([status, text]).toEqual([204, ""])
      expect(headers.get("access-control-allow-origin")).toBe(origin)
      expect(headers.get("access-control-allow-headers")).toBe("Authorization, Content-Type, Idempotency-Key")
      expect(headers.get("access-control-allow-methods")).toBe("GET, POST, PATCH, PUT, DELETE")
      expect(headers.get("access-control-max-age")).toBe("60")
      expect(headers.has("access-control-allow-credentials")).toBe(false)
      expect(headers.get("vary")).toBe("Origin")
      expect(headers.get("x-request-id")).toMatch(/^req_/)
    })

  const foreign = [
    "https://brand.test",
    "https://evil-brand.test",
    "https://brand.test.evil.com",
    "https://a.brand.test.evil.com",
    "http://a.brand.test",
    "https://a.brand.test:8443",
    "https://a.brand.test.",
    "https://A.brand.test",
    "https://x@a.brand.test",
    "https://.brand.test",
    "https://a.brandxtest",
    "https://localhost:3000",
    "http://localhost.evil.com:3000",
    "http://127.0.0.1:3000",
    "http://sub.localhost:3000",
    "http://localhost:3000@evil.com",
    "null",
    "*",
    "https://nobody.test",
  ]
  for (const origin of foreign)
    test(`from ${origin}, which is not registered, gets no Access-Control-Allow-Origin`, async () => {
      const { status, headers } = await ask(service, "OPTIONS /v1/taps", {
        headers: { origin, ...preflight },
      })
      expect(status).toBe(204)
      expect(headers.has("access-control-allow-origin")).toBe(false)
    })

  test("for token metadata is allowed from any origin", async () => {
    const origin = "https://nobody.test"
    const asked = { headers: { origin, ...preflight } }
    const { status, headers } = await ask(service, `OPTIONS /metadata/31337/0x${"00".repeat(20)}/1`, asked)
    expect([status, headers.get("access-control-allow-origin")]).toEqual([204, origin])
  })

  test("has Access-Control-Request-Method: any other OPTIONS request gets 405", async () => {
    const { status, headers } = await ask(service, "OPTIONS /v1/taps", {
      headers: { origin: "https://other.test" },
    })
    expect([status, headers.get("allow")]).toEqual([405, "POST, GET"])
  })
})

describe("a request from a page", () => {
  test("on the caller's own allowlist can be read, including the exposed headers", async () => {
    const origin = "https://shop.brand.test"
    const { token } = await createVisitor(service, maker)
    const { status, headers } = await ask(service, "GET /v1/session-tokens/current", {
      as: token,
      headers: { origin },
    })
    expect([status, headers.get("access-control-allow-origin")]).toEqual([200, origin])
    expect(headers.get("access-control-expose-headers")).toBe(
      "X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Idempotent-Replayed",
    )
    expect(headers.has("access-control-allow-credentials")).toBe(false)
  })

  test("on another organization's allowlist is rejected, and the page cannot read why", async () => {
    const { token } = await createVisitor(service, maker)
    const headers = { origin: "https://other.test" }
    const answer = await ask(service, "GET /v1/session-tokens/current", { as: token, headers })
    expect([answer.code, answer.headers.has("access-control-allow-origin")]).toEqual([
      "auth.forbidden",
      false,
    ])
  })

  test("with an API key is not rejected, but only pages on the organization's allowlist can read the response", async () => {
    const allowed = async (origin: string) => {
      const answer = await ask(service, "GET /v1/settings", { as: maker.key, headers: { origin } })
      return [answer.status, answer.headers.get("access-control-allow-origin")]
    }
    expect(await allowed("http://localhost:8080")).toEqual([200, "http://localhost:8080"])
    expect(await allowed("https://other.test")).toEqual([200, null])
  })

  for (const [what, question, code] of [
    ["an unknown credential", "GET /v1/units", "auth.unauthorized"],
    ["an unknown path", "GET /v1/nothing", "not_found.resource"],
    ["an unsupported method", "PUT /v1/units", "request.method_not_allowed"],
  ] as const)
    test(`on any allowlist can read that it was rejected for ${what}`, async () => {
      const origin = "https://other.test"
      const answer = await ask(service, question, { headers: { origin } })
      expect([answer.code, answer.headers.get("access-control-allow-origin")]).toEqual([code, origin])
      expect(answer.headers.get("access-control-expose-headers")).toContain("X-Request-Id")
    })

  test("without Origin gets no CORS permission, and Vary: Origin for caches", async () => {
    const { headers } = await ask(service, "GET /health")
    expect([headers.get("vary"), headers.has("access-control-allow-origin")]).toEqual(["Origin", false])
  })
})

describe("a process that has not yet been able to load the allowlists", () => {
  test("returns 503 to pages instead of rejecting them, and accepts them once the lists are loaded", async () => {
    const { db } = service.context
    let isAway = true
    const read = queriesOver((statement, params) => {
      if (isAway && statement.text.includes("cors_origins"))
        throw new DatabaseUnavailable("as during a fail-over")
      return db.read.ask(statement, params)
    })
    const started = startBeside({ ...service, context: { ...service.context, db: { ...db, read } } }, {})
    const { token } = await createVisitor(service, maker)
    const headers = { origin: "https://shop.brand.test" }
    const current = () => ask(started, "GET /v1/session-tokens/current", { as: token, headers })
    const refused = await current()
    expect([refused.status, refused.code, refused.headers.get("retry-after")]).toEqual([
      503,
      "internal.error",
      "5",
    ])
    isAway = false
    expect((await current()).status).toBe(200)
    await started.close()
  })
})

describe("a change of the allowlist", () => {
  const allows = async (origin: string) =>
    (await ask(service, "OPTIONS /v1/taps", { headers: { origin, ...preflight } })).headers.has(
      "access-control-allow-origin",
    )

  test("takes effect at once in the process that made it", async () => {
    const customer = await createCustomer(service)
    await register(customer, ["https://new.test"])
    expect(await allows("https://new.test")).toBe(true)
    await register(customer, [])
    expect(await allows("https://new.test")).toBe(false)
    const { body } = await ask(service, "GET /v1/settings/cors-origins", { as: customer.key })
    expect(body).toEqual({ cors_origins: [] })
  })

  test("takes effect in other processes after 15 seconds", async () => {
    expect(await allows("https://elsewhere.test")).toBe(false)
    await createCustomer(service, { cors_origins: ["https://elsewhere.test"] })
    service.advance(14_999)
    expect(await allows("https://elsewhere.test")).toBe(false)
    service.advance(1)
    expect(await allows("https://elsewhere.test")).toBe(true)
  })

  test("takes effect in other processes after 15 seconds even if the clock was set back meanwhile", async () => {
    expect(await allows("https://later.test")).toBe(false)
    await createCustomer(service, { cors_origins: ["https://later.test"] })
    service.advance(-10_000)
    service.advance(15_000)
    expect(await allows("https://later.test")).toBe(true)
  })
})

describe("an allowlist entry", () => {
  const forms: [typed: string, stored: string][] = [
    ["https://example.com/", "https://example.com"],
    ["HTTPS://Shop.Example.COM:443", "https://shop.example.com"],
    ["http://example.com:80", "http://example.com"],
    ["http://example.com:443", "http://example.com:443"],
    ["https://xn--exmple-cua.com", "https://xn--exmple-cua.com"],
    ["https://*.Example.com:443", "https://*.example.com"],
    ["https://*.example.com:8443", "https://*.example.com:8443"],
    ["https://*.example.co.uk", "https://*.example.co.uk"],
    ["http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"],
    ["http://127.0.0.1:*", "http://127.0.0.1:*"],
  ]
  for (const [typed, stored] of forms)
    test(`${typed} is stored as ${stored}, which is its own canonical form`, () => {
      expect(canonicalCorsOrigins([typed])).toEqual([stored])
      expect(canonicalCorsOrigins([stored])).toEqual([stored])
    })

  test("from the documentation is already in canonical form", () => {
    const { cors_origins } = examples.replaceCorsOrigins.request
    expect(canonicalCorsOrigins(cors_origins)).toEqual(cors_origins)
  })

  for (const domain of [
    "amazonaws.com",
    "azure.com",
    "cloudapp.azure.com",
    "westus2.cloudapp.azure.com",
    "windows.net",
    "on.aws",
    "platform.sh",
  ])
    test(`https://*.${domain} is rejected: strangers can register names below it`, () => {
      expect(() => canonicalCorsOrigins([`https://*.${domain}`])).toThrow()
    })

  test("with a wildcard below a single owner's domain is accepted, and matches no name under a shared suffix", () => {
    expect(canonicalCorsOrigins(["https://*.brand.s3.amazonaws.com"])).toEqual([
      "https://*.brand.s3.amazonaws.com",
    ])
    expect(entriesFor("https://brand.s3.amazonaws.com")).not.toContain("https://*.amazonaws.com")
    expect(entriesFor("https://a.brand.s3.amazonaws.com")).toContain("https://*.brand.s3.amazonaws.com")
  })

  test("matches the longest host that there can be, and a longer one is not even compared", () => {
    const longest = `https://${"a.".repeat(121)}brand.test:65535`
    expect(longest.length).toBe("https://".length + 252 + ":65535".length)
    expect(entriesFor(longest)).toContain("https://*.brand.test:65535")
    expect(entriesFor(longest.replace("brand", "a.brand"))).toEqual([])
  })

  test("that is an exact origin matches that origin only", () => {
    const label = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
    const origin = fc
      .tuple(
        fc.constantFrom("http", "https"),
        fc.array(label, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 65_535 }),
      )
      .map(([scheme, labels, port]) => new URL(`${scheme}://${labels.join(".")}:${port}`).origin)
    fc.assert(
      fc.property(origin, origin, (entry, asked) => {
        expect(canonicalCorsOrigins([entry])).toEqual([entry])
        expect(entriesFor(asked).includes(entry)).toBe(asked === entry)
      }),
      { numRuns: 500 },
    )
  })

  test("is never stored in a form that matches no page", () => {
    const parts = [
      "https://",
      "http://",
      "*.",
      "*",
      "a.",
      "example",
      ".com",
      ":",
      "443",
      "80",
      "8443",
      "/",
      "[::1]",
      "-",
      "1.2.3.4",
      ".co.uk",
      "@",
      "%",
      "\\",
    ]
    const text = fc.array(fc.constantFrom(...parts), { maxLength: 6 }).map((chosen) => chosen.join(""))
    fc.assert(
      fc.property(text, (typed) => {
        let stored: string | undefined
        try {
          stored = canonicalCorsOrigins([typed])[0]
        } catch {
          return
        }
        const page = String(stored).replace("://*.", "://www.").replace(":*", ":3000")
        expect(entriesFor(page)).toContain(String(stored))
      }),
      { numRuns: 5_000 },
    )
  })
})

async function register({ key }: Customer, cors_origins: string[]): Promise<void> {
  const answer = await ask(service, "PUT /v1/settings/cors-origins", { as: key, body: { cors_origins } })
  expect([answer.status, answer.body]).toEqual([200, { cors_origins }])
}
