import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { count, eq } from "drizzle-orm"
import { idempotencyKeys } from "../../src/db/schema.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
  tapAgain,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { settle } from "../harness/services.ts"

describe.each(engines)("on $name", (engine) => {
  let service: HttpService
  let maker: Customer
  beforeAll(async () => {
    service = await startService(engine)
    maker = await createCustomer(service)
  })
  afterAll(() => service.close())

  test("a dry run neither claims nor stores its idempotency key, which the real request may then use", async () => {
    const { chip_id } = await createVisitor(service, maker)
    const emitted = await ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
    const { e } = emitted.body
    const key = `dry ${chip_id}`.replace(" ", "-")
    const tap = (body: object) =>
      ask(service, "POST /v1/taps", {
        as: maker.key,
        body: { chip_id, e, ...body },
        headers: { "idempotency-key": key },
      })
    for (let time = 1; time <= 2; time++) {
      const dry = await tap({ dry_run: true })
      expect([dry.status, dry.headers.has("idempotent-replayed")]).toEqual([200, false])
    }
    const kept = service.context.db.read.select({ rows: count() }).from(idempotencyKeys)
    expect(await kept.where(eq(idempotencyKeys.key, key))).toEqual([{ rows: 0 }])
    const real = await tap({})
    expect(real.status).toBe(201)
    expect((await tap({})).text).toBe(real.text)
    expect((await tap({ dry_run: true })).code).toBe("chip.already_scanned")
    const bad = { as: maker.key, body: { chip_id, e, dry_run: true }, headers: { "idempotency-key": "a b" } }
    expect((await ask(service, "POST /v1/taps", bad)).code).toBe("validation.failed")
  })

  test("after a chip replacement the old chip's session returns 401 everywhere", async () => {
    const { token, unit_id } = await createVisitor(service, maker)
    const other = await createVisitor(service, maker)
    const created = await ask(service, `POST /v1/units/${unit_id}/chip-replacements`, {
      as: maker.key,
      body: { is_test: true },
    })
    expect((await ask(service, "GET /v1/session-tokens/current", { as: token })).status).toBe(200)
    await settle(service.behind, String(created.body.id), { transaction_hash: `0x${"cc".repeat(32)}` })
    const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    for (const question of [
      "GET /v1/session-tokens/current",
      "DELETE /v1/session-tokens/current",
      `POST /v1/units/${unit_id}/claims`,
      `POST /v1/units/${unit_id}/transfers`,
    ]) {
      const asked = { as: token, ...(question.startsWith("POST") && { body: { recipient } }) }
      const { status, code } = await ask(service, question, asked)
      expect([question, status, code]).toEqual([question, 401, "session_token.invalid_or_expired"])
    }
    expect((await ask(service, "GET /v1/session-tokens/current", { as: other.token })).status).toBe(200)
  })

  test("a name's length is counted in code points: 256 emoji are accepted, 257 are not", async () => {
    const create = (name: string) => ask(service, "POST /v1/collections", { as: maker.key, body: { name } })
    const taken = await create("👟".repeat(256))
    expect([taken.status, taken.body.name]).toEqual([201, "👟".repeat(256)])
    expect((await create("👟".repeat(257))).fields).toEqual(["name"])
    expect((await create(`${"👟".repeat(255)}ab`)).fields).toEqual(["name"])
  })

  test("a session with too many open authorizations is told when the first of them expires", async () => {
    const { token, unit_id } = await createVisitor(service, maker)
    const body = { recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", execution: "client_broadcast" }
    const another = () => ask(service, `POST /v1/units/${unit_id}/claims`, { as: token, body })
    for (let open = 0; open < 5; open++) expect((await another()).status).toBe(201)
    const refused = await another()
    expect(refused.code).toBe("claim.in_progress")
    expect(Number(refused.headers.get("retry-after"))).toBeWithin(1_790, 1_801)
  })

  test("one chip tapped again and again fills its unit with open authorizations, and no other unit", async () => {
    const body = { recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", execution: "client_broadcast" }
    const visitor = await createVisitor(service, maker)
    const claim = (as: string, { unit_id } = visitor) =>
      ask(service, `POST /v1/units/${unit_id}/claims`, { as, body })
    for (let tap = 0; tap < 10; tap++) {
      const token = await tapAgain(service, maker.caller, visitor)
      for (let open = 0; open < 5; open++) expect((await claim(token)).status).toBe(201)
    }
    const refused = await claim(visitor.token)
    expect([refused.status, refused.code]).toEqual([409, "claim.in_progress"])
    expect(refused.text).toContain("The unit has 50 open authorizations")
    expect(Number(refused.headers.get("retry-after"))).toBeWithin(1_700, 1_801)
    const other = await createVisitor(service, maker)
    expect((await claim(other.token, other)).status).toBe(201)
  })

  test("a transfer of an unclaimed unit is rejected without Retry-After", async () => {
    const { token, unit_id } = await createVisitor(service, maker)
    const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    const asked = { as: token, body: { recipient } }
    const unowned = await ask(service, `POST /v1/units/${unit_id}/transfers`, asked)
    expect([unowned.code, unowned.headers.get("retry-after")]).toEqual(["transfer.owner_unknown", null])
    service.chain.isReachable = false
    const silent = await ask(service, `POST /v1/units/${unit_id}/transfers`, asked)
    service.chain.isReachable = true
    expect([silent.code, silent.headers.get("retry-after")]).toEqual(["transfer.owner_unknown", "5"])
    expect(silent.text).toContain("The chain did not answer in time")
  })

  test("a transfer while the claim is pending is rejected because there is no owner yet, with Retry-After", async () => {
    const { token, unit_id } = await createVisitor(service, maker)
    const asked = { as: token, body: { recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" } }
    expect((await ask(service, `POST /v1/units/${unit_id}/claims`, asked)).status).toBe(201)
    const refused = await ask(service, `POST /v1/units/${unit_id}/transfers`, asked)
    expect([refused.code, refused.headers.get("retry-after")]).toEqual(["transfer.owner_unknown", "5"])
  })
})
