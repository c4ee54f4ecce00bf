import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { Type } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { routes } from "../../src/api/routes.ts"
import { DatabaseUnavailable } from "../../src/db/database.ts"
import { organizations } from "../../src/db/schema.ts"
import { streamRoute, writeRoute } from "../../src/http/route.ts"
import { errorCatalogue } from "../../src/platform/errors.ts"
import { Unavailable } from "../../src/platform/unavailable.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  publishableKeyOf,
  startService,
} from "../harness/api.ts"
import { activeCollection, newUnit } from "../harness/services.ts"

let service: HttpService
let customer: Customer
/** What the probe operation does inside its transaction. It must return a name. */
let write: () => Promise<unknown> = async () => "a name"

const probe = writeRoute({
  operation: "probe",
  summary: "Do what a test wants",
  description: "Only tests have this.",
  method: "POST",
  path: "/v1/probe",
  credentials: ["api_key"],
  body: Type.Object({}, { additionalProperties: false }),
  status: 201,
  response: Type.Object({ name: Type.String() }, { additionalProperties: false }),
  async write(turn, { caller: { organization_id } }) {
    await turn.tx.update(organizations).set({ name: "changed" }).where(eq(organizations.id, organization_id))
    return { body: { name: (await write()) as string } }
  },
})

/** What the probe stream yields after its first text. */
const rest = Promise.withResolvers<never>()

const stream = streamRoute({
  operation: "stream",
  summary: "Tell what a test wants",
  path: "/v1/stream",
  credentials: ["api_key"],
  response: Type.String(),
  async open() {
    const texts = ["one"]
    return {
      async next() {
        const value = texts.pop()
        return value === undefined ? await rest.promise : { done: false, value }
      },
      end() {},
    }
  },
})

beforeAll(async () => {
  service = await startService(undefined, [...routes, probe, stream])
  customer = await createCustomer(service)
})
afterAll(() => service.close())

const askProbe = () => ask(service, "POST /v1/probe", { as: customer.key })

describe("an unexpected error", () => {
  test("returns internal.error and discloses nothing about the cause", async () => {
    write = async () => {
      throw new Error("select secret from drawers")
    }
    const { status, code, text } = await askProbe()
    expect({ status, code }).toEqual({ status: 500, code: "internal.error" })
    expect(text).not.toContain("drawers")
    expect(text).not.toContain(".ts")
  })

  test("is logged with the ID of the request that caused it", async () => {
    write = async () => {
      throw new Error("the wheel came off")
    }
    const { headers } = await askProbe()
    const line = service.logged.find((each) => each.includes("the wheel came off"))
    expect(line).toContain(String(headers.get("x-request-id")))
  })

  test("in the middle of a stream closes the stream and is logged with the ID of its request", async () => {
    const response = await fetch(`${service.base_url}/v1/stream`, {
      headers: { authorization: `Bearer ${customer.key}` },
    })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("one")
    rest.reject(new Error("the line was cut"))
    await expect(reader.read()).rejects.toThrow("closed unexpectedly")
    const line = service.logged.find((each) => each.includes("the line was cut"))
    expect(line).toContain(String(response.headers.get("x-request-id")))
  })

  test("for a response that breaks its own schema rolls back what was written", async () => {
    write = async () => 3
    expect((await askProbe()).code).toBe("internal.error")
    const [row] = await service.context.db.read
      .select({ name: organizations.name })
      .from(organizations)
      .where(eq(organizations.id, customer.caller.organization_id))
    expect(row?.name).toBe("Maker")
  })

  test("from an unreachable database returns 503 with Retry-After", async () => {
    write = async () => {
      throw new DatabaseUnavailable("nobody answers at 10.0.0.1")
    }
    const { status, code, headers, text } = await askProbe()
    expect({ status, code }).toEqual({ status: 503, code: "internal.error" })
    expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
    expect(text).not.toContain("10.0.0.1")
  })

  test("for a signing key that the chain does not accept also returns 503, and only the log says why", async () => {
    write = async () => {
      throw new Unavailable("AUTHORIZER_KEY is the key of somebody else")
    }
    const { status, code, headers, text } = await askProbe()
    expect({ status, code }).toEqual({ status: 503, code: "internal.error" })
    expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
    expect(text).not.toContain("AUTHORIZER_KEY")
    expect(service.logged.join("")).toContain("AUTHORIZER_KEY is the key of somebody else")
  })
})

describe("an error response", () => {
  test("has details only if its code is validation.failed", async () => {
    const refused = await ask(service, "GET /v1/units?limit=0", { as: customer.key })
    const missing = await ask(service, "GET /v1/units/nobody", { as: customer.key })
    expect(refused.body).toMatchObject({ error: { details: { formErrors: [] } } })
    expect(missing.body.error).not.toHaveProperty("details")
  })

  test("links to the documentation page of its code", async () => {
    const { body } = await ask(service, "GET /v1/units/nobody", { as: customer.key })
    const doc_url = `${service.context.config.docs_url}/errors/unit.not_found`
    expect(body).toMatchObject({ error: { doc_url } })
  })

  test("uses only codes of the catalogue, on every route", () => {
    const codes = routes.flatMap(({ errors }) => errors)
    expect(codes.filter((code) => !(code in errorCatalogue))).toEqual([])
  })
})

describe("a request's log line", () => {
  test("says who called which operation and with what outcome", async () => {
    const { headers } = await ask(service, "GET /v1/units/nobody", { as: customer.key })
    const request_id = String(headers.get("x-request-id"))
    const lines = service.logged.filter((line) => line.includes(request_id)).map((line) => JSON.parse(line))
    expect(lines).toEqual([
      {
        request_id,
        organization_id: customer.caller.organization_id,
        credential_id: customer.key_id,
        operation: "getUnit",
        status: 404,
        code: "unit.not_found",
        milliseconds: expect.any(Number),
        message: "request",
      },
    ])
  })

  test("contains nothing the client sent: no credential, body, header or query", async () => {
    const publishableKey = await publishableKeyOf(service, customer)
    const { chip_id, token } = await createVisitor(service, customer)
    const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: customer.key, body: { chip_id } })
    const e = String(body.e)
    await ask(service, "POST /v1/taps", {
      as: publishableKey,
      body: { chip_id, e },
      headers: { "x-own": "planted" },
    })
    await ask(service, "POST /v1/taps", { as: publishableKey, body: { chip_id, e } })
    await ask(service, `GET /v1/units?external_id=planted-query`, { as: customer.key })
    await ask(service, "GET /v1/session-tokens/current", { as: token })
    const logged = service.logged.join("\n")
    for (const secret of [e, token, customer.key, publishableKey, "planted"])
      expect(logged).not.toContain(secret)
  })
})

describe("a successful response", () => {
  test("to a create has the URL of the new resource in Location", async () => {
    const collection = await ask(service, "POST /v1/collections", {
      as: customer.key,
      body: { name: "Found" },
    })
    const address = String(collection.headers.get("location"))
    const found = await ask(service, `GET ${address}`, { as: customer.key })
    expect(found.text).toBe(collection.text)
  })

  test("is the same whether the ID in the path is in upper or lower case", async () => {
    const { chip_id, unit_id } = await createVisitor(service, customer)
    for (const [things, id] of [
      ["chips", chip_id],
      ["units", unit_id],
    ] as const) {
      const read = (text: string) => ask(service, `GET /v1/${things}/${text}`, { as: customer.key })
      const [lower, upper] = [await read(id.toLowerCase()), await read(id.toUpperCase())]
      expect(lower.status).toBe(200)
      expect(upper.text).toBe(lower.text)
    }
  })

  test("to a dry run is 200 instead of 201, and nothing changes", async () => {
    const { chip_id } = await createVisitor(service, customer)
    const emitted = await ask(service, "POST /v1/test-helpers/taps", { as: customer.key, body: { chip_id } })
    const tap = (fields: object) =>
      ask(service, "POST /v1/taps", { as: customer.key, body: { chip_id, e: emitted.body.e, ...fields } })
    const dry = await tap({ dry_run: true })
    expect(dry.status).toBe(200)
    expect(dry.body).toMatchObject({ id: null, session_token: null })
    expect((await tap({})).status).toBe(201)
  })

  test("to the first list of publishable keys shows the same single key to all concurrent requests", async () => {
    const owner = await createCustomer(service)
    const looks = await Promise.all(
      Array.from({ length: 10 }, () => ask(service, "GET /v1/publishable-keys", { as: owner.key })),
    )
    expect(new Set(looks.map(({ text }) => text)).size).toBe(1)
    expect(looks[0]?.body).toMatchObject({ publishable_keys: [{ mode: "live" }] })
  })

  test("to a settings update contains the new values", async () => {
    const body = { default_redirect_url: "https://shop.example/a b".replace(" ", "%20") }
    expect((await ask(service, "PATCH /v1/settings", { as: customer.key, body })).status).toBe(200)
    const settings = await ask(service, "GET /v1/settings", { as: customer.key })
    expect(settings.body).toEqual({ ...body, default_chain_id: 31_337, allowed_chain_ids: [31_337] })
  })
})

describe("a tap with a publishable key", () => {
  const emit = async () => {
    const { chip_id } = await createVisitor(service, customer)
    const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: customer.key, body: { chip_id } })
    return { chip_id, e: body.e }
  }

  test("returns a session of 600 seconds, whatever ttl was requested", async () => {
    const as = await publishableKeyOf(service, customer)
    const { body, status } = await ask(service, "POST /v1/taps", {
      as,
      body: { ...(await emit()), ttl: 3_600 },
    })
    const expires_at = new Date(service.context.clock().getTime() + 600_000).toISOString()
    expect({ status, body }).toMatchObject({ status: 201, body: { session_token: { expires_at } } })
  })

  test("is rejected as a dry run, and its value of e stays usable", async () => {
    const as = await publishableKeyOf(service, customer)
    const body = await emit()
    expect((await ask(service, "POST /v1/taps", { as, body: { ...body, dry_run: true } })).code).toBe(
      "auth.forbidden",
    )
    expect((await ask(service, "POST /v1/taps", { as, body })).status).toBe(201)
  })

  test("sent a hundred times at once is recorded once", async () => {
    const as = customer.key
    const body = await emit()
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => ask(service, "POST /v1/taps", { as, body })),
    )
    const codes = answers.map(({ status, code }) => code ?? status).sort()
    expect(codes).toEqual([201, ...Array.from({ length: 99 }, () => "chip.already_scanned")])
  })
})

describe("bulk pairing", () => {
  test("returns the chips in the order of the request, and the next bulk request has to wait", async () => {
    const collection = await activeCollection(service.behind, customer.caller)
    const newUnits = async (count: number) => {
      const ids: string[] = []
      while (ids.length < count) ids.push((await newUnit(service.behind, customer.caller, collection)).id)
      return ids.map((unit_id) => ({ unit_id, is_test: true }))
    }
    const [first, second] = [await newUnits(5), await newUnits(1)]
    const send = (chips: unknown[]) =>
      ask(service, "POST /v1/chips/bulk", { as: customer.key, body: { chips } })
    const { status, body } = await send(first)
    expect(status).toBe(201)
    const chips = body.chips as { unit: { id: string } }[]
    expect(chips.map(({ unit }) => unit.id)).toEqual(first.map(({ unit_id }) => unit_id))
    const refused = await send(second)
    expect({ status: refused.status, code: refused.code }).toEqual({ status: 409, code: "chip.bulk_pending" })
    expect(refused.headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
  })
})
