import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq, sql } from "drizzle-orm"
import { eventFeeds, events } from "../../src/db/event-schema.ts"
import { numberEvents } from "../../src/engine/events/numbering.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { activeCollection, importedChip, newUnit, settle } from "../harness/services.ts"

type Told = {
  id: string
  type: string
  unit_id: string | null
  is_test: boolean
  data: Record<string, unknown>
}

const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const friend = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"

describe.each(engines)("on $name the feed of events", (engine) => {
  let service: HttpService
  beforeAll(async () => {
    service = await startService(engine)
  }, 60_000)
  afterAll(() => service.close())

  async function eventsOf(customer: Customer, query = ""): Promise<Told[]> {
    const { status, body } = await ask(service, `GET /v1/events?limit=100${query}`, { as: customer.key })
    expect(status).toBe(200)
    return body.events as Told[]
  }

  /** Reads the whole feed, one small page after another. */
  async function readAll(customer: Customer, limit: number): Promise<Told[]> {
    const all: Told[] = []
    for (;;) {
      const after = all.at(-1)?.id ?? "0"
      const { body } = await ask(service, `GET /v1/events?after=${after}&limit=${limit}`, {
        as: customer.key,
      })
      const page = body.events as Told[]
      all.push(...page)
      if (page.length < limit) return all
    }
  }

  test("has each step of a unit's lifecycle once, in order, as its GET shows it", async () => {
    const customer = await createCustomer(service)
    const { unit_id, token } = await createVisitor(service, customer)
    const path = `/v1/units/${unit_id}/claims`
    const created = await ask(service, `POST ${path}`, { as: token, body: { recipient } })
    const claimId = String(created.body.id)
    await settle(service.behind, claimId, { transaction_hash: `0x${"ab".repeat(32)}` })
    service.chain.owner = recipient
    const transfer = await ask(service, `POST /v1/units/${unit_id}/transfers`, {
      as: token,
      body: { recipient: friend },
    })
    await settle(service.behind, String(transfer.body.id), { outcome: "expired" })
    service.chain.owner = null

    const told = await readAll(customer, 3)
    expect(told.map(({ type }) => type)).toEqual([
      "collection.active",
      "unit.created",
      "chip.paired",
      "unit.issued",
      "tap.recorded",
      "claim.created",
      "ownership.changed",
      "claim.claimed",
      "transfer.created",
      "transfer.expired",
    ])
    const get = async (address: string) => (await ask(service, `GET ${address}`, { as: customer.key })).body
    const dataOf = (type: string) => told.find((each) => each.type === type)?.data
    expect(dataOf("claim.created")).toEqual(created.body)
    expect(dataOf("claim.claimed")).toEqual(await get(`${path}/${claimId}`))
    expect(dataOf("transfer.expired")).toEqual(
      await get(`/v1/units/${unit_id}/transfers/${transfer.body.id}`),
    )
    expect(dataOf("ownership.changed")).toEqual(await get(`/v1/units/${unit_id}`))
    const taps = (await get("/v1/taps?is_test=true")) as { taps: Record<string, unknown>[] }
    expect(dataOf("tap.recorded")).toEqual(taps.taps[0])
    expect(JSON.stringify(told)).not.toContain("end_sess_")
    expect(told.map(({ is_test }) => is_test)).toEqual([false, false, ...Array(8).fill(true)])
    expect((await eventsOf(customer)).map(({ id }) => id)).toEqual(told.map(({ id }) => id).reverse())
    const one = told[5] as Told
    expect((await ask(service, `GET /v1/events/${one.id}`, { as: customer.key })).body).toEqual(one)
  })

  test("shows a paired chip as its GET does to an API key", async () => {
    const customer = await createCustomer(service)
    const { chip_id, tag } = await importedChip(service.behind, customer.caller)
    const collection = await activeCollection(service.behind, customer.caller)
    const { id: unit_id } = await newUnit(service.behind, customer.caller, collection)
    const pairing = (e: string) =>
      ask(service, "POST /v1/chips", { as: customer.key, body: { unit_id, chip_id, e } })
    expect((await pairing("0".repeat(32))).code).toBe("chip.invalid_e_value")
    expect((await pairing(emitSun(tag, 1).e)).status).toBe(201)
    const chip = await ask(service, `GET /v1/chips/${chip_id}`, { as: customer.key })
    expect(chip.body).toMatchObject({ refused_count: 1 })
    expect((await eventsOf(customer, "&type=chip.paired")).map(({ data }) => data)).toEqual([chip.body])
  })

  test("can be filtered by type, unit, collection and test chips", async () => {
    const customer = await createCustomer(service)
    const { unit_id } = await createVisitor(service, customer)
    await createVisitor(service, customer)
    expect((await eventsOf(customer, "&type=tap.recorded")).length).toBe(2)
    expect((await eventsOf(customer, `&unit_id=${unit_id}`)).length).toBe(4)
    expect((await eventsOf(customer, `&unit_id=${unit_id}&type=tap.recorded&after=0`)).length).toBe(1)
    expect((await eventsOf(customer, "&is_test=false")).map(({ type }) => type)).toEqual([
      "unit.created",
      "collection.active",
      "unit.created",
      "collection.active",
    ])
    expect((await eventsOf(customer, `&collection_id=${newId()}`)).length).toBe(0)
  })

  test("continues from a cursor in either direction", async () => {
    const customer = await createCustomer(service)
    await createVisitor(service, customer)
    for (const query of ["", "&after=0"]) {
      const whole = (await eventsOf(customer, query)).map(({ id }) => id)
      const pieces: string[] = []
      let cursor = ""
      do {
        const { body } = await ask(service, `GET /v1/events?limit=1${query}${cursor}`, { as: customer.key })
        pieces.push(...(body.events as Told[]).map(({ id }) => id))
        const { next_cursor } = body.pagination as { next_cursor: string | null }
        cursor = next_cursor ? `&cursor=${next_cursor}` : ""
      } while (cursor !== "")
      expect(pieces).toEqual(whole)
    }
  })

  test("continues from a cursor whose event was deleted, if nothing after it was", async () => {
    const customer = await createCustomer(service)
    await createVisitor(service, customer)
    const [first, , third] = await readAll(customer, 100)
    const address = `GET /v1/events?after=${first?.id}&limit=1`
    const page = await ask(service, address, { as: customer.key })
    const { next_cursor } = page.body.pagination as { next_cursor: string }
    await service.behind.turn(({ tx }) => tx.delete(events).where(eq(events.id, String(first?.id))))
    const next = await ask(service, `${address}&cursor=${next_cursor}`, { as: customer.key })
    expect(next.body.events).toEqual([third])
  })

  test("continues to older events from a cursor whose event was deleted", async () => {
    const customer = await createCustomer(service)
    await createVisitor(service, customer)
    const [newest, next] = await eventsOf(customer)
    const page = await ask(service, "GET /v1/events?limit=1", { as: customer.key })
    const { next_cursor } = page.body.pagination as { next_cursor: string }
    await service.behind.turn(({ tx }) => tx.delete(events).where(eq(events.id, String(newest?.id))))
    const rest = await ask(service, `GET /v1/events?limit=1&cursor=${next_cursor}`, { as: customer.key })
    expect([rest.status, rest.body.events]).toEqual([200, [next]])
  })

  test("contains nothing of another organization and accepts none of its IDs", async () => {
    const customer = await createCustomer(service)
    const stranger = await createCustomer(service)
    await createVisitor(service, stranger)
    const [theirs] = await eventsOf(stranger)
    expect(await eventsOf(customer)).toEqual([])
    const one = await ask(service, `GET /v1/events/${theirs?.id}`, { as: customer.key })
    expect([one.status, one.code]).toEqual([404, "event.not_found"])
    for (const after of [theirs?.id, newId(), "x"]) {
      const answer = await ask(service, `GET /v1/events?after=${after}`, { as: customer.key })
      expect([answer.status, answer.fields]).toEqual([400, ["after"]])
    }
  })

  /** Records events of a customer in one transaction. */
  async function tellSome({ caller: { organization_id } }: Customer, count: number): Promise<void> {
    await inTurn(service.context, null, async (turn) => {
      for (let number = 0; number < count; number++)
        await recordEvent(turn, {
          ...{ type: "unit.created", organization_id, unit_id: newId(), collection_id: null },
          ...{ is_test: false, data: {}, endpoint_id: null },
        })
    })
  }

  test("assigns no position twice, however many organizations read their feeds at once", async () => {
    const customers = await Promise.all(Array.from({ length: 5 }, () => createCustomer(service)))
    await Promise.all(customers.map((customer) => eventsOf(customer)))
    for (let round = 1; round <= 5; round++) {
      for (const [index, customer] of customers.entries()) await tellSome(customer, 5 - index)
      await Promise.all(customers.map((customer) => eventsOf(customer)))
      const [feed] = await service.context.db.read.select().from(eventFeeds)
      const rows = await service.context.db.read.select({ position: events.position }).from(events)
      const positions = rows.flatMap(({ position }) => position ?? [])
      expect(new Set(positions).size).toBe(rows.length)
      expect(Math.max(...positions)).toBe(Number(feed?.last_position))
    }
  })

  test("continues even if its position counter was set back below assigned positions", async () => {
    const customer = await createCustomer(service)
    await tellSome(customer, 3)
    const told = await eventsOf(customer)
    await service.behind.turn(({ tx }) =>
      tx.update(eventFeeds).set({ last_position: sql`${eventFeeds.last_position} - 2` }),
    )
    await tellSome(customer, 2)
    expect((await readAll(customer, 2)).length).toBe(told.length + 2)
  })

  test("is numbered in few steps if much is waiting, and up to the requested point while more is added", async () => {
    const customer = await createCustomer(service)
    await tellSome(customer, 1_600)
    const { db } = service.context
    let steps = 0
    const transaction: typeof db.transaction = async (work, isolation) => {
      const done = await db.transaction(work, isolation)
      steps += 1
      if (steps < 10) await tellSome(customer, 1)
      return done
    }
    const context = { ...service.context, db: { ...db, transaction } }
    const numbered = await numberEvents(context, customer.caller.organization_id)
    expect([steps, numbered]).toEqual([3, 1_602])
  })

  test("has an event if and only if the change that it reports is committed", async () => {
    const customer = await createCustomer(service)
    const { organization_id } = customer.caller
    const undone = inTurn(service.context, null, async (turn) => {
      await recordEvent(turn, {
        type: "unit.created",
        organization_id,
        unit_id: newId(),
        collection_id: null,
        is_test: false,
        data: {},
        endpoint_id: null,
      })
      throw new Error("undone")
    })
    await expect(undone).rejects.toThrow("undone")
    expect(await eventsOf(customer)).toEqual([])
  })
})
