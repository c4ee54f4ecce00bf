import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { routes } from "../../src/api/routes.ts"
import { sessionTokens } from "../../src/db/schema.ts"
import type { CredentialKind } from "../../src/platform/caller.ts"
import { newCredential } from "../../src/platform/credentials.ts"
import { revokeApiKey } from "../../src/resources/api-keys/service.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  sendRaw,
  startService,
  type Visitor,
} from "../harness/api.ts"

let service: HttpService
let customer: Customer
let visitor: Visitor
let publishableKey: string

beforeAll(async () => {
  service = await startService()
  customer = await createCustomer(service)
  visitor = await createVisitor(service, customer)
  publishableKey = await publishableKeyOf(service, customer)
})
afterAll(() => service.close())

const kinds: CredentialKind[] = ["api_key", "session_token", "publishable_key"]
const jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
const tokenOf = (kind: CredentialKind) =>
  ({ api_key: customer.key, session_token: visitor.token, publishable_key: publishableKey })[kind]

/** A request to the route with IDs that do not exist and a malformed body. */
function questionTo({ method, path }: (typeof routes)[number]) {
  const id = "01890000-0000-7000-8000-000000000000"
  const address = path.replace("{chip_id}", "0123456789").replaceAll(/\{\w+\}/g, id)
  return { question: `${method} ${address}`, body: method === "GET" ? undefined : "{broken" }
}

describe("credentials:", () => {
  const closed = routes.filter(({ credentials }) => credentials.length > 0)

  test("only the index and the health check need none", () => {
    const open = routes.filter(({ credentials }) => credentials.length === 0)
    expect(open.map(({ path }) => path).filter((path) => path.startsWith("/v1"))).toEqual([])
  })

  const refused = closed.flatMap((route) =>
    kinds
      .filter((kind) => !route.credentials.includes(kind))
      .map((kind) => [route.operation, kind, route] as const),
  )
  test.each(refused)("%s rejects a valid %s before it reads the body", async (_operation, kind, route) => {
    const { question, body } = questionTo(route)
    const { status, code, headers } = await ask(service, question, { as: tokenOf(kind), body })
    expect({ status, code }).toEqual({ status: 401, code: "auth.unauthorized" })
    expect(headers.get("www-authenticate")).toBe("Bearer")
  })

  test.each(closed.map((route) => [route.operation, route] as const))(
    "%s rejects a JWT and a request without a credential",
    async (_operation, route) => {
      const { question, body } = questionTo(route)
      expect((await ask(service, question, { body })).code).toBe("auth.unauthorized")
      expect((await ask(service, question, { as: jwt, body })).code).toBe("auth.unauthorized")
    },
  )

  const accepted = closed
    .filter(({ method }) => method !== "DELETE")
    .flatMap((route) => route.credentials.map((kind) => [route.operation, kind, route] as const))
  test.each(accepted)("%s accepts a valid %s", async (_operation, kind, route) => {
    const { question, body } = questionTo(route)
    if (route.run.kind === "stream") return await opensStream(route.path, tokenOf(kind))
    expect((await ask(service, question, { as: tokenOf(kind), body })).status).not.toBe(401)
  })

  /** A stream never ends, so only its status is checked. */
  async function opensStream(path: string, token: string): Promise<void> {
    const headers = { authorization: `Bearer ${token}` }
    const { status, body } = await fetch(service.base_url + path, { headers })
    await body?.cancel()
    expect(status).toBe(200)
  }

  test("the error says which credential is needed and which was sent", async () => {
    const { body } = await ask(service, "GET /v1/session-tokens/current", { as: customer.key })
    expect(body).toMatchObject({
      error: {
        message: "This operation needs a session token (end_sess_…); you sent an API key.",
      },
    })
  })
})

describe("the Authorization header", () => {
  const statusWith = async (headers: string) => {
    const received = await sendRaw(service, `GET /v1/units HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n`)
    return Number(received.slice(9, 12))
  }

  test.each(["Bearer", "bearer", "BEARER"])("accepts the scheme spelled %s", async (scheme) => {
    expect(await statusWith(`Authorization: ${scheme} ${customer.key}`)).toBe(200)
  })

  test.each([
    ["another scheme", () => `Authorization: Basic ${customer.key}`],
    ["no scheme", () => `Authorization: ${customer.key}`],
    ["no token", () => "Authorization: Bearer"],
    ["two spaces", () => `Authorization: Bearer  ${customer.key}`],
    ["a tab", () => `Authorization: Bearer\t${customer.key}`],
    ["two tokens", () => `Authorization: Bearer ${customer.key} ${customer.key}`],
    ["a comma", () => `Authorization: Bearer ${customer.key},`],
    [
      "a second header",
      () => `Authorization: Bearer ${customer.key}\r\nAuthorization: Bearer ${customer.key}`,
    ],
  ])("is rejected with %s", async (_name, headers) => {
    expect(await statusWith(headers())).toBe(401)
  })
})

describe("an API key", () => {
  test("that does not exist is rejected", async () => {
    const { code } = await ask(service, "GET /v1/units", { as: newCredential("api_key").token })
    expect(code).toBe("auth.unauthorized")
  })

  test("with a typo is rejected", async () => {
    const mistyped = customer.key.replace(/.$/, (last) => (last === "a" ? "b" : "a"))
    expect((await ask(service, "GET /v1/units", { as: mistyped })).code).toBe("auth.unauthorized")
  })

  test("is rejected 5 seconds after its revocation, even if it was used just before", async () => {
    const { key, key_id } = await createCustomer(service)
    expect((await ask(service, "GET /v1/units", { as: key })).status).toBe(200)
    await service.behind.turn((turn) => revokeApiKey(turn, key_id))
    service.advance(5_000)
    expect((await ask(service, "GET /v1/units", { as: key })).code).toBe("auth.unauthorized")
  })

  test("is rejected 5 seconds after its revocation, even if the clock was set back meanwhile", async () => {
    const { key, key_id } = await createCustomer(service)
    expect((await ask(service, "GET /v1/units", { as: key })).status).toBe(200)
    await service.behind.turn((turn) => revokeApiKey(turn, key_id))
    const anHour = 3_600_000
    service.advance(-anHour)
    service.advance(5_000)
    expect((await ask(service, "GET /v1/units", { as: key })).code).toBe("auth.unauthorized")
    service.advance(anHour)
  })

  test("in the query string is not accepted and not logged", async () => {
    const { key } = await createCustomer(service)
    const answer = await ask(service, `GET /v1/units?access_token=${key}`)
    expect(answer.code).toBe("auth.unauthorized")
    expect(service.logged.join("\n")).not.toContain(key)
  })
})

describe("a session token", () => {
  const current = "/v1/session-tokens/current"
  const statusOf = async (token: string) => {
    const rows = service.context.db.read.select({ status: sessionTokens.status }).from(sessionTokens)
    const [row] = await rows.where(
      eq(sessionTokens.hash, new Bun.CryptoHasher("sha256").update(token).digest("hex")),
    )
    return row?.status
  }

  test("shows what it is valid for", async () => {
    const { status, body } = await ask(service, `GET ${current}`, { as: visitor.token })
    expect(status).toBe(200)
    expect(body).toEqual({
      expires_at: expect.any(String),
      scope: {
        chip_id: visitor.chip_id,
        unit_id: visitor.unit_id,
        organization_id: customer.caller.organization_id,
      },
    })
  })

  test("that does not exist is rejected", async () => {
    const { status, code } = await ask(service, `GET ${current}`, {
      as: newCredential("session_token").token,
    })
    expect({ status, code }).toEqual({ status: 401, code: "session_token.invalid_or_expired" })
  })

  test("is valid until the last millisecond of its lifetime", async () => {
    const { token } = await createVisitor(service, customer, 60)
    service.advance(59_999)
    expect((await ask(service, `GET ${current}`, { as: token })).status).toBe(200)
  })

  test("is rejected as soon as its lifetime ends, and recorded as expired", async () => {
    const { token } = await createVisitor(service, customer, 60)
    service.advance(60_000)
    const { status, code } = await ask(service, `GET ${current}`, { as: token })
    expect({ status, code }).toEqual({ status: 401, code: "session_token.invalid_or_expired" })
    expect(await statusOf(token)).toBe("expired")
  })

  test("can be ended by its holder once and is rejected from then on", async () => {
    const { token } = await createVisitor(service, customer)
    const first = await ask(service, `DELETE ${current}`, { as: token })
    expect({ status: first.status, text: first.text }).toEqual({ status: 204, text: "" })
    const second = await ask(service, `DELETE ${current}`, { as: token })
    expect({ status: second.status, code: second.code }).toEqual({
      status: 401,
      code: "session_token.invalid_or_expired",
    })
    expect(await statusOf(token)).toBe("revoked")
  })

  test("of another unit's chip is rejected with session_token.wrong_chip", async () => {
    const [one, other] = [await createVisitor(service, customer), await createVisitor(service, customer)]
    const body = { recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" }
    for (const kind of ["claims", "transfers"]) {
      const question = `POST /v1/units/${other.unit_id}/${kind}`
      const { status, code } = await ask(service, question, { as: one.token, body })
      expect({ status, code }).toEqual({ status: 403, code: "session_token.wrong_chip" })
    }
  })

  test("does not reveal that another organization has a unit", async () => {
    const stranger = await createVisitor(service, await createCustomer(service))
    const one = await createVisitor(service, customer)
    const body = { recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" }
    const question = `POST /v1/units/${stranger.unit_id}/claims`
    expect((await ask(service, question, { as: one.token, body })).code).toBe("unit.not_found")
  })
})
