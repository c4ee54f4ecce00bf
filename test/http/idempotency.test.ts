import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { Type } from "@sinclair/typebox"
import { count, eq } from "drizzle-orm"
import fc from "fast-check"
import { createApp } from "../../src/api/app.ts"
import { routes } from "../../src/api/routes.ts"
import { collections, idempotencyKeys, units } from "../../src/db/schema.ts"
import { canonicalJson } from "../../src/http/canonical-json.ts"
import { writeRoute } from "../../src/http/route.ts"
import { ApiError } from "../../src/platform/errors.ts"
import { seal, unseal } from "../../src/platform/sealing.ts"
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
import { engines } from "../harness/engines.ts"
import { neverRotated } from "../harness/secret.ts"
import { activeCollection, pairedTestChip } from "../harness/services.ts"

/** A probe operation that runs a test's own code at each stage. */
type Stages = { prepare(): Promise<void>; write(): Promise<void> }

function probeOf(stages: Stages) {
  return writeRoute({
    operation: "probe",
    summary: "Do what a test wants",
    description: "Only tests have this.",
    method: "POST",
    path: "/v1/probe",
    credentials: ["api_key", "session_token"],
    idempotent: true,
    body: Type.Object({ value: Type.Optional(Type.Unknown()) }, { additionalProperties: false }),
    status: 201,
    response: Type.Object({ done: Type.Literal(true) }),
    prepare: () => stages.prepare(),
    async write() {
      await stages.write()
      return { body: { done: true as const } }
    },
  })
}

describe.each(engines)("on $name", (engine) => {
  let service: HttpService
  let customer: Customer
  let collectionId: string
  const nothing: Stages = { prepare: async () => {}, write: async () => {} }
  const stages = { ...nothing }
  const probe = probeOf({ prepare: () => stages.prepare(), write: () => stages.write() })

  beforeAll(async () => {
    service = await startService(engine, [...routes, probe])
    customer = await createCustomer(service)
    collectionId = (await activeCollection(service.behind, customer.caller)).id
  }, 30_000)
  afterAll(() => service.close())

  let keys = 0
  const newKey = () => `key-${++keys}`
  const createUnit = (key: string, body: Record<string, unknown> = {}, as = customer.key) =>
    ask(service, "POST /v1/units", {
      as,
      body: { collection_id: collectionId, ...body },
      headers: { "idempotency-key": key },
    })
  const askProbe = (key: string, body: unknown = {}, as = customer.key) =>
    ask(service, "POST /v1/probe", { as, body, headers: { "idempotency-key": key } })
  const unitCount = async (owner = customer) => {
    const rows = service.context.db.read.select({ rows: count() }).from(units)
    const [counted] = await rows.where(eq(units.organization_id, owner.caller.organization_id))
    return counted?.rows
  }
  const isReplay = ({ headers }: Answer) => headers.get("idempotent-replayed") === "true"

  describe("an idempotency key", () => {
    test.each([
      ["empty", ""],
      ["of 256 characters", "x".repeat(256)],
      ["with a space", "a b"],
      ["with a comma", "a,b"],
      ["beyond ASCII", "k\u00e9y"],
      ["that is quoted and empty", '""'],
    ])("%s is rejected", async (_name, key) => {
      const received = await sendRaw(
        service,
        Buffer.from(
          `POST /v1/units HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${customer.key}\r\nIdempotency-Key: ${key}\r\nContent-Length: 0\r\n\r\n`,
          "latin1",
        ),
      )
      expect(received).toStartWith("HTTP/1.1 400")
      expect(received).toContain("Idempotency-Key takes")
    })

    test("that is sent in two headers is rejected", async () => {
      const received = await sendRaw(
        service,
        `POST /v1/units HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${customer.key}\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\nContent-Length: 0\r\n\r\n`,
      )
      expect(received).toContain("Idempotency-Key takes")
    })

    test("is the same with and without quotes", async () => {
      const key = newKey()
      await createUnit(key)
      expect(isReplay(await createUnit(`"${key}"`))).toBe(true)
    })

    test("may have 255 visible characters", async () => {
      expect((await createUnit(`${newKey()}!~`.padEnd(255, "x"))).status).toBe(201)
    })

    test("is ignored where nothing is created", async () => {
      const { id } = (await createUnit(newKey())).body
      const headers = { "idempotency-key": "not, a key" }
      const change = (name: string) =>
        ask(service, `PATCH /v1/units/${id}`, { as: customer.key, body: { name }, headers })
      expect((await change("one")).body).toMatchObject({ name: "one" })
      expect((await change("two")).body).toMatchObject({ name: "two" })
      expect((await ask(service, `GET /v1/units/${id}`, { as: customer.key, headers })).status).toBe(200)
    })
  })

  describe("the same request with the same key", () => {
    test("gets the same response and creates nothing", async () => {
      const key = newKey()
      const first = await createUnit(key, { name: "once" })
      const before = await unitCount()
      const second = await createUnit(key, { name: "once" })
      expect([second.status, second.text, second.headers.get("location")]).toEqual([
        first.status,
        first.text,
        `/v1/units/${first.body.id}`,
      ])
      expect([isReplay(first), isReplay(second)]).toEqual([false, true])
      expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"))
      expect(await unitCount()).toBe(before)
    })

    test("is the same however its JSON is formatted", async () => {
      const key = newKey()
      const first = await createUnit(key, { name: "a", attributes: { b: 1, a: [1, 2] } })
      const body = `{ "attributes": {"a":[1.0,2], "b":1e0},\n"n\\u0061me":"a", "collection_id":"${collectionId}"}`
      const headers = { "idempotency-key": key }
      const second = await ask(service, "POST /v1/units", { as: customer.key, body, headers })
      expect(second.text).toBe(first.text)
    })

    test("is replayed to the organization's other API keys, and is a separate request for another organization", async () => {
      const key = newKey()
      await createUnit(key)
      const stranger = await createCustomer(service)
      expect((await createUnit(key, {}, stranger.key)).code).toBe("collection.not_found")
    })

    test("is replayed before the body is checked against a newer schema", async () => {
      const key = newKey()
      await askProbe(key, { value: 1 })
      const stricter = { ...probe, checkBody: () => [{ path: "/value", message: "is not taken any more" }] }
      const app = createApp(service.context, [stricter])
      const send = (body: string, idempotencyKey: string) =>
        app.handle(
          new Request("http://localhost/v1/probe", {
            method: "POST",
            headers: {
              authorization: `Bearer ${customer.key}`,
              "content-type": "application/json",
              "idempotency-key": idempotencyKey,
            },
            body,
          }),
        )
      expect((await send('{"value":1}', newKey())).status).toBe(400)
      expect((await send('{"value":1}', key)).status).toBe(201)
    })

    test("gets its tap's session token again, which is not stored in plaintext", async () => {
      const { chip_id } = await pairedTestChip(service.behind, customer.caller)
      const made = await ask(service, "POST /v1/test-helpers/taps", { as: customer.key, body: { chip_id } })
      const question = {
        as: customer.key,
        body: { chip_id, e: made.body.e },
        headers: { "idempotency-key": newKey() },
      }
      const first = await ask(service, "POST /v1/taps", question)
      const second = await ask(service, "POST /v1/taps", question)
      expect([first.status, second.status, second.text]).toEqual([201, 201, first.text])
      const { token } = first.body.session_token as { token: string }
      expect((await ask(service, "GET /v1/session-tokens/current", { as: token })).status).toBe(200)
      const rows = await service.context.db.read.select().from(idempotencyKeys)
      expect(JSON.stringify(rows)).not.toContain(token)
    })

    test("is a new request after 24 hours", async () => {
      const key = newKey()
      const first = await createUnit(key)
      service.advance(24 * 60 * 60 * 1000 - 1)
      expect(isReplay(await createUnit(key))).toBe(true)
      service.advance(1)
      const later = await createUnit(key)
      expect([later.status, isReplay(later)]).toEqual([201, false])
      expect(later.body.id).not.toBe(first.body.id)
      expect((await createUnit(key)).text).toBe(later.text)
    })
  })

  describe("another request with the same key", () => {
    test("is rejected if its body differs", async () => {
      const key = newKey()
      await createUnit(key, { name: "one" })
      const { status, code } = await createUnit(key, { name: "two" })
      expect({ status, code }).toEqual({ status: 409, code: "idempotency.key_conflict" })
    })

    test("is rejected if its operation differs", async () => {
      const key = newKey()
      await askProbe(key)
      const headers = { "idempotency-key": key }
      const { code } = await ask(service, "POST /v1/collections", {
        as: customer.key,
        body: { name: "a" },
        headers,
      })
      expect(code).toBe("idempotency.key_conflict")
    })

    test("is rejected if its path differs", async () => {
      const [one, other] = [await createVisitor(service, customer), await createVisitor(service, customer)]
      const headers = { "idempotency-key": newKey() }
      const replace = ({ unit_id }: { unit_id: string }) =>
        ask(service, `POST /v1/units/${unit_id}/chip-replacements`, {
          as: customer.key,
          body: { is_test: true },
          headers,
        })
      expect((await replace(one)).status).toBe(201)
      expect((await replace(other)).code).toBe("idempotency.key_conflict")
    })

    test("is executed for another session and for the API key", async () => {
      const key = newKey()
      const [one, other] = [await createVisitor(service, customer), await createVisitor(service, customer)]
      const answers = [
        await askProbe(key, { value: 1 }, one.token),
        await askProbe(key, { value: 2 }, other.token),
        await askProbe(key, { value: 3 }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    })
  })

  describe("the key is free again after an error", () => {
    test("of validation", async () => {
      const key = newKey()
      expect((await createUnit(key, { name: "" })).status).toBe(400)
      expect((await createUnit(key, { name: "right" })).status).toBe(201)
    })

    test("of a business rule", async () => {
      const key = newKey()
      const body = { name: "a", external_id: `external-${key}` }
      const send = () =>
        ask(service, "POST /v1/collections", { as: customer.key, body, headers: { "idempotency-key": key } })
      const other = await ask(service, "POST /v1/collections", { as: customer.key, body })
      expect((await send()).code).toBe("collection.already_exists")
      await service.behind.turn(({ tx }) =>
        tx
          .update(collections)
          .set({ external_id: null })
          .where(eq(collections.id, String(other.body.id))),
      )
      expect((await send()).status).toBe(201)
    })

    test("of an unexpected kind, and everything written is rolled back", async () => {
      const key = newKey()
      stages.write = async () => {
        throw new Error("an accident of the test")
      }
      expect((await askProbe(key)).status).toBe(500)
      Object.assign(stages, nothing)
      const again = await askProbe(key)
      expect([again.status, isReplay(again)]).toEqual([201, false])
    })
  })

  describe("while a request is in progress,", () => {
    async function whileRunning(key: string, meanwhile: () => Promise<void>): Promise<Answer> {
      const begun = Promise.withResolvers<void>()
      const end = Promise.withResolvers<void>()
      stages.prepare = async () => {
        begun.resolve()
        await end.promise
      }
      const answer = askProbe(key, { value: 1 })
      await begun.promise
      Object.assign(stages, nothing)
      await meanwhile()
      end.resolve()
      return await answer
    }

    test("the same request is told to wait", async () => {
      const key = newKey()
      await whileRunning(key, async () => {
        const { status, code, headers } = await askProbe(key, { value: 1 })
        expect({ status, code }).toEqual({ status: 409, code: "idempotency.in_progress" })
        expect(headers.get("retry-after")).toBe("1")
      })
      expect(isReplay(await askProbe(key, { value: 1 }))).toBe(true)
    })

    test("another request with its key is rejected", async () => {
      const key = newKey()
      const answer = await whileRunning(key, async () => {
        expect((await askProbe(key, { value: 2 })).code).toBe("idempotency.key_conflict")
      })
      expect(answer.status).toBe(201)
    })

    test.each([
      ["instead of its own error", () => Promise.reject(new ApiError("claim.in_progress"))],
      ["and the work is not done twice", () => Promise.resolve()],
    ])("the response that another process stored meanwhile is returned, %s", async (_what, goOn) => {
      const key = newKey()
      const begun = Promise.withResolvers<void>()
      const end = Promise.withResolvers<void>()
      stages.prepare = async () => {
        begun.resolve()
        await end.promise
        await goOn()
      }
      const slow = askProbe(key, { value: 1 })
      await begun.promise
      Object.assign(stages, nothing)
      const second = createApp(service.context, [...routes, probe]).listen({ hostname: "127.0.0.1", port: 0 })
      const beside = { ...service, base_url: `http://127.0.0.1:${second.server?.port}` }
      const quick = await ask(beside, "POST /v1/probe", {
        as: customer.key,
        body: { value: 1 },
        headers: { "idempotency-key": key },
      })
      end.resolve()
      const answer = await slow
      await second.stop(true)
      expect([quick.status, isReplay(quick)]).toEqual([201, false])
      expect([answer.status, isReplay(answer), answer.text]).toEqual([201, true, quick.text])
    })

    test("an error frees its key", async () => {
      const key = newKey()
      stages.prepare = async () => {
        throw new ApiError("claim.in_progress")
      }
      expect((await askProbe(key)).code).toBe("claim.in_progress")
      Object.assign(stages, nothing)
      expect((await askProbe(key)).status).toBe(201)
    })
  })

  test("of 50 concurrent requests to two servers one creates the unit, and every response is about that one", async () => {
    const owner = await createCustomer(service)
    const { id: collection_id } = await activeCollection(service.behind, owner.caller)
    const second = createApp(service.context).listen({ hostname: "127.0.0.1", port: 0 })
    const servers = [service, { ...service, base_url: `http://127.0.0.1:${second.server?.port}` }]
    const key = newKey()
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        ask(servers[index % 2] as HttpService, "POST /v1/units", {
          as: owner.key,
          body: { collection_id },
          headers: { "idempotency-key": key },
        }),
      ),
    )
    await second.stop(true)
    const made = answers.filter(({ status }) => status === 201)
    expect(await unitCount(owner)).toBe(1)
    expect(new Set(made.map(({ text }) => text)).size).toBe(1)
    expect(made.filter((answer) => !isReplay(answer))).toHaveLength(1)
    expect(new Set(answers.filter(({ status }) => status !== 201).map(({ code }) => code ?? ""))).toBeOneOf([
      new Set(["idempotency.in_progress"]),
      new Set(),
    ])
  })
})

describe("canonical JSON", () => {
  test("sorts keys as earlier releases did", () => {
    const value = { b: [1, { d: null, c: "x" }], a: undefined, A: true }
    expect(canonicalJson(value)).toBe('{"A":true,"b":[1,{"c":"x","d":null}]}')
  })

  test("does not depend on the order of keys, and parses to the same value", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const turned = Object.fromEntries(Object.entries(object).reverse())
        expect(canonicalJson(turned)).toBe(canonicalJson(object))
        expect(JSON.parse(canonicalJson(object))).toEqual(JSON.parse(JSON.stringify(object)))
      }),
    )
  })

  test("differs for different values", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const [a, b] = [one, other].map((value) => JSON.parse(JSON.stringify(value)))
        expect(canonicalJson(a) === canonicalJson(b)).toBe(Bun.deepEquals(a, b, true))
      }),
    )
  })
})

describe("sealed text", () => {
  const secret = neverRotated("secret")
  test("opens only for the same purpose, row and secret", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (text, row) => {
        const sealed = seal(secret, "purpose", row, text)
        expect(unseal(secret, "purpose", row, sealed)).toBe(text)
        expect(() => unseal(secret, "purpose", `${row}x`, sealed)).toThrow()
        expect(() => unseal(secret, "another", row, sealed)).toThrow()
        expect(() => unseal(neverRotated("another"), "purpose", row, sealed)).toThrow()
      }),
    )
  })

  test("does not open if one bit of it has changed", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.integer({ min: 0, max: 7 }), (text, place, bit) => {
        const bytes = Buffer.from(seal(secret, "purpose", "row", text), "base64url")
        const index = place % bytes.length
        bytes[index] = (bytes[index] ?? 0) ^ (1 << bit)
        expect(() => unseal(secret, "purpose", "row", bytes.toString("base64url"))).toThrow()
      }),
    )
  })
})
