import { afterEach, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createApp } from "../../src/api/app.ts"
import type { TransactionRow } from "../../src/db/schema.ts"
import type { Effect } from "../../src/engine/jobs/job.ts"
import { noteStep } from "../../src/engine/lanes/note-step.ts"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { createTracing, type Tracing } from "../../src/platform/tracing.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { awakeUntilSettled } from "../harness/awake.ts"
import { until } from "../harness/engine.ts"

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

test("a request becomes a span in its caller's trace, is exported at shutdown, and contains no secret", async () => {
  const collector = startCollector()
  const service = await start(collector.url)
  const response = await ask(service.base_url, {
    authorization: "Bearer hunter2",
    traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    tracestate: "vendor=hunter2",
  })
  expect(response.status).toBe(401)
  await service.close()
  expect(collector.paths).toEqual(["/v1/traces"])
  expect(spansIn(collector.bodies)).toMatchObject([
    {
      traceId,
      parentSpanId: "b7ad6b7169203331",
      name: "listUnits",
      kind: 2,
      attributes: {
        "http.response.status_code": 401,
        "error.type": ((await response.json()) as { error: { code: string } }).error.code,
        request_id: response.headers.get("x-request-id"),
      },
    },
  ])
  expect(collector.bodies.join()).not.toContain("hunter2")
})

test("an invalid or unsampled traceparent has no effect", async () => {
  const collector = startCollector()
  const service = await start(collector.url)
  for (const traceparent of ["", "nonsense", `00-${traceId}-b7ad6b7169203331-00`])
    expect((await ask(service.base_url, { traceparent })).status).toBe(401)
  await service.close()
  const spans = spansIn(collector.bodies)
  expect(spans).toHaveLength(2)
  expect(spans.map((span) => span.traceId)).not.toContain(traceId)
})

test("a step of a transaction becomes a span that links the requests behind it, each once", async () => {
  const collector = startCollector()
  const service = await start(collector.url)
  const transaction = { id: "t", lane_id: "lane", kind: "issueUnit", nonce: 7 } as TransactionRow
  const members = ["req_1", null, "req_2", "req_1"].map((request_id) => ({ request_id }) as Effect)
  const step = { name: "confirm", since: performance.now(), outcome: "confirmed" } as const
  noteStep(service.world.context, step, transaction, members)
  await service.close()
  expect(spansIn(collector.bodies)).toMatchObject([
    {
      name: "issueUnit.confirm",
      attributes: {
        lane_id: "lane",
        transaction_id: "t",
        kind: "issueUnit",
        nonce: 7,
        outcome: "confirmed",
        request_ids: ["req_1", "req_2"],
      },
    },
  ])
})

test("a collector that never responds delays no request, and shutdown by little more than a second", async () => {
  const silent = Bun.serve({ port: 0, fetch: () => new Promise<Response>(() => {}), idleTimeout: 0 })
  closers.push(() => silent.stop(true))
  const service = await start(`http://127.0.0.1:${silent.port}`)
  expect((await ask(service.base_url)).status).toBe(401)
  expect(await awakeUntilSettled(service.close())).toBeLessThan(3_000)
})

test("an unreachable collector fails no request and no shutdown", async () => {
  const gone = Bun.serve({ port: 0, fetch: () => new Response() })
  const url = `http://127.0.0.1:${gone.port}`
  await gone.stop(true)
  const service = await start(url)
  expect((await ask(service.base_url)).status).toBe(401)
  await service.close()
})

const losses = ["some traces may be lost: the collector rejects spans, or is too slow for them"]

test("spans that the collector rejects in part are logged once in a minute, without its message", async () => {
  const partialSuccess = { rejectedSpans: "2", errorMessage: "hunter2" }
  const collector = startCollector(async () => Response.json({ partialSuccess }))
  const { log, logged, warned } = startLog()
  const tracing = await createTracing(collector.url, log)
  record(tracing, 1_025)
  await tracing.close()
  expect(collector.bodies).toHaveLength(3)
  expect(warned).toEqual(losses)
  expect(logged.join()).not.toContain("hunter2")
})

test("spans that come faster than the collector takes them are logged", async () => {
  const { promise: isAwake, resolve: awaken } = Promise.withResolvers<void>()
  const collector = startCollector(async () => {
    await isAwake
    return Response.json({})
  })
  const { log, warned } = startLog()
  const tracing = await createTracing(collector.url, log)
  record(tracing, 3_000)
  expect(warned).toEqual([])
  awaken()
  await until(async () => collector.bodies.length > 1)
  record(tracing, 1)
  expect(warned).toEqual(losses)
  await tracing.close()
})

test.each([
  ["", false],
  ["http://127.0.0.1:1", true],
])("with endpoint %p, the packages being loaded is %p", async (endpoint, isLoaded) => {
  const folder = mkdtempSync(join(tmpdir(), "tracing-"))
  closers.push(() => rmSync(folder, { recursive: true }))
  const script = `
    import { loadConfig, processEnvironment } from "./src/platform/config.ts"
    import { openWorld } from "./src/engine/world.ts"
    import { tell } from "./src/resources/news/tell.ts"
    import "./src/api/app.ts"
    import "./workers/start.ts"
    const world = await openWorld(loadConfig(processEnvironment), tell)
    await world.close()
    const loaded = Object.keys(require.cache)
    process.stdout.write(String(loaded.some((path) => path.includes("@opentelemetry/sdk-trace"))))
  `
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: dirname(dirname(import.meta.dir)),
    env: { ...settings(folder), OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
    stdout: "pipe",
  })
  expect(await child.stdout.text()).toBe(String(isLoaded))
})

const traceId = "0af7651916cd43dd8448eb211c80319c"

function settings(folder: string) {
  return { DATA_DIR: folder, SERVICE_SECRET: "a secret of tests that is long enough", LOG_LEVEL: "silent" }
}

async function start(endpoint: string) {
  const folder = mkdtempSync(join(tmpdir(), "tracing-"))
  closers.push(() => rmSync(folder, { recursive: true }))
  const world = await openWorld(
    loadConfig({ ...settings(folder), OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }),
    tell,
  )
  const app = createApp(world.context).listen({ hostname: "127.0.0.1", port: 0 })
  const close = async () => {
    await app.stop(true)
    await world.close()
  }
  return { world, base_url: `http://127.0.0.1:${app.server?.port}`, close }
}

function ask(baseUrl: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${baseUrl}/v1/units`, { headers })
}

function startLog() {
  const logged: string[] = []
  const warned: string[] = []
  const write = (fields: object, message: string) => void logged.push(JSON.stringify({ ...fields, message }))
  const warn = (fields: object, message: string) => {
    warned.push(message)
    write(fields, message)
  }
  return { log: { debug: write, info: write, warn, error: write }, logged, warned }
}

function record(tracing: Tracing, count: number): void {
  const span = {
    name: "listUnits",
    kind: "server",
    attributes: {},
    is_failed: false,
    traceparent: null,
  } as const
  for (let index = 0; index < count; index++) tracing.record({ ...span, since: performance.now() })
}

/** An OTLP/HTTP collector that keeps what it receives. */
function startCollector(answer = async () => Response.json({})) {
  const paths: string[] = []
  const bodies: string[] = []
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      paths.push(new URL(request.url).pathname)
      bodies.push(await request.text())
      return await answer()
    },
  })
  closers.push(() => server.stop(true))
  return { url: `http://127.0.0.1:${server.port}`, paths, bodies }
}

type Value = { stringValue?: string; intValue?: number; arrayValue?: { values: Value[] } }
type Sent = { attributes: { key: string; value: Value }[]; [key: string]: unknown }

/** The spans of OTLP messages, with their attributes as an object. */
function spansIn(bodies: string[]): Record<string, unknown>[] {
  return bodies
    .map((body) => JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: Sent[] }[] }[] })
    .flatMap(({ resourceSpans }) => resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans)
    .map((span) => ({
      ...span,
      attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, plain(value)])),
    }))
}

function plain({ stringValue, intValue, arrayValue }: Value): unknown {
  return arrayValue ? arrayValue.values.map(plain) : (stringValue ?? intValue)
}
