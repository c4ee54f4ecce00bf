import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import { eq } from "drizzle-orm"
import { Webhook } from "standardwebhooks"
import { createPublicClient } from "viem"
import { verifyWebhook } from "../../clients/typescript/webhooks.ts"
import { exampleOf } from "../../src/api/docs/event-types.ts"
import {
  type WebhookEndpointRow,
  webhookDeliveries,
  webhookEndpoints,
  webhookQueue,
} from "../../src/db/event-schema.ts"
import { openDatabase } from "../../src/db/open.ts"
import type { Turn } from "../../src/db/turn.ts"
import { findActor } from "../../src/engine/actors/runtime.ts"
import { createProviders } from "../../src/engine/chain/providers.ts"
import { recordEvent } from "../../src/engine/events/record.ts"
import { queueReplayStep, replayingEndpoints } from "../../src/engine/events/webhook-queue.ts"
import { webhookStates } from "../../src/operator/stories/webhook-states.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { rotateWebhookSecret } from "../../src/resources/webhook-endpoints/service.ts"
import { followEvents } from "../../workers/watches/follow-events.ts"
import { followReplays } from "../../workers/watches/follow-replays.ts"
import { reapEndpoints } from "../../workers/watches/reap-endpoints.ts"
import { retryFarOff } from "../../workers/watches/retry-far-off.ts"
import { createDeliverer, type Deliverer } from "../../workers/webhooks/deliver.ts"
import { dueDeliveries } from "../../workers/webhooks/due.ts"
import { recordOutcomes } from "../../workers/webhooks/outcomes.ts"
import { ask, type Customer, createCustomer, type HttpService, startService } from "../harness/api.ts"
import { until } from "../harness/engine.ts"
import { engines } from "../harness/engines.ts"
import { explained, rowsRead } from "../harness/explained.ts"
import { type Watched, watchedDatabase } from "../harness/watched-database.ts"

type Received = { id: string; unit_id: string | null; body: string; headers: Headers }

/** A local receiver that records requests and returns the given responses. */
function openReceiver(answer: (received: Received, nth: number) => Response | Promise<Response> = taken) {
  const received: Received[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const body = await request.text()
      const { id, unit_id } = JSON.parse(body) as { id: string; unit_id: string | null }
      const one = { id, unit_id, body, headers: request.headers }
      received.push(one)
      return await answer(one, received.length)
    },
  })
  return { url: `http://127.0.0.1:${server.port}/hook`, received, close: () => server.stop(true) }
}

const taken = () => new Response(null, { status: 204 })

type Endpoint = { id: string; secret: string }

function workersOf({ context }: HttpService): Deliverer[] {
  return Array.from({ length: 3 }, () => createDeliverer(context, { owner: newId(), checkpoint: () => {} }))
}

/** Delivery records of an endpoint. */
function notesOf({ id: endpoint_id }: Endpoint, count: number) {
  return Array.from({ length: count }, () => ({
    id: newId(),
    endpoint_id,
    event_id: newId(),
    attempt: 1,
    status: "delivered" as const,
    response_status: 204,
    milliseconds: 1,
    created_at: new Date(0),
  }))
}

/** Of the concurrent fetches of a process, three eighths are for webhooks, and half of those for one brand. */
const mostOfOneBrand = (256 * 3) / 8 / 2

describe.each(engines)("on $name webhooks", (engine) => {
  let service: HttpService
  let workers: Deliverer[]
  const closers: (() => unknown)[] = []

  beforeAll(async () => {
    service = await startService(engine)
    workers = workersOf(service)
  }, 60_000)
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.stop()))
    for (const close of closers) close()
    await service.close()
  })

  function receiver(answer?: Parameters<typeof openReceiver>[0]) {
    const opened = openReceiver(answer)
    closers.push(opened.close)
    return opened
  }

  /** Updates the planner's statistics. Postgres does so by itself from time to time; SQLite does not. */
  const learn = async () => {
    if (engine.name === "postgres") await service.context.db.read.ask({ text: "analyze" }, [])
  }

  type Reads = { indexes: string[]; rows: number }

  /**
   * Returns which indexes of the queue a piece of work uses, and how many index rows it reads where the engine counts
   * them.
   */
  async function readsOfQueue(work: (context: Context) => Promise<unknown>): Promise<Reads> {
    const { context } = service
    const asked: Watched[] = []
    await work({ ...context, db: watchedDatabase(context.db, (each) => asked.push(each)) })
    const ofQueue = asked.filter(({ text }) => text.includes('"webhook_queue"'))
    const indexes = new Set<string>()
    let rows = 0
    // Statements that change rows are executed again for counting, which sets the same values.
    const db = await openDatabase(service.behind.database_url)
    for (const each of new Map(ofQueue.map((one) => [one.text, one])).values()) {
      const steps = (await explained(db, each)).join(" ")
      for (const [index] of steps.matchAll(/webhook_queue_(due|by_line|by_event)/g)) {
        indexes.add(index)
        rows += (await rowsRead(db, each, index)) ?? 0
      }
    }
    await db.close()
    return { indexes: [...indexes].sort(), rows }
  }

  async function endpointFor({ key }: Customer, url: string, changes: object = {}): Promise<Endpoint> {
    const { status, body } = await ask(service, "POST /v1/webhook-endpoints", {
      as: key,
      body: { url, ...changes },
    })
    expect(status).toBe(201)
    return body as Endpoint
  }

  const newsOf = ({ caller: { organization_id } }: Customer, unit_id: string, n: number) => ({
    type: "unit.issued" as const,
    organization_id,
    unit_id,
    collection_id: null,
    is_test: false,
    data: { n },
    endpoint_id: null,
  })

  async function tellAbout(customer: Customer, unit_id: string, n = 0, later = 0): Promise<string> {
    const event = newsOf(customer, unit_id, n)
    return (
      await service.behind.turn((turn) =>
        recordEvent({ ...turn, at: new Date(turn.at.getTime() + later) }, event),
      )
    ).id
  }

  async function tellMany(customer: Customer, count: number): Promise<void> {
    await service.behind.turn(async (turn) => {
      for (let n = 0; n < count; n++) await recordEvent(turn, newsOf(customer, newId(), n))
    })
  }

  /** Queues one event for each of these lines at an endpoint. */
  async function waitAt({ id: endpoint_id }: Endpoint, lines: string[], due_at: Date): Promise<void> {
    const row = { endpoint_id, attempts: 0, due_at, created_at: due_at }
    const rows = lines.map((line, n) => ({ ...row, event_id: newId(), line, position: -n }))
    await service.behind.turn(async ({ tx }) => {
      for (let from = 0; from < rows.length; from += 1_000)
        await tx.insert(webhookQueue).values(rows.slice(from, from + 1_000))
    })
  }

  const inHours = (hours: number) => new Date(service.context.clock().getTime() + hours * 3_600_000)

  const forget = ({ id }: Endpoint) =>
    service.behind.turn(({ tx }) => tx.delete(webhookQueue).where(eq(webhookQueue.endpoint_id, id)))

  async function replay({ key }: Customer, { id }: Endpoint, body: object): Promise<void> {
    const made = await ask(service, `POST /v1/webhook-endpoints/${id}/replays`, { as: key, body })
    expect(made.status).toBe(201)
  }

  const become = async ({ key }: Customer, { id }: Endpoint, status: string) =>
    await ask(service, `PATCH /v1/webhook-endpoints/${id}`, { as: key, body: { status } })

  /** Runs one round of the workers. */
  async function work(): Promise<void> {
    await followEvents(service.context)
    await followReplays(service.context)
    await Promise.all(workers.map((worker) => worker.tick()))
  }

  async function workUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
    await until(async () => {
      await work()
      return await isSo()
    })
  }

  const queued = async (endpoint: Endpoint) =>
    await service.context.db.read.select().from(webhookQueue).where(eq(webhookQueue.endpoint_id, endpoint.id))

  const rowOf = async ({ id }: Endpoint) =>
    await service.context.db.read.select().from(webhookEndpoints).where(eq(webhookEndpoints.id, id))

  const noted = async (endpoint: Endpoint) =>
    await service.context.db.read
      .select()
      .from(webhookDeliveries)
      .where(eq(webhookDeliveries.endpoint_id, endpoint.id))

  const deliveriesOf = async ({ key }: Customer, endpoint: Endpoint) =>
    (await ask(service, `GET /v1/webhook-endpoints/${endpoint.id}/deliveries?limit=100`, { as: key })).body
      .deliveries as Record<string, unknown>[]

  test("are sent once by three workers, in order per unit, with a signature that independent libraries verify", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    const unitIds = Array.from({ length: 7 }, newId)
    const told = new Map(unitIds.map((id) => [id, [] as string[]]))
    for (let n = 0; n < 140; n++) {
      const unitId = unitIds[n % 7] as string
      told.get(unitId)?.push(await tellAbout(customer, unitId, n))
      if (n % 20 === 0) await work()
    }
    await workUntil(async () => received.length >= 140 && (await queued(endpoint)).length === 0)
    expect(received.length).toBe(140)
    for (const [unitId, ids] of told)
      expect(received.filter(({ unit_id }) => unit_id === unitId).map(({ id }) => id)).toEqual(ids)
    for (const { body, headers, id } of received.slice(0, 10)) {
      // The libraries read this machine's clock, while the service's clock stands still.
      const plain = Object.fromEntries(headers)
      const timestamp = new Date(Number(plain["webhook-timestamp"]) * 1_000)
      expect(new Webhook(endpoint.secret).sign(id, timestamp, body)).toBe(String(plain["webhook-signature"]))
      const key = Buffer.from(endpoint.secret.replace("whsec_", ""), "base64")
      const byHand = createHmac("sha256", key).update(`${id}.${plain["webhook-timestamp"]}.${body}`)
      expect(plain["webhook-signature"]).toBe(`v1,${byHand.digest("base64")}`)
      const event = await verifyWebhook(body, plain, endpoint.secret, { now: timestamp })
      expect(event.id).toBe(id)
      await expect(verifyWebhook(`${body} `, plain, endpoint.secret, { now: timestamp })).rejects.toThrow()
      await expect(verifyWebhook(body, plain, endpoint.secret)).rejects.toThrow("too old")
    }
    const [latest] = await deliveriesOf(customer, endpoint)
    expect(latest).toMatchObject({ attempt: 1, status: "delivered", response_status: 204, error: null })
  })

  const refusals: [string, () => Response | Promise<Response>, number | null, RegExp][] = [
    ["answers with 500", () => new Response("no", { status: 500 }), 500, /responded with status 500/],
    [
      "answers with 301",
      () => new Response(null, { status: 301, headers: { location: "http://127.0.0.1:9/" } }),
      301,
      /redirects are not followed/,
    ],
    ["answers with 410", () => new Response("gone", { status: 410 }), 410, /responded with status 410/],
  ]
  test.each(refusals)(
    "that a receiver %s are retried and block only their unit",
    async (_how, refuse, status, error) => {
      const customer = await createCustomer(service)
      const [held, free] = [newId(), newId()]
      let isMended = false
      const { url, received } = receiver(({ unit_id }) =>
        unit_id === held && !isMended ? refuse() : taken(),
      )
      const endpoint = await endpointFor(customer, url)
      const first = await tellAbout(customer, held)
      const second = await tellAbout(customer, held)
      const other = await tellAbout(customer, free)
      await workUntil(async () => (await noted(endpoint)).length === 2)
      await work()
      expect(received.map(({ id }) => id).sort()).toEqual([first, other].sort())
      const failed = (await deliveriesOf(customer, endpoint)).find(({ event_id }) => event_id === first)
      expect(failed).toMatchObject({ attempt: 1, status: "failed", response_status: status })
      expect(failed?.error).toMatch(error)
      isMended = true
      service.advance(5_500)
      await workUntil(async () => (await queued(endpoint)).length === 0)
      expect(received.filter(({ unit_id }) => unit_id === held).map(({ id }) => id)).toEqual([
        first,
        first,
        second,
      ])
    },
  )

  test("to a receiver that resets the connection or sends an invalid response fail and are retried", async () => {
    const customer = await createCustomer(service)
    let connections = 0
    const nonsense = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          if (connections++ === 0) socket.terminate()
          else socket.end("what is HTTP?\r\n\r\n")
        },
      },
    })
    closers.push(() => nonsense.stop(true))
    const endpoint = await endpointFor(customer, `http://127.0.0.1:${nonsense.port}/`)
    await tellAbout(customer, newId())
    await workUntil(async () => (await queued(endpoint)).some(({ attempts }) => attempts === 1))
    service.advance(5_500)
    await workUntil(async () => (await queued(endpoint)).some(({ attempts }) => attempts === 2))
    for (const { status, response_status } of await deliveriesOf(customer, endpoint))
      expect([status, response_status]).toEqual(["failed", null])
  })

  test("are sent to this machine if the URL names it, and never if a name now resolves to it", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const { port } = new URL(url)
    let connections = 0
    const secure = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { open: () => void connections++, data: (socket) => void socket.terminate() },
    })
    closers.push(() => secure.stop(true))
    const rebound = await endpointFor(customer, `https://rebound.invalid:${secure.port}/hook`)
    const local = await endpointFor(customer, `http://localhost:${port}/hook`)
    const led = createDeliverer(service.context, {
      owner: newId(),
      checkpoint: () => {},
      resolve: async () => ["127.0.0.1"],
    })
    await tellAbout(customer, newId())
    await followEvents(service.context)
    await until(async () => {
      await led.tick()
      return (await queued(local)).length === 0 && (await queued(rebound))[0]?.attempts === 1
    })
    await led.stop()
    expect(received.length).toBe(1)
    expect(connections).toBe(0)
    expect(await deliveriesOf(customer, rebound)).toMatchObject([
      { status: "failed", error: "leads to an address that is not routable on the Internet" },
    ])
  })

  test("to one slow endpoint delay no other", async () => {
    const customer = await createCustomer(service)
    const { promise, resolve } = Promise.withResolvers<void>()
    const slow = receiver(async () => {
      await promise
      return taken()
    })
    const quick = receiver()
    const slowEndpoint = await endpointFor(customer, slow.url)
    await endpointFor(customer, quick.url)
    for (let n = 0; n < 60; n++) await tellAbout(customer, newId(), n)
    await workUntil(() => quick.received.length === 60)
    expect((await queued(slowEndpoint)).length).toBe(60)
    resolve()
    await workUntil(async () => (await queued(slowEndpoint)).length === 0)
    expect(slow.received.length).toBe(60)
  })

  test("to any number of slow receivers of one brand delay neither another brand's webhooks nor requests to a chain", async () => {
    const [slowBrand, brand] = [await createCustomer(service), await createCustomer(service)]
    const isOver = Promise.withResolvers<void>()
    const slow = receiver(() => isOver.promise.then(taken))
    const endpoints: Endpoint[] = []
    for (let n = 0; n < 20; n++) endpoints.push(await endpointFor(slowBrand, slow.url))
    for (let n = 0; n < 16; n++) await tellAbout(slowBrand, newId(), n)
    const [worker] = workers as [Deliverer]
    await followEvents(service.context)
    await worker.tick()
    await until(async () => slow.received.length >= mostOfOneBrand)

    const quick = receiver()
    const endpoint = await endpointFor(brand, quick.url)
    const eventId = await tellAbout(brand, newId())
    await followEvents(service.context)
    await until(async () => {
      await worker.tick()
      return (await queued(endpoint)).length === 0
    })
    expect(quick.received.map(({ id }) => id)).toEqual([eventId])
    const node = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ id: 1, result: "0x7" }),
    })
    closers.push(() => node.stop(true))
    const { transport } = createProviders({
      rpc_urls: [`http://127.0.0.1:${node.port}`],
      send_url: null,
      block_time_seconds: 1,
      finality_depth: 65,
    })
    expect(await createPublicClient({ transport }).getBlockNumber()).toBe(7n)
    // All of this while none of the slow receivers had responded.
    expect(slow.received.length).toBe(mostOfOneBrand)
    for (const each of endpoints) expect(await deliveriesOf(slowBrand, each)).toEqual([])
    isOver.resolve()
    await workUntil(async () => slow.received.length === 20 * 16)
  })

  test("that failed ten times pause the endpoint, which an event reports, and continue when it is enabled", async () => {
    const customer = await createCustomer(service)
    let isMended = false
    const { url, received } = receiver(() => (isMended ? taken() : new Response(null, { status: 503 })))
    const endpoint = await endpointFor(customer, url)
    const eventId = await tellAbout(customer, newId())
    for (let attempt = 1; attempt <= 10; attempt++) {
      await workUntil(async () => (await queued(endpoint))[0]?.attempts === attempt)
      service.advance(27 * 60 * 60_000)
    }
    const path = `/v1/webhook-endpoints/${endpoint.id}`
    expect((await ask(service, `GET ${path}`, { as: customer.key })).body.status).toBe("paused")
    const { body } = await ask(service, "GET /v1/events?type=webhook_endpoint.paused", { as: customer.key })
    expect(body.events).toMatchObject([{ data: { id: endpoint.id, status: "paused" } }])
    await work()
    expect(received.length).toBe(10)
    isMended = true
    await ask(service, `PATCH ${path}`, { as: customer.key, body: { status: "enabled" } })
    await workUntil(async () => (await queued(endpoint)).length === 0)
    expect(received.at(-1)?.id).toBe(eventId)
    const [latest] = await deliveriesOf(customer, endpoint)
    expect(latest).toMatchObject({ event_id: eventId, attempt: 1, status: "delivered" })
  })

  test("of events recorded just before their endpoint is paused, by a caller or by failures, wait like all earlier ones", async () => {
    const customer = await createCustomer(service)
    const asked = receiver()
    const endpoint = await endpointFor(customer, asked.url)
    const before = await tellAbout(customer, newId())
    await become(customer, endpoint, "paused")
    await tellAbout(customer, newId())
    await work()
    await become(customer, endpoint, "enabled")
    await workUntil(async () => (await queued(endpoint)).length === 0)
    expect(asked.received.map(({ id }) => id)).toEqual([before])

    const other = await createCustomer(service)
    const [first, meanwhile] = [newId(), newId()]
    let isMended = false
    const refusing = receiver(async () => {
      if (isMended) return taken()
      await tellAbout(other, meanwhile)
      return new Response(null, { status: 503 })
    })
    const failing = await endpointFor(other, refusing.url)
    await tellAbout(other, first)
    await followEvents(service.context)
    const isTheirs = eq(webhookQueue.endpoint_id, failing.id)
    await service.behind.turn(({ tx }) => tx.update(webhookQueue).set({ attempts: 9 }).where(isTheirs))
    await until(async () => {
      await workers[0]?.tick()
      return (await rowOf(failing))[0]?.status === "paused"
    })
    await work()
    isMended = true
    await become(other, failing, "enabled")
    await workUntil(async () => (await queued(failing)).length === 0)
    expect(refusing.received.map(({ unit_id }) => unit_id)).toContain(meanwhile)
  })

  test("whose events get their position while the endpoint is being paused wait for it, too", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    const before = await tellAbout(customer, newId())
    let pausing: Promise<unknown> | undefined
    const db = watchedDatabase(service.context.db, async ({ text }) => {
      if (!text.startsWith('update "events" set "position"') || pausing) return
      pausing = become(customer, endpoint, "paused")
      // SQLite has one writer, so there the pause comes afterwards.
      if (engine.name === "postgres") await pausing
    })
    await followEvents({ ...service.context, db })
    expect(await pausing).toMatchObject({ status: 200 })
    await followEvents(service.context)
    await become(customer, endpoint, "enabled")
    await workUntil(async () => (await queued(endpoint)).length === 0)
    expect(received.map(({ id }) => id)).toEqual([before])
  })

  test("of many events recorded before their endpoint is paused all wait for it", async () => {
    const customer = await createCustomer(service)
    const asked = receiver()
    const endpoint = await endpointFor(customer, asked.url)
    const before = await tellAbout(customer, newId())
    await tellMany(customer, 600)
    await become(customer, endpoint, "paused")
    await followEvents(service.context)
    const waiting = await queued(endpoint)
    expect(waiting).toHaveLength(601)
    expect(waiting.map(({ event_id }) => event_id)).toContain(before)
  })

  test("are sent for the chosen types only, and a test event has a URL of its own and goes to its endpoint only", async () => {
    const customer = await createCustomer(service)
    const [narrow, wide] = [receiver(), receiver()]
    const endpoint = await endpointFor(customer, narrow.url, { event_types: ["claim.claimed"] })
    await endpointFor(customer, wide.url)
    await tellAbout(customer, newId())
    const path = `/v1/webhook-endpoints/${endpoint.id}`
    const { status, body, headers } = await ask(service, `POST ${path}/tests`, { as: customer.key })
    expect(status).toBe(201)
    const told = await ask(service, `GET ${headers.get("location")}`, { as: customer.key })
    expect([told.status, told.body]).toEqual([200, body])
    await workUntil(() => narrow.received.length > 0 && wide.received.length > 0)
    expect(narrow.received.map(({ id }) => id)).toEqual([String(body.id)])
    expect(wide.received.length).toBe(1)
    expect(narrow.received[0]?.body).not.toContain("whsec_")
    expect(body.is_test).toBe(exampleOf("webhook_endpoint.test").is_test)
  })

  test("cannot be tested while the endpoint is paused, but the same request succeeds once it is enabled", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, receiver().url)
    const path = `/v1/webhook-endpoints/${endpoint.id}`
    const tryOut = () =>
      ask(service, `POST ${path}/tests`, { as: customer.key, headers: { "Idempotency-Key": "a-test" } })
    await become(customer, endpoint, "paused")
    expect(await tryOut()).toMatchObject({ status: 409, code: "webhook_endpoint.paused" })
    await become(customer, endpoint, "enabled")
    expect((await tryOut()).status).toBe(201)
  })

  test("about a unit whose last delivery failed wait with it and are due no earlier", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, receiver(() => new Response("", { status: 500 })).url)
    const unit_id = newId()
    await tellAbout(customer, unit_id)
    await workUntil(async () => (await noted(endpoint)).length === 1)
    await tellAbout(customer, unit_id, 1)
    await tellAbout(customer, newId(), 2)
    await followEvents(service.context)
    const [failed, behind, other] = (await queued(endpoint)).sort((one, two) => one.position - two.position)
    expect(failed?.attempts).toBe(1)
    expect(behind?.due_at).toEqual(failed?.due_at)
    expect(other?.due_at).toEqual(new Date(0))
  })

  test("that wait in large numbers, for one unit or for many, do not slow down new events", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, "https://203.0.112.9/hook")
    const [unit_id, due_at] = [newId(), inHours(1)]
    await waitAt(endpoint, Array(15_000).fill(unit_id), due_at)
    await waitAt(endpoint, Array.from({ length: 15_000 }, newId), inHours(2))
    await service.behind.turn(async (turn) => {
      for (let n = 0; n < 1_200; n++) await recordEvent(turn, newsOf(customer, unit_id, n))
    })
    const reads = await readsOfQueue(followEvents)
    expect(reads.indexes).toEqual(["webhook_queue_by_line"])
    // Reads only the last entry of each unit's line, not all of it.
    expect(reads.rows).toBeLessThan(5_000)
    const added = (await queued(endpoint)).filter(({ position }) => position > 0)
    expect(added.map((row) => row.due_at)).toEqual(Array.from({ length: 1_200 }, () => due_at))
    await forget(endpoint)
  }, 60_000)

  test("of one endpoint are found by index even in large numbers, whatever the planner knows about another endpoint", async () => {
    const customer = await createCustomer(service)
    const [known, endpoint] = [
      await endpointFor(customer, "https://203.0.112.9/hook", { event_types: ["claim.claimed"] }),
      await endpointFor(customer, "https://203.0.112.9/other"),
    ]
    await waitAt(known, Array.from({ length: 20_000 }, newId), inHours(1))
    await learn()
    await tellMany(customer, 20_000)
    await followEvents(service.context)
    const reads = await readsOfQueue(async ({ db, clock }) => {
      const due = { at: clock(), limit: 512 }
      expect(await dueDeliveries(db.read, endpoint.id, due)).toHaveLength(512)
    })
    expect(reads.indexes).toContain("webhook_queue_due")
    expect(reads.rows).toBeLessThan(5_000)
    await forget(known)
    await forget(endpoint)
  }, 60_000)

  test("of a few units with long queues are found without reading the whole queue", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, "https://203.0.112.9/hook")
    const unit_ids = [newId(), newId(), newId()]
    await service.behind.turn(async (turn) => {
      for (let n = 0; n < 3_000; n++) await recordEvent(turn, newsOf(customer, String(unit_ids[n % 3]), n))
    })
    await followEvents(service.context)
    await learn()
    const reads = await readsOfQueue(async ({ db, clock }) => {
      const due = await dueDeliveries(db.read, endpoint.id, { at: clock(), limit: 512 })
      expect(due.map(({ line }) => line)).toEqual(unit_ids)
    })
    expect(reads.indexes).toContain("webhook_queue_by_line")
    expect(reads.rows).toBeLessThan(100)
    await forget(endpoint)
  }, 60_000)

  test("that are delivered are recorded without reading those of other units that wait for a retry", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, "https://203.0.112.9/hook")
    await tellMany(customer, 300)
    await followEvents(service.context)
    const due = { at: service.context.clock(), limit: 300 }
    const deliveries = await dueDeliveries(service.context.db.read, endpoint.id, due)
    await waitAt(endpoint, Array.from({ length: 30_000 }, newId), inHours(1))
    const answer = { response_status: 204, error: null, milliseconds: 1 }
    const attempted = deliveries.map((delivery) => ({ delivery, answer }))
    await learn()
    const reads = await readsOfQueue((context) =>
      inTurn(context, null, (turn) => recordOutcomes(turn, endpoint.id, attempted)),
    )
    expect(reads.indexes).toContain("webhook_queue_by_line")
    expect(reads.indexes).not.toContain("webhook_queue_due")
    expect(reads.rows).toBeLessThan(5_000)
    expect((await queued(endpoint)).length).toBe(30_000)
    await forget(endpoint)
  }, 60_000)

  test("that waited behind a failed one are sent as soon as that one is delivered, however late its retry was due", async () => {
    const customer = await createCustomer(service)
    let status = 500
    const endpoint = await endpointFor(customer, receiver(() => new Response("", { status })).url)
    const unit_id = newId()
    const first = await tellAbout(customer, unit_id)
    await workUntil(async () => (await noted(endpoint)).length === 1)
    await tellAbout(customer, unit_id, 1)
    await followEvents(service.context)
    // As if it had been retried at once while the next one was being queued.
    await service.behind.turn(({ tx }) =>
      tx
        .update(webhookQueue)
        .set({ due_at: new Date(0) })
        .where(eq(webhookQueue.event_id, first)),
    )
    status = 204
    await workUntil(async () => (await queued(endpoint)).length === 0)
    expect((await noted(endpoint)).length).toBe(3)
  })

  test("that a process whose clock was ahead put off for a month are retried at once, and no others", async () => {
    const customer = await createCustomer(service)
    let status = 500
    const opened = () => receiver(() => new Response("", { status }))
    const [ahead, usual] = [opened(), opened()]
    const [far, near] = [await endpointFor(customer, ahead.url), await endpointFor(customer, usual.url)]
    await tellAbout(customer, newId())
    await workUntil(async () => (await noted(far)).length === 1 && (await noted(near)).length === 1)
    await service.behind.turn(({ tx }) =>
      tx
        .update(webhookQueue)
        .set({ due_at: inHours(30 * 24) })
        .where(eq(webhookQueue.endpoint_id, far.id)),
    )
    status = 204
    await waitAt(near, [newId()], inHours(26))
    const before = await queued(near)
    const reads = await readsOfQueue(retryFarOff)
    expect(reads.indexes).toContain("webhook_queue_due")
    await workUntil(async () => (await queued(far)).length === 0)
    expect(ahead.received.length).toBe(2)
    expect(await queued(near)).toEqual(before)
    await forget(near)
  })

  test("of events that are about to be deleted are not replayed", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, receiver().url)
    await become(customer, endpoint, "paused")
    await tellAbout(customer, newId())
    service.advance(90 * 24 * 3_600_000 - 30 * 60_000)
    const young = await tellAbout(customer, newId(), 1)
    await replay(customer, endpoint, { created_after: "2020-01-01T00:00:00Z" })
    await followReplays(service.context)
    expect((await queued(endpoint)).map(({ event_id }) => event_id)).toEqual([young])
  })

  test("that were missed are sent again on request", async () => {
    const customer = await createCustomer(service)
    const before = await tellAbout(customer, newId())
    service.advance(1_000)
    const since = service.context.clock().toISOString()
    const missed = [await tellAbout(customer, newId()), await tellAbout(customer, newId())]
    await work()
    let isMended = true
    const { url, received } = receiver(() => (isMended ? taken() : new Response(null, { status: 500 })))
    const endpoint = await endpointFor(customer, url)
    const path = `POST /v1/webhook-endpoints/${endpoint.id}/replays`
    const made = await ask(service, path, { as: customer.key, body: { created_after: since } })
    expect(made.status).toBe(201)
    await workUntil(() => received.length === 2)
    expect(received.map(({ id }) => id).sort()).toEqual(missed.sort())
    await ask(service, path, { as: customer.key, body: { event_id: before } })
    await workUntil(() => received.length === 3)
    expect(received[2]?.id).toBe(before)
    const unitId = newId()
    const refused = await tellAbout(customer, unitId)
    const [behind, other] = [await tellAbout(customer, unitId), await tellAbout(customer, newId())]
    isMended = false
    await workUntil(
      async () => (await queued(endpoint)).filter(({ attempts }) => attempts === 1).length === 2,
    )
    isMended = true
    // A replay does not wait until the next attempt is due; a replay of one event brings only that event forward.
    await ask(service, path, { as: customer.key, body: { event_id: refused } })
    await workUntil(async () => (await queued(endpoint)).length === 1)
    expect(received.slice(-2).map(({ id }) => id)).toEqual([refused, behind])
    expect(await queued(endpoint)).toMatchObject([{ event_id: other, attempts: 1 }])
    await ask(service, path, {
      as: customer.key,
      body: { created_after: service.context.clock().toISOString() },
    })
    await workUntil(async () => (await queued(endpoint)).length === 0)
    const unknown = await ask(service, path, { as: customer.key, body: { event_id: newId() } })
    expect([unknown.status, unknown.code]).toEqual([404, "event.not_found"])
    for (const body of [{}, { event_id: before, created_after: since }])
      expect((await ask(service, path, { as: customer.key, body })).status).toBe(400)
  })

  test("that were missed are all replayed, whatever the clock of the recording process and whatever comes first in the feed", async () => {
    const customer = await createCustomer(service)
    const other = await createCustomer(service)
    service.advance(3_600_000)
    const since = service.context.clock()
    const tellAt = (who: Customer, milliseconds: number) => tellAbout(who, newId(), 0, milliseconds)
    // Another organization's event is the oldest, and the last to get a position.
    await tellAt(other, 5)
    const missed = [await tellAt(customer, 900_000), await tellAt(customer, 880_000)]
    await ask(service, "GET /v1/events?after=0", { as: customer.key })
    await work()
    missed.push(await tellAt(customer, 1_000_000))
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    await replay(customer, endpoint, { created_after: since.toISOString() })
    await workUntil(async () => (await queued(endpoint)).length === 0)
    expect(received.map(({ id }) => id).sort()).toEqual(missed.sort())
  })

  test("of events recorded just before a replay are sent, also for unsubscribed types and to a paused endpoint", async () => {
    const customer = await createCustomer(service)
    const [first, second] = [receiver(), receiver()]
    const tried = await endpointFor(customer, first.url)
    const narrow = await endpointFor(customer, second.url, { event_types: ["claim.claimed"] })
    const { body } = await ask(service, `POST /v1/webhook-endpoints/${tried.id}/tests`, { as: customer.key })
    await replay(customer, narrow, { event_id: body.id })
    await workUntil(async () => (await queued(narrow)).length === 0)
    expect(second.received.map(({ id }) => id)).toEqual([String(body.id)])

    await become(customer, tried, "paused")
    const since = service.context.clock().toISOString()
    const missed = await tellAbout(customer, newId())
    await replay(customer, tried, { created_after: since })
    await work()
    await become(customer, tried, "enabled")
    await workUntil(async () => (await queued(tried)).length === 0)
    expect(first.received.map(({ id }) => id)).toContain(missed)
  })

  test("that are replayed in large numbers are queued in steps, each endpoint in turn, while new events get their positions", async () => {
    const customers = [await createCustomer(service), await createCustomer(service)]
    const since = service.context.clock().toISOString()
    for (const customer of customers) await tellMany(customer, 1_201)
    await followEvents(service.context)
    const endpoints: Endpoint[] = []
    for (const customer of customers) {
      const endpoint = await endpointFor(customer, "https://203.0.112.9/hook")
      await replay(customer, endpoint, { created_after: since })
      endpoints.push(endpoint)
    }
    const waiting = async () => (await Promise.all(endpoints.map(queued))).map(({ length }) => length)
    await tellMany(customers[0] as Customer, 3)
    await followEvents(service.context)
    expect(await waiting()).toEqual([3, 0])
    expect(await followReplays(service.context)).toBe("more")
    expect(await waiting()).toEqual([503, 500])
    expect(await followReplays(service.context)).toBe("more")
    expect(await followReplays(service.context)).toBeUndefined()
    expect(await waiting()).toEqual([1_204, 1_201])
  })

  test("that are replayed are queued by one worker at a time, and none is skipped if another replay is requested meanwhile", async () => {
    const customer = await createCustomer(service)
    const [early, late] = [service.context.clock(), new Date(service.context.clock().getTime() + 1_000)]
    await tellMany(customer, 2)
    service.advance(1_000)
    await tellMany(customer, 501)
    await followEvents(service.context)
    const endpoint = await endpointFor(customer, "https://203.0.112.9/hook")
    await replay(customer, endpoint, { created_after: late.toISOString() })
    const step = (seen: WebhookEndpointRow) =>
      service.behind.turn((turn) => queueReplayStep(turn, seen, new Date(0)))
    const seen = async () => {
      const [replaying] = await replayingEndpoints(service.context.db.read, {})
      if (replaying?.id !== endpoint.id) throw new Error("another endpoint is sent events again")
      return replaying
    }
    const atFirst = await seen()
    expect([await step(atFirst), await step(atFirst)]).toEqual([true, false])
    expect((await queued(endpoint)).length).toBe(500)

    const afterOne = await seen()
    await replay(customer, endpoint, { created_after: early.toISOString() })
    expect(await step(afterOne)).toBe(false)
    while (await followReplays(service.context));
    expect((await queued(endpoint)).length).toBe(503)
  })

  test("that wait in large numbers are reset for retry in steps, and none is sent before the last step", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    await tellMany(customer, 1_001)
    await followEvents(service.context)
    await become(customer, endpoint, "paused")
    const due_at = new Date(service.context.clock().getTime() + 3_600_000)
    await service.behind.turn(({ tx }) =>
      tx.update(webhookQueue).set({ attempts: 9, due_at }).where(eq(webhookQueue.endpoint_id, endpoint.id)),
    )
    await become(customer, endpoint, "enabled")
    const anew = async () => (await queued(endpoint)).filter(({ attempts }) => attempts === 0).length
    expect(await anew()).toBe(500)
    await Promise.all(workers.map((worker) => worker.tick()))
    expect(await rowOf(endpoint)).toMatchObject([{ lease_owner: null }])
    expect(await followReplays(service.context)).toBe("more")
    expect(await anew()).toBe(1_000)
    expect(await followReplays(service.context)).toBeUndefined()
    expect(await anew()).toBe(1_001)
    await workUntil(async () => (await queued(endpoint)).length === 0)
    // Pausing recorded an event of its own.
    expect(received.length).toBe(1_002)
  }, 30_000)

  test("that are already due are not changed by a replay: they may be in flight", async () => {
    const customer = await createCustomer(service)
    const endpoint = await endpointFor(customer, "https://203.0.112.9/hook")
    const [due, later] = [await tellAbout(customer, newId()), await tellAbout(customer, newId())]
    await followEvents(service.context)
    const now = service.context.clock().getTime()
    const becomeDue = (event_id: string, at: number) =>
      service.behind.turn(({ tx }) =>
        tx
          .update(webhookQueue)
          .set({ due_at: new Date(at) })
          .where(eq(webhookQueue.event_id, event_id)),
      )
    await becomeDue(due, now - 1)
    await becomeDue(later, now + 60_000)
    for (const body of [{ event_id: due }, { created_after: new Date(now + 60_000).toISOString() }])
      await replay(customer, endpoint, body)
    const waiting = await queued(endpoint)
    expect(waiting.find(({ event_id }) => event_id === due)?.due_at.getTime()).toBe(now - 1)
    expect(waiting.find(({ event_id }) => event_id === later)?.due_at.getTime()).toBe(0)
  })

  test("to a deleted endpoint stop at once, and its rows are deleted in steps", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    await tellMany(customer, 501)
    await followEvents(service.context)
    const path = `/v1/webhook-endpoints/${endpoint.id}`
    await become(customer, endpoint, "paused")
    await replay(customer, endpoint, { created_after: "2026-01-01T00:00:00Z" })
    await service.behind.turn(({ tx }) => tx.insert(webhookDeliveries).values(notesOf(endpoint, 1_001)))
    const asked = { as: customer.key }
    expect((await ask(service, `DELETE ${path}`, asked)).status).toBe(204)

    const refused = [
      ask(service, `GET ${path}`, asked),
      ask(service, `DELETE ${path}`, asked),
      ask(service, `GET ${path}/deliveries`, asked),
      ask(service, `PATCH ${path}`, { ...asked, body: { status: "enabled" } }),
      ask(service, `POST ${path}/replays`, { ...asked, body: { created_after: "2026-01-01T00:00:00Z" } }),
      ask(service, `POST ${path}/tests`, asked),
      ask(service, `POST ${path}/secrets`, asked),
    ]
    for (const { status, code } of await Promise.all(refused))
      expect([status, code]).toEqual([404, "webhook_endpoint.not_found"])
    expect((await ask(service, "GET /v1/webhook-endpoints", asked)).body.webhook_endpoints).toEqual([])
    expect(await webhookStates(service.context.db.read, customer.caller.organization_id)).toEqual([])
    const actor = await findActor(service.context.db.read, endpoint.id)
    expect(actor?.status).toBe("deleted")

    await tellAbout(customer, newId())
    await work()
    expect(received).toEqual([])
    const left = async () => [(await queued(endpoint)).length, (await noted(endpoint)).length]
    expect(await left()).toEqual([501, 1_001])
    for (const rest of [
      [1, 501],
      [0, 1],
      [0, 0],
    ]) {
      expect(await reapEndpoints(service.context)).toBe("more")
      expect(await left()).toEqual(rest)
    }
    expect(await reapEndpoints(service.context)).toBeUndefined()
    expect(await rowOf(endpoint)).toEqual([])
  })

  test("in flight to an endpoint that is deleted are dropped and leave no rows behind", async () => {
    const customer = await createCustomer(service)
    const answer = Promise.withResolvers<void>()
    const { url, received } = receiver(async () => {
      await answer.promise
      return taken()
    })
    const endpoint = await endpointFor(customer, url)
    await tellAbout(customer, newId())
    await workUntil(() => received.length === 1)
    const asked = { as: customer.key }
    expect((await ask(service, `DELETE /v1/webhook-endpoints/${endpoint.id}`, asked)).status).toBe(204)
    while (await reapEndpoints(service.context));
    answer.resolve()
    await Promise.all(workers.map((worker) => worker.stop()))
    workers = workersOf(service)
    while (await reapEndpoints(service.context));
    expect([await queued(endpoint), await noted(endpoint), await rowOf(endpoint)]).toEqual([[], [], []])
  })

  test("are signed with the new secret and for a day with the old one, too", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    const { status, body } = await ask(service, `POST /v1/webhook-endpoints/${endpoint.id}/secrets`, {
      as: customer.key,
    })
    expect(status).toBe(201)
    await tellAbout(customer, newId())
    await workUntil(() => received.length === 1)
    service.advance(24 * 60 * 60_000 + 1)
    await tellAbout(customer, newId())
    await workUntil(() => received.length === 2)
    const signedBy = (index: number, secret: string) => {
      const { body: text, headers, id } = received[index] as Received
      const at = new Date(Number(headers.get("webhook-timestamp")) * 1_000)
      return headers
        .get("webhook-signature")
        ?.split(" ")
        .includes(new Webhook(secret).sign(id, at, text))
    }
    expect([signedBy(0, endpoint.secret), signedBy(0, String(body.secret))]).toEqual([true, true])
    expect([signedBy(1, endpoint.secret), signedBy(1, String(body.secret))]).toEqual([false, true])
  })

  test("are signed with at most five secrets: a further rotation is rejected until the oldest expires", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    const rotate = (key: string) =>
      ask(service, `POST /v1/webhook-endpoints/${endpoint.id}/secrets`, {
        as: customer.key,
        headers: { "Idempotency-Key": key },
      })
    const first = await rotate("1")
    service.advance(60_000)
    for (const key of ["2", "3", "4"]) expect((await rotate(key)).status).toBe(201)
    const refused = await rotate("5")
    expect([refused.status, refused.code]).toEqual([429, "rate_limit.exceeded"])
    expect(refused.headers.get("retry-after")).toBe(String(24 * 60 * 60 - 60))
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("0")
    expect((await rotate("1")).body).toEqual(first.body)
    await tellAbout(customer, newId())
    await workUntil(() => received.length === 1)
    expect(received[0]?.headers.get("webhook-signature")?.split(" ").length).toBe(5)

    service.advance((24 * 60 * 60 - 60) * 1_000)
    expect((await rotate("5")).status).toBe(201)
    expect((await rotate("6")).status).toBe(429)
  })

  test("of an endpoint whose secret cannot be decrypted fail, are reported to the operator once, and continue with a new secret", async () => {
    const customer = await createCustomer(service)
    const { url, received } = receiver()
    const endpoint = await endpointFor(customer, url)
    const { config } = service.context
    const service_secret = { current: "another secret of these tests, long enough", previous: null }
    const context = { ...service.context, config: { ...config, service_secret } }
    const startWorker = () => createDeliverer(context, { owner: newId(), checkpoint: () => {} })
    let worker = startWorker()
    const workWithoutIt = async (isSo: () => Promise<boolean>) =>
      await until(async () => {
        await followEvents(context)
        await worker.tick()
        return await isSo()
      })
    for (let n = 0; n < 3; n++) await tellAbout(customer, newId(), n)
    for (let attempt = 1; attempt <= 3; attempt++) {
      service.advance(3_600_000)
      await workWithoutIt(async () => (await queued(endpoint)).every(({ attempts }) => attempts === attempt))
    }
    // It may have read the secrets and not yet the time.
    await worker.stop()
    worker = startWorker()
    expect(received).toEqual([])
    expect(service.logged.filter((line) => line.includes(endpoint.id))).toEqual([
      expect.stringContaining("createWebhookSecret"),
    ])
    for (const delivery of await deliveriesOf(customer, endpoint))
      expect(delivery).toMatchObject({
        status: "failed",
        response_status: null,
        error: expect.stringContaining("is lost"),
      })

    const rotate = (turn: Turn) => rotateWebhookSecret(turn, service_secret, customer.caller, endpoint.id)
    const { secret } = await service.behind.turn(rotate)
    service.advance(3_600_000)
    await workWithoutIt(async () => (await queued(endpoint)).length === 0)
    expect(received).toHaveLength(3)
    await worker.stop()
    for (const { id, body, headers } of received) {
      const at = new Date(Number(headers.get("webhook-timestamp")) * 1_000)
      expect(headers.get("webhook-signature")).toBe(new Webhook(secret).sign(id, at, body))
    }
  })

  test("have at most 20 endpoints in an organization, whose secrets are shown once", async () => {
    const customer = await createCustomer(service)
    const url = "https://203.0.112.9/hook"
    const made = await Promise.all(
      Array.from({ length: 22 }, () =>
        ask(service, "POST /v1/webhook-endpoints", { as: customer.key, body: { url } }),
      ),
    )
    expect(made.filter(({ status }) => status === 201).length).toBe(20)
    expect(made.filter(({ code }) => code === "quota.exceeded").length).toBe(2)
    const list = await ask(service, "GET /v1/webhook-endpoints", { as: customer.key })
    expect(list.text).not.toContain("whsec_")
    const [one] = list.body.webhook_endpoints as Endpoint[]
    const asked = { as: customer.key }
    expect((await ask(service, `DELETE /v1/webhook-endpoints/${one?.id}`, asked)).status).toBe(204)
    await endpointFor(customer, url)
  })
})
