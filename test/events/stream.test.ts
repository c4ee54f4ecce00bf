import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createClient } from "../../clients/typescript/client.ts"
import { createApp } from "../../src/api/app.ts"
import { routes } from "../../src/api/routes.ts"
import { newId } from "../../src/platform/ids.ts"
import { issueApiKey, revokeApiKey } from "../../src/resources/api-keys/service.ts"
import { feedWatchOf } from "../../src/resources/events/watch.ts"
import { suspendOrganization } from "../../src/resources/organizations/service.ts"
import { createUnit } from "../../src/resources/units/service.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { awakeUntilSettled } from "../harness/awake.ts"
import { until } from "../harness/engine.ts"
import { engines } from "../harness/engines.ts"
import { activeCollection } from "../harness/services.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

let service: HttpService
let customer: Customer
let collection_id: string
beforeAll(async () => {
  service = await startService()
  customer = await createCustomer(service)
  collection_id = (await activeCollection(service.behind, customer.caller)).id
})
afterAll(() => service.close())

const makeUnit = () => service.behind.turn((turn) => createUnit(turn, customer.caller, { collection_id }))

async function open(
  query = "",
  headers: Record<string, string> = {},
  key = customer.key,
  base = service.base_url,
) {
  const response = await fetch(`${base}/v1/events/stream${query}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  let text = ""
  return {
    response,
    /** Returns all text so far, once it contains the words. */
    async until(words: string) {
      while (!text.includes(words)) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`the stream ended without ${words}: ${text}`)
        text += new TextDecoder().decode(value)
      }
      return text
    },
    async end() {
      while (!(await reader.read()).done);
    },
    close: () => reader.cancel(),
  }
}

test("the stream sends events from now on, as server-sent events", async () => {
  const before = await makeUnit()
  const stream = await open()
  expect(stream.response.headers.get("content-type")).toStartWith("text/event-stream")
  expect(stream.response.headers.get("cache-control")).toBe("no-store")
  await stream.until(": the feed")
  const unit = await makeUnit()
  const text = await stream.until("unit.created")
  const { body } = await ask(service, "GET /v1/events?limit=1", { as: customer.key })
  const [event] = body.events as { id: string }[]
  expect(text).toContain(`id: ${event?.id}\nevent: unit.created\ndata: ${JSON.stringify(event)}\n\n`)
  expect(text).toContain(unit.id)
  expect(text).not.toContain(before.id)
  await stream.close()
})

test("a stream continues after the given event and has only the requested types", async () => {
  const { body } = await ask(service, "GET /v1/events?after=0&limit=1", { as: customer.key })
  const [first] = body.events as { id: string }[]
  const one = await makeUnit()
  for (const [query, headers] of [
    [`?after=${first?.id}`, {}],
    ["?after=0", { "last-event-id": String(first?.id) }],
  ] as const) {
    const stream = await open(query, headers)
    expect(await stream.until(one.id)).not.toContain("collection.active")
    await stream.close()
  }
  const all = await open("?after=0")
  expect(await all.until(one.id)).toContain("event: collection.active")
  await all.close()
  const filtered = await open("?after=0&type=unit.created")
  expect(await filtered.until(one.id)).not.toContain("event: collection.active")
  await filtered.close()
})

test("a stream begins with its position, so that a client cut off before the first event misses nothing", async () => {
  await makeUnit()
  const first = await open()
  const [, id] = /^id: (\S+)$/m.exec(await first.until("\n\n")) ?? []
  await first.close()
  const missed = await makeUnit()
  const again = await open("", { "last-event-id": String(id) })
  expect(await again.until(missed.id)).toContain("unit.created")
  await again.close()
  // In an empty feed it begins at the start.
  const newcomer = await createCustomer(service)
  const empty = await open("", {}, newcomer.key)
  expect(await empty.until("\n\n")).toContain("id: 0\n\n")
  await empty.close()
})

test("a stream that cannot be opened is rejected like any other request", async () => {
  expect((await ask(service, "GET /v1/events/stream")).code).toBe("auth.unauthorized")
  const unknown = await ask(service, `GET /v1/events/stream?after=${newId()}`, { as: customer.key })
  expect([unknown.status, unknown.fields]).toEqual([400, ["after"]])
  for (const id of ["nope", newId()]) {
    const headers = { "last-event-id": id }
    const refused = await ask(service, "GET /v1/events/stream", { as: customer.key, headers })
    expect([refused.status, refused.fields]).toEqual([400, ["after"]])
    expect(refused.text).toContain("the header Last-Event-ID names an event that is not kept")
  }
  const { token } = await createVisitor(service, customer)
  expect((await ask(service, "GET /v1/events/stream", { as: token })).status).toBe(401)
})

/** The longest that the end of a key may take. */
const promisedMilliseconds = 5_000

test.each<[string, (other: Customer) => unknown]>([
  ["its key is revoked", ({ key_id }) => service.behind.turn((turn) => revokeApiKey(turn, key_id))],
  ["its key expires", () => service.advance(60_000)],
  [
    "its organization is suspended",
    ({ caller }) => service.behind.turn((turn) => suspendOrganization(turn, caller.organization_id)),
  ],
])(
  "a stream ends when %s",
  async (_, happens) => {
    const other = await createCustomer(service)
    const { organization_id } = other.caller
    const expires_at = new Date(service.context.clock().getTime() + 60_000)
    const { id, key } = await service.behind.turn((turn) =>
      issueApiKey(turn, { organization_id, name: null, expires_at }),
    )
    const stream = await open("", {}, key)
    await stream.until(": the feed")
    await happens({ ...other, key_id: id })
    expect(await awakeUntilSettled(stream.end())).toBeLessThan(promisedMilliseconds)
  },
  30_000,
)

test("a reader that connects while keys are being checked is not taken for one with an expired key", async () => {
  const [first, second] = [await createCustomer(service), await createCustomer(service)]
  const looks = [1, 2].map(() => Promise.withResolvers<void>())
  let looked = 0
  const db = watchedDatabase(service.context.db, ({ text }) => {
    if (!text.includes('from "api_keys"')) return
    if (looked === 0) join(second)
    looks[looked++]?.resolve()
  })
  const ended: string[] = []
  const watch = feedWatchOf({ ...service.context, db })
  const leaves: (() => void)[] = []
  function join({ caller: { organization_id, credential_id } }: Customer): void {
    const end = () => void ended.push(credential_id)
    leaves.push(watch.add({ organization_id, credential_id, grown() {}, end }))
  }
  join(first)
  for (const { promise } of looks) await promise
  expect(ended).toEqual([])
  for (const leave of leaves) leave()
})

test("a stream is not woken by the events of other organizations", async () => {
  const other = await createCustomer(service)
  const watch = feedWatchOf({ ...service.context })
  const told = { mine: 0, other: 0 }
  const leaves = [customer, other].map(({ caller }) => {
    const grown = () => {
      told[caller === customer.caller ? "mine" : "other"] += 1
    }
    return watch.add({ ...caller, grown, end() {} })
  })
  // The first look wakes everybody, since it cannot know what is new.
  await until(async () => told.other > 0)
  await activeCollection(service.behind, other.caller)
  await until(async () => told.other > 1)
  expect(told.mine).toBe(1)
  await makeUnit()
  await until(async () => told.mine > 1)
  for (const leave of leaves) leave()
})

test("a stream ends when the process stops", async () => {
  const stopping = new AbortController()
  const app = createApp(service.context, routes, stopping.signal).listen({ hostname: "127.0.0.1", port: 0 })
  const last = await open("", {}, customer.key, `http://127.0.0.1:${app.server?.port}`)
  await last.until(": the feed")
  stopping.abort()
  await last.end()
  await app.stop(true)
}, 30_000)

test("every 15 seconds a stream sends a heartbeat, however many events its reader or others receive", async () => {
  let told = 0
  const telling = ["?type=collection.failed", ""].map(async (query) => {
    const since = performance.now()
    const stream = await open(query)
    await stream.until(": still here")
    const milliseconds = performance.now() - since
    await stream.close()
    told += 1
    return milliseconds
  })
  for (let pauses = 0; told < 2 && pauses < 40; pauses++) {
    await makeUnit()
    await Bun.sleep(500)
  }
  expect(told).toBe(2)
  for (const milliseconds of await Promise.all(telling)) expect(milliseconds).toBeGreaterThanOrEqual(15_000)
}, 60_000)

describe.each(engines)("on $name", (engine) => {
  let full: HttpService
  beforeAll(async () => {
    full = await startService(engine)
  }, 60_000)
  afterAll(() => full.close())

  test("an organization has at most 100 streams open, is told when to retry, and can reuse a closed stream's place at once", async () => {
    const { key } = await createCustomer(full)
    const another = () => open("", {}, key, full.base_url)
    const opened = await Promise.all(Array.from({ length: 101 }, another))
    const refused = opened.filter(({ response }) => response.status !== 200)
    expect(refused.map(({ response }) => [response.status, response.headers.get("retry-after")])).toEqual([
      [429, "5"],
    ])
    await opened.find(({ response }) => response.status === 200)?.close()
    const since = performance.now()
    let next = await another()
    while (next.response.status !== 200 && performance.now() - since < 5_000) next = await another()
    expect(next.response.status).toBe(200)
    for (const { close } of [...opened, next]) await close()
  }, 30_000)
})

test("the client can list past events and watch new ones", async () => {
  const api = createClient({ base_url: service.base_url, token: customer.key })
  const listed: string[] = []
  for await (const event of api.events.list({ type: "unit.created" })) listed.push(event.id)
  const { body } = await ask(service, "GET /v1/events?type=unit.created&after=0&limit=100", {
    as: customer.key,
  })
  expect(listed).toEqual((body.events as { id: string }[]).map(({ id }) => id))
  const leave = new AbortController()
  const watched: string[] = []
  const since = String(listed.at(-2))
  for await (const event of api.events.stream(
    { after: since, type: "unit.created" },
    { signal: leave.signal },
  )) {
    watched.push(event.id)
    if (watched.length === 1) await makeUnit()
    if (watched.length === 2) leave.abort()
  }
  expect(watched[0]).toBe(String(listed.at(-1)))
  expect(watched.length).toBe(2)
  await expect(api.events.stream({ after: newId() }).next()).rejects.toThrow("validation.failed")
})
