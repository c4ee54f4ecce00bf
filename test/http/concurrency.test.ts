import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { collections, taps, units } from "../../src/db/schema.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { alice } from "../harness/ownership.ts"
import { startBeside } from "../harness/service-beside.ts"
import { activeCollection, newUnit } from "../harness/services.ts"

// Many concurrent requests to two API processes that share one database.

describe.each(engines)("with $name", (engine) => {
  let service: HttpService
  let beside: HttpService
  let maker: Customer

  beforeAll(async () => {
    service = await startService(engine)
    beside = startBeside(service, {})
    maker = await createCustomer(service)
  }, 30_000)
  afterAll(async () => {
    await beside.close()
    await service.close()
  })

  test("one idempotency key sent 50 times creates one record, and every response is that one or asks to wait", async () => {
    const headers = { "idempotency-key": newId() }
    const answers = await atOnce(50, (at) =>
      ask(at, "POST /v1/collections", { as: maker.key, body: { name: "Once" }, headers }),
    )
    const made = answers.filter(({ status }) => status === 201)
    expect(new Set(made.map(({ text }) => text)).size).toBe(1)
    for (const { status, code, headers } of answers)
      if (status !== 201)
        expect([code, headers.has("retry-after")]).toEqual(["idempotency.in_progress", true])
    const { read } = service.context.db
    const own = and(
      eq(collections.organization_id, maker.caller.organization_id),
      eq(collections.name, "Once"),
    )
    expect(await read.select().from(collections).where(own)).toHaveLength(1)
  }, 20_000)

  test("one external_id sent 50 times creates one unit", async () => {
    const collection = await activeCollection(service.behind, maker.caller)
    const body = { collection_id: collection.id, external_id: newId() }
    const answers = await atOnce(50, (at) => ask(at, "POST /v1/units", { as: maker.key, body }))
    expect(tally(answers)).toEqual({ created: 1, "unit.already_exists": 49 })
    const { read } = service.context.db
    expect(await read.select().from(units).where(eq(units.external_id, body.external_id))).toHaveLength(1)
  }, 20_000)

  test("one value of e sent 100 times is one tap", async () => {
    const { chip_id } = await createVisitor(service, maker)
    const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
    const before = await scans(chip_id)
    const answers = await atOnce(100, (at) =>
      ask(at, "POST /v1/taps", { as: maker.key, body: { chip_id, e: body.e } }),
    )
    expect(tally(answers)).toEqual({ created: 1, "chip.already_scanned": 99 })
    expect(await scans(chip_id)).toEqual({ scan_count: before.scan_count + 1, taps: before.taps + 1 })
  }, 20_000)

  test("many values of e of one chip, sent in any order, never move its counter backwards", async () => {
    const { chip_id } = await createVisitor(service, maker)
    const values: unknown[] = []
    for (let time = 0; time < 20; time++) {
      const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
      values.push(body.e)
    }
    await Promise.all(
      values.map((e, index) =>
        ask(index % 2 ? service : beside, "POST /v1/taps", { as: maker.key, body: { chip_id, e } }),
      ),
    )
    const rows = await service.context.db.read.select().from(taps).where(eq(taps.chip_id, chip_id))
    const inOrder = rows.sort((one, other) => one.counter - other.counter)
    // The first row is the harness's own tap. Every other row says how many earlier reads were never sent.
    for (const [index, row] of inOrder.entries())
      expect(row.skipped).toBe(row.counter - (inOrder[index - 1]?.counter ?? 0) - 1)
  }, 20_000)

  test("one unit claimed 20 times at once has one claim", async () => {
    const { unit_id, token } = await createVisitor(service, maker)
    const body = { recipient: alice }
    const answers = await atOnce(20, (at) => ask(at, `POST /v1/units/${unit_id}/claims`, { as: token, body }))
    expect(tally(answers)).toEqual({ created: 1, "claim.in_progress": 19 })
  }, 20_000)

  test("one claim sent 20 times with one key is one claim, and every response is about that one", async () => {
    for (let time = 0; time < 5; time++) {
      const { unit_id, token } = await createVisitor(service, maker)
      const question = { as: token, body: { recipient: alice }, headers: { "idempotency-key": newId() } }
      const answers = await atOnce(20, (at) => ask(at, `POST /v1/units/${unit_id}/claims`, question))
      const made = answers.filter(({ status }) => status === 201)
      expect(new Set(made.map(({ text }) => text)).size).toBe(1)
      const others = answers.filter(({ status }) => status !== 201)
      expect(others.map(({ code }) => code)).toEqual(others.map(() => "idempotency.in_progress"))
    }
  }, 20_000)

  test("one unit paired 20 times at once has one chip", async () => {
    const { id } = await newUnit(
      service.behind,
      maker.caller,
      await activeCollection(service.behind, maker.caller),
    )
    const answers = await atOnce(20, (at) =>
      ask(at, "POST /v1/chips", { as: maker.key, body: { unit_id: id, is_test: true } }),
    )
    expect(tally(answers)).toEqual({ created: 1, "chip.already_paired": 19 })
  }, 20_000)

  test("of 10 concurrent bulk requests to a collection one is accepted", async () => {
    const collection = await activeCollection(service.behind, maker.caller)
    const made = await Promise.all(
      Array.from({ length: 10 }, () => newUnit(service.behind, maker.caller, collection)),
    )
    const answers = await Promise.all(
      made.map(({ id }, index) =>
        ask(index % 2 ? service : beside, "POST /v1/chips/bulk", {
          as: maker.key,
          body: { chips: [{ unit_id: id, is_test: true }] },
        }),
      ),
    )
    expect(tally(answers)).toEqual({ created: 1, "chip.bulk_pending": 9 })
  }, 20_000)

  test("an organization's first publishable key is created once, however many requests list the keys at once", async () => {
    const customer = await createCustomer(service)
    const answers = await atOnce(20, (at) => ask(at, "GET /v1/publishable-keys", { as: customer.key }))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers[0]?.body.publishable_keys).toHaveLength(1)
  }, 20_000)

  test("a quota is not exceeded", async () => {
    const customer = await createCustomer(service, { quota_units: 3 })
    const { id } = await activeCollection(service.behind, customer.caller)
    const answers = await atOnce(20, (at) =>
      ask(at, "POST /v1/units", { as: customer.key, body: { collection_id: id } }),
    )
    expect(tally(answers)).toEqual({ created: 3, "quota.exceeded": 17 })
  }, 20_000)

  test("paging through a list while rows are added returns every earlier row exactly once", async () => {
    const customer = await createCustomer(service)
    const collection_id = (await activeCollection(service.behind, customer.caller)).id
    const make = async (at: HttpService) =>
      String((await ask(at, "POST /v1/units", { as: customer.key, body: { collection_id } })).body.id)
    const there: string[] = []
    for (let made = 0; made < 30; made++) {
      if (made % 7 === 0) service.advance(1)
      there.push(await make(service))
    }
    const met: string[] = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const query: string = cursor && `&cursor=${cursor}`
      const [answer] = await Promise.all([
        ask(beside, `GET /v1/units?limit=4${query}`, { as: customer.key }),
        make(service),
        make(beside),
      ])
      met.push(...(answer.body.units as { id: string }[]).map(({ id }) => id))
      const { has_more, next_cursor } = answer.body.pagination as {
        has_more: boolean
        next_cursor: string | null
      }
      expect(has_more).toBe(next_cursor !== null)
      cursor = next_cursor
    }
    expect(new Set(met).size).toBe(met.length)
    expect(met.filter((id) => there.includes(id)).sort()).toEqual(there.sort())
  }, 20_000)

  function atOnce(times: number, question: (at: HttpService) => Promise<Answer>): Promise<Answer[]> {
    return Promise.all(Array.from({ length: times }, (_, index) => question(index % 2 ? service : beside)))
  }

  async function scans(chip_id: string): Promise<{ scan_count: number; taps: number }> {
    const { body } = await ask(service, `GET /v1/chips/${chip_id}`, { as: maker.key })
    const history = await ask(service, `GET /v1/taps?is_test=true&chip_id=${chip_id}`, { as: maker.key })
    return { scan_count: Number(body.scan_count), taps: (history.body.taps as unknown[]).length }
  }
})

/** Counts how many were created, and how many were rejected with each code. */
function tally(answers: Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, code } of answers) {
    const what = status === 201 ? "created" : (code ?? `${status}`)
    counts[what] = (counts[what] ?? 0) + 1
  }
  return counts
}
