import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { events, webhookDeliveries, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { newId } from "../../src/platform/ids.ts"
import { createWebhookEndpoint } from "../../src/resources/webhook-endpoints/service.ts"
import { followEvents } from "../../workers/watches/follow-events.ts"
import { reapEvents } from "../../workers/watches/reap-events.ts"
import { ask, type Customer, createCustomer, type HttpService, startService } from "../harness/api.ts"
import { engines } from "../harness/engines.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

const days = 24 * 60 * 60_000

describe.each(engines)("on $name old events", (engine) => {
  let service: HttpService
  beforeAll(async () => {
    service = await startService(engine)
  }, 60_000)
  afterAll(() => service.close())

  async function tellSome({ caller }: Customer, count: number): Promise<string[]> {
    const { organization_id } = caller
    return await service.behind.turn(async (turn) => {
      const ids: string[] = []
      for (let number = 0; number < count; number++) {
        const event = {
          organization_id,
          unit_id: newId(),
          collection_id: null,
          is_test: false,
          data: { number },
        }
        ids.push((await recordEvent(turn, { ...event, type: "unit.created", endpoint_id: null })).id)
      }
      return ids
    })
  }

  const kept = async ({ key }: Customer) => {
    const { body } = await ask(service, "GET /v1/events?after=0&limit=100", { as: key })
    return (body.events as { id: string }[]).map(({ id }) => id)
  }

  test("are deleted after 90 days, in steps, and a reader whose cursor is gone is told to start over", async () => {
    const customer = await createCustomer(service)
    const old = await tellSome(customer, 1_201)
    expect(await kept(customer)).toEqual(old.slice(0, 100))
    service.advance(1 * days)
    const younger = await tellSome(customer, 3)
    service.advance(89 * days)
    await reapEvents(service.context)
    expect((await kept(customer))[0]).toBe(String(old[0]))
    service.advance(1)
    await reapEvents(service.context)
    expect(await kept(customer)).toEqual(younger)
    const lost = await ask(service, `GET /v1/events?after=${old[7]}`, { as: customer.key })
    expect([lost.status, lost.fields, lost.text.includes("start again with after=0")]).toEqual([
      400,
      ["after"],
      true,
    ])
    expect((await ask(service, `GET /v1/events/${old[7]}`, { as: customer.key })).code).toBe(
      "event.not_found",
    )
  })

  test("are kept for an enabled endpoint that has not received them, but not for a paused one", async () => {
    const customer = await createCustomer(service)
    const url = "https://203.0.112.9/hook"
    const [enabled, paused] = await Promise.all(
      [0, 1].map(() =>
        service.behind.turn((turn) =>
          createWebhookEndpoint(turn, service.behind.secret, customer.caller, { body: { url }, url }),
        ),
      ),
    )
    const ids = await tellSome(customer, 3)
    await followEvents(service.context)
    const pause = { as: customer.key, body: { status: "paused" } }
    await ask(service, `PATCH /v1/webhook-endpoints/${paused?.endpoint.id}`, pause)
    await service.behind.turn(({ tx }) =>
      tx.delete(webhookQueue).where(eq(webhookQueue.event_id, String(ids[0]))),
    )
    service.advance(91 * days)
    await reapEvents(service.context)
    // No endpoint waits for the first any more; pausing recorded an event of its own, which is as old.
    expect(await kept(customer)).toEqual(ids.slice(1))
    await service.behind.turn(({ tx }) =>
      tx
        .update(webhookEndpoints)
        .set({ status: "paused" })
        .where(eq(webhookEndpoints.id, String(enabled?.endpoint.id))),
    )
    await reapEvents(service.context)
    expect(await kept(customer)).toEqual([])
    expect(await service.context.db.read.select().from(webhookQueue)).toEqual([])
  })

  test("that wait for an endpoint are checked once per round, a step at a time, however many others are deleted", async () => {
    const customer = await createCustomer(service)
    const url = "https://203.0.112.9/hook"
    const { endpoint } = await service.behind.turn((turn) =>
      createWebhookEndpoint(turn, service.behind.secret, customer.caller, { body: { url }, url }),
    )
    const waiting = await tellSome(customer, 1_200)
    await followEvents(service.context)
    await service.behind.turn(({ tx }) =>
      tx.update(webhookEndpoints).set({ event_types: [] }).where(eq(webhookEndpoints.id, endpoint.id)),
    )
    service.advance(1)
    await tellSome(customer, 1_200)
    await followEvents(service.context)
    service.advance(91 * days)
    const looked: unknown[][][] = []
    const db = watchedDatabase(service.context.db, ({ text, rows }) => {
      if (text.startsWith("select") && text.includes('from "events"')) looked.push(rows)
    })
    await reapEvents({ ...service.context, db })
    expect(looked.map((rows) => rows.length)).toEqual([500, 500, 500, 500, 400])
    expect(new Set(looked.flat().map(([id]) => id)).size).toBe(2_400)
    const left = await service.context.db.read.select({ id: events.id }).from(events)
    expect(left.map(({ id }) => id).sort()).toEqual(waiting)
    await service.behind.turn(({ tx }) => tx.delete(webhookQueue))
    await reapEvents(service.context)
  })

  test("are deleted together with their delivery records", async () => {
    const customer = await createCustomer(service)
    const url = "https://203.0.112.9/hook"
    const { endpoint } = await service.behind.turn((turn) =>
      createWebhookEndpoint(turn, service.behind.secret, customer.caller, { body: { url }, url }),
    )
    const note = (created_at: Date) => ({
      id: newId(),
      endpoint_id: endpoint.id,
      event_id: newId(),
      attempt: 1,
      status: "delivered" as const,
      response_status: 204,
      error: null,
      milliseconds: 1,
      created_at,
    })
    const now = service.context.clock().getTime()
    const [old, young] = [note(new Date(now - 90 * days - 1)), note(new Date(now - 90 * days))]
    await service.behind.turn(({ tx }) => tx.insert(webhookDeliveries).values([old, young]))
    await reapEvents(service.context)
    const noted = await service.context.db.read
      .select({ id: webhookDeliveries.id })
      .from(webhookDeliveries)
      .where(eq(webhookDeliveries.endpoint_id, endpoint.id))
    expect(noted).toEqual([{ id: young.id }])
  })
})
