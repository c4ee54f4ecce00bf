import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { newCredential } from "../../src/platform/credentials.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
  type Visitor,
} from "../harness/api.ts"

// Each test sends a request with two errors and expects the one that is checked first.

let service: HttpService
let customer: Customer
let visitor: Visitor
let usedKey: string

beforeAll(async () => {
  service = await startService()
  customer = await createCustomer(service)
  visitor = await createVisitor(service, customer)
  usedKey = newId()
  const replaced = await createVisitor(service, customer)
  await ask(service, `POST /v1/units/${replaced.unit_id}/claims`, {
    as: replaced.token,
    body: { recipient },
    headers: { "idempotency-key": usedKey },
  })
})
afterAll(() => service.close())

const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const seen = ({ status, code }: Answer) => ({ status, code })
const claims = (unitId = visitor.unit_id) => `POST /v1/units/${unitId}/claims`

describe("checks come in this order:", () => {
  test("the path, before the method and the credential", async () => {
    expect(seen(await ask(service, "PURGE /v1/nowhere"))).toEqual({ status: 404, code: "not_found.resource" })
  })

  test("the method, before the credential", async () => {
    const answer = await ask(service, `PUT /v1/units/${visitor.unit_id}/claims`)
    expect(seen(answer)).toEqual({ status: 405, code: "request.method_not_allowed" })
  })

  test("the kind of the credential, before whether it exists", async () => {
    const as = newCredential("api_key").token
    expect(seen(await ask(service, claims(), { as }))).toEqual({ status: 401, code: "auth.unauthorized" })
  })

  test("the credential, before the media type", async () => {
    const as = newCredential("session_token").token
    const answer = await ask(service, claims(), { as, body: "{", headers: { "content-type": "text/plain" } })
    expect(seen(answer)).toEqual({ status: 401, code: "session_token.invalid_or_expired" })
  })

  test("the credential, before the size of the body", async () => {
    const answer = await ask(service, claims(), { as: customer.key, body: "x".repeat(70_000) })
    expect(seen(answer)).toEqual({ status: 401, code: "auth.unauthorized" })
  })

  test("the media type, before the JSON", async () => {
    const answer = await ask(service, claims(), {
      as: visitor.token,
      body: "{",
      headers: { "content-type": "text/plain" },
    })
    expect(seen(answer)).toEqual({ status: 415, code: "request.unsupported_media_type" })
  })

  test("the JSON, before the idempotency key", async () => {
    const { formErrors } = await ask(service, claims(), {
      as: visitor.token,
      body: "{",
      headers: { "idempotency-key": "not, a key" },
    })
    expect(formErrors).toEqual(["The body is not valid JSON."])
  })

  test("the format of the idempotency key, before the schema", async () => {
    const { formErrors, fields } = await ask(service, claims(), {
      as: visitor.token,
      body: {},
      headers: { "idempotency-key": "not, a key" },
    })
    expect({ formErrors, fields }).toEqual({
      formErrors: [expect.stringContaining("Idempotency-Key")],
      fields: [],
    })
  })

  test("the schema, before a conflict of the idempotency key", async () => {
    const headers = { "idempotency-key": newId() }
    const create = (body: unknown) =>
      ask(service, "POST /v1/collections", { as: customer.key, body, headers })
    await create({ name: "a" })
    expect((await create({ name: "" })).fields).toEqual(["name"])
    expect((await create({ name: "b" })).code).toBe("idempotency.key_conflict")
  })

  test.each([
    ["POST /v1/units", { collection_id: newId(), redirect_url: "javascript:alert(1)" }, "redirect_url"],
    ["POST /v1/units", { collection_id: newId(), attributes: { a: "x".repeat(17_000) } }, "attributes"],
    ["POST /v1/collections", { name: "a", redirect_url: "ftp://example.com" }, "redirect_url"],
  ])(
    "a rule beyond the schema of %s, before a conflict of the idempotency key",
    async (question, body, field) => {
      const headers = { "idempotency-key": newId() }
      await ask(service, "POST /v1/collections", { as: customer.key, body: { name: "a" }, headers })
      expect((await ask(service, question, { as: customer.key, body, headers })).fields).toEqual([field])
    },
  )

  test.each(["claims", "transfers"])(
    "the recipient of %s, before a conflict of the idempotency key",
    async (kind) => {
      const own = await createVisitor(service, customer)
      const headers = { "idempotency-key": newId() }
      await ask(service, claims(own.unit_id), { as: own.token, body: { recipient }, headers })
      const { fields } = await ask(service, `POST /v1/units/${own.unit_id}/${kind}`, {
        as: own.token,
        body: { recipient: `0x${"0".repeat(40)}` },
        headers,
      })
      expect(fields).toEqual(["recipient"])
    },
  )

  test("the schema, before whether the unit exists", async () => {
    const { fields } = await ask(service, claims("nobody"), { as: visitor.token, body: {} })
    expect(fields).toEqual(["recipient"])
  })

  test("a conflict of the idempotency key, before whether the collection exists", async () => {
    const headers = { "idempotency-key": newId() }
    await ask(service, "POST /v1/collections", { as: customer.key, body: { name: "a" }, headers })
    const body = { collection_id: newId() }
    const { code } = await ask(service, "POST /v1/units", { as: customer.key, body, headers })
    expect(code).toBe("idempotency.key_conflict")
  })

  test("whether the unit exists, before whether the session is for its chip", async () => {
    const { code } = await ask(service, claims(newId()), { as: visitor.token, body: { recipient } })
    expect(code).toBe("unit.not_found")
  })

  test("whether the session is for the unit's chip, before the state of the unit", async () => {
    const other = await createVisitor(service, customer)
    await ask(service, claims(other.unit_id), { as: other.token, body: { recipient } })
    const { status, code } = await ask(service, claims(other.unit_id), {
      as: visitor.token,
      body: { recipient },
    })
    expect({ status, code }).toEqual({ status: 403, code: "session_token.wrong_chip" })
  })

  test("the replay of a finished request, before anything about the unit's state", async () => {
    const own = await createVisitor(service, customer)
    const question = { as: own.token, body: { recipient }, headers: { "idempotency-key": newId() } }
    const first = await ask(service, claims(own.unit_id), question)
    expect(first.status).toBe(201)
    expect((await ask(service, claims(own.unit_id), question)).text).toBe(first.text)
    const unkeyed = await ask(service, claims(own.unit_id), { as: own.token, body: { recipient } })
    expect(seen(unkeyed)).toEqual({ status: 409, code: "claim.in_progress" })
    expect(unkeyed.headers.get("retry-after")).toMatch(/^[1-9]\d*$/)
  })
})
