import { afterEach, describe, expect, spyOn, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { sql } from "drizzle-orm"
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { openWorld } from "../../src/engine/world.ts"
import { openObservationPages } from "../../src/operator/port/observation-pages.ts"
import { renderMetrics } from "../../src/operator/port/render-metrics.ts"
import { startOperatorServer } from "../../src/operator/port/server.ts"
import { type Config, loadConfig } from "../../src/platform/config.ts"
import type { Context } from "../../src/platform/context.ts"
import { countRequest } from "../../src/platform/metrics.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { awakeUntilSettled } from "../harness/awake.ts"
import { flawsOf, useBrowser } from "../harness/browser.ts"
import { until } from "../harness/engine.ts"
import { type Engine, engines, useEngine } from "../harness/engines.ts"
import { startLine } from "../harness/line.ts"
import { startRedis } from "../harness/redis.ts"

const alerts = join(import.meta.dir, "../../src/operator/port/alerts.yaml")

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

test("requests are counted by operation and status, and taps by outcome", async () => {
  countRequest({ operation: "createTap", status: 409, code: "chip.already_scanned", milliseconds: 12 })
  countRequest({ operation: null, status: 404, code: "not_found.resource", milliseconds: 1 })
  const told = await (await ask(await open({ withRedis: false }), "/metrics")).text()
  expect(told).toMatch(/service_requests_total\{operation="createTap",status="409"\} \d/)
  expect(told).toMatch(/service_requests_total\{operation="none",status="404"\} \d/)
  expect(told).toMatch(/service_taps_total\{outcome="chip.already_scanned"\} \d/)
})

test("outcomes of taps that an alert compares are counted from zero, because nothing is greater than a missing count", async () => {
  const compared = readFileSync(alerts, "utf8").match(/service_taps_total\{outcome="[^"]+"\}/g) ?? []
  expect(compared.length).toBeGreaterThan(1)
  const program = 'console.log(await (await import("./src/platform/metrics.ts")).registry.metrics())'
  const { stdout } = Bun.spawnSync([process.execPath, "-e", program], {
    cwd: join(import.meta.dir, "../.."),
  })
  const told = stdout.toString().split("\n")
  expect(compared.filter((each) => !told.includes(`${each} 0`))).toEqual([])
})

test("the state of the database and Redis is exported, and Redis is left out if none is configured", async () => {
  const withRedis = await (await ask(await open({ withRedis: true }), "/metrics")).text()
  expect(withRedis).toMatch(/^service_database_up 1$/m)
  expect(withRedis).toMatch(/^service_redis_up [01]$/m)
  const without = await (await ask(await open({ withRedis: false }), "/metrics")).text()
  expect(without).not.toMatch("service_redis_up")
  // With SQLite the database's clock is this process's own.
  expect(without).not.toMatch("service_clock_offset_seconds")
})

test("a Redis that is full or was demoted counts as down until it accepts writes again", async () => {
  const redis = await startRedis()
  closers.push(redis.stop)
  const url = await open({ withRedis: false, REDIS_URL: redis.url })
  const isUp = async () => /^service_redis_up 1$/m.test(await (await ask(url, "/metrics")).text())
  const untilUp = async (wanted: boolean) => {
    while ((await isUp()) !== wanted) await Bun.sleep(20)
  }
  await untilUp(true)
  for (const [refuse, take] of [
    ["config set maxmemory 1", "config set maxmemory 0"],
    ["replicaof 127.0.0.1 1", "replicaof no one"],
  ] as const) {
    await redis.command(refuse)
    await untilUp(false)
    await redis.command(take)
    await untilUp(true)
  }
}, 30_000)

test("a Redis that deletes keys when it is full is named in the log, and by nothing that is no line of the log", async () => {
  const redis = await startRedis()
  closers.push(redis.stop)
  await redis.command("config set maxmemory-policy allkeys-lru")
  const printed = spyOn(console, "warn").mockImplementation(() => {})
  closers.push(() => printed.mockRestore())
  const warnings: unknown[] = []
  const quiet = () => {}
  const log = {
    debug: quiet,
    info: quiet,
    warn: (fields: object, message: string) => void warnings.push([fields, message]),
    error: quiet,
  }
  const url = await open({ withRedis: false, REDIS_URL: redis.url }, { log })
  while (!/^service_wake_ups_waiting 0$/m.test(await (await ask(url, "/metrics")).text())) await Bun.sleep(20)
  expect(printed.mock.calls).toEqual([])
  expect(warnings).toEqual([[{ policy: "allkeys-lru" }, expect.stringContaining("noeviction")]])
}, 30_000)

test("a key without its role on the chain is reported by /readyz and counted", async () => {
  const { CHAINS } = silentChain()
  const text = "AUTHORIZER_KEY is the key of somebody who is not the factory's authorizer"
  const keyFaults = () => [{ chain_id: 31337, variable: "AUTHORIZER_KEY" as const, text }]
  const url = await open({ withRedis: false, CHAINS }, { keyFaults })
  const ready = await ask(url, "/readyz")
  expect([ready.status, await ready.text()]).toEqual([200, `ready\n${text}\n`])
  const told = await (await ask(url, "/metrics")).text()
  expect(told).toContain('service_key_faults{chain="31337",variable="AUTHORIZER_KEY"} 1')
  expect(told).toContain('service_key_faults{chain="31337",variable="SIGNER_KEYS"} 0')
})

test("a lane is exported as held or not while its key is configured, and not at all once its chain is removed", async () => {
  const { folder, CHAINS } = silentChain()
  const DATABASE_URL = `sqlite:${join(folder, "service.db")}`
  const told = async (environment: object) =>
    await (await ask(await open({ withRedis: false, DATABASE_URL, ...environment }), "/metrics")).text()
  const [before, after] = [generatePrivateKey(), generatePrivateKey()]
  const lane = `lane="31337:${privateKeyToAddress(before)}"`
  expect(await told({ CHAINS, SIGNER_KEYS: before })).toContain(`service_lane_held{${lane}} 0`)
  const rotated = await told({ CHAINS, SIGNER_KEYS: after })
  expect(rotated).not.toContain(`service_lane_held{${lane}}`)
  expect(rotated).toContain(`service_lane_status{${lane},status="open"} 1`)
  expect(await told({})).not.toContain(lane)
})

test("each provider is exported as up or not, by its number and never by its URL, by a process that has no work for it", async () => {
  const { url: live, ...node } = startNode()
  const url = await open({ withRedis: false, CHAINS: chainsOf(`${live}/secret-1`, deadUrl) })
  const told = async () => await (await ask(url, "/metrics")).text()
  const [first, second] = [1, 2].map(
    (number) => `service_chain_provider_up{chain="31337",number="${number}"}`,
  )
  await until(async () => (await told()).includes(`${second} 0`))
  expect(await told()).toContain(`${first} 1`)
  node.fail()
  await until(async () => (await told()).includes(`${first} 0`))
  node.recover()
  await until(async () => (await told()).includes(`${first} 1`))
  expect(await told()).not.toContain("secret-1")
}, 30_000)

test("the only provider of a chain is up while it answers, even if it failed the last question of the process itself", async () => {
  const { url: live, ...node } = startNode()
  const CHAINS = chainsOf(live)
  const world = await openWorld(configOf({ CHAINS }), tell)
  closers.push(world.close)
  node.fail()
  await expect(world.chains.get(31337)?.rpc.getChainId()).rejects.toThrow()
  expect(await renderMetrics(world, null)).toMatch(/^service_chain_provider_up\{.*number="1"\} 0$/m)
  node.recover()
  expect(await renderMetrics(world, null)).toMatch(/^service_chain_provider_up\{.*number="1"\} 1$/m)
})

test("a provider that has answered nothing for a minute is down between two rests, too, so that the alert on it lasts", async () => {
  const world = await openWorld(configOf({ CHAINS: chainsOf(deadUrl, deadUrl) }), tell)
  closers.push(world.close)
  const chain = world.chains.get(31337) as ConnectedChain
  const states = [
    ["healthy", 0, 1],
    ["behind", 0, 1],
    ["healthy", 59, 1],
    ["resting", 1, 0],
    ["healthy", 60, 0],
    ["gone", 3_600, 0],
  ] as const
  const health = () =>
    states.map(([state, troubled_seconds], index) => ({
      ...{ state, troubled_seconds },
      number: index + 1,
      said: null,
    }))
  const chains = new Map([[31337, { ...chain, providers: { ...chain.providers, health } }]])
  const told = await renderMetrics({ ...world, chains }, null)
  expect(told.match(/(?<=^service_chain_provider_up\{.*\} )\d$/gm)?.map(Number)).toEqual(
    states.map(([, , isUp]) => isUp),
  )
})

test("no alert on a rate of change fires on a process's first samples", () => {
  const rules = readFileSync(alerts, "utf8").split("- alert: ")
  const looking = rules.filter((rule) => rule.includes("changes("))
  expect(looking.length).toBeGreaterThan(0)
  for (const rule of looking) expect(/ for: (\w+)/.exec(rule)?.[1]).toBe(/\[(\w+)\]/.exec(rule)?.[1])
})

describe("on Postgres", () => {
  const databases = useEngine(engines[1] as Engine)

  test("every metric used in an alert exists, or appears with its first value", async () => {
    const rules = readFileSync(alerts, "utf8")
    const asked = new Set(rules.match(/\bservice_\w+/g))
    const DATABASE_URL = await databases.newDatabase()
    const told = await (await ask(await open({ withRedis: true, DATABASE_URL }), "/metrics")).text()
    expect(asked.size).toBeGreaterThan(8)
    expect([...asked].filter((name) => !told.includes(`# HELP ${name.replace(/_bucket$/, "")} `))).toEqual([])
  })

  test("the offset between the process's clock and the database's is exported", async () => {
    const DATABASE_URL = await databases.newDatabase()
    const hourMilliseconds = 3_600_000
    const offsetOf = async (wrong: number) => {
      const clock = () => new Date(Date.now() + wrong)
      const told = await (
        await ask(await open({ withRedis: false, DATABASE_URL }, { clock }), "/metrics")
      ).text()
      return Number(/^service_clock_offset_seconds (\S+)$/m.exec(told)?.[1])
    }
    for (const hours of [0, 1, -1]) {
      const since = performance.now()
      const offset = await offsetOf(hours * hourMilliseconds)
      // It is smaller by as long as the database takes to respond.
      const slack = (performance.now() - since) / 1_000
      expect(offset).toBeWithin(hours * 3_600 - slack - 0.5, hours * 3_600 + 0.5)
    }
  })

  test("the clock offset is exported only while the database responds", async () => {
    const DATABASE_URL = await databases.newDatabase()
    const db = databases.open(DATABASE_URL)
    const url = await open({ withRedis: false, DATABASE_URL }, { db })
    await db.close()
    const told = await (await ask(url, "/metrics")).text()
    expect(told).toMatch(/^service_database_up 0$/m)
    expect(told).not.toMatch("service_clock_offset_seconds")
  })

  test("what only the database knows is absent, not 0, where it does not respond: the alert on events without a place asks for the least", async () => {
    const DATABASE_URL = await databases.newDatabase()
    const db = databases.open(DATABASE_URL)
    const url = await open({ withRedis: false, DATABASE_URL }, { db })
    const valuesOf = async (): Promise<string[]> =>
      (await (await ask(url, "/metrics")).text()).match(/^service_\w+/gm) ?? []
    const known = [
      "service_apply_lag_seconds",
      "service_webhook_endpoints_given_up",
      "service_webhook_events_waiting",
      "service_events_unnumbered",
    ]
    const told = await valuesOf()
    expect(told).toEqual(expect.arrayContaining(known))
    // As its help says of a queue without an event.
    expect(told).not.toContain("service_webhook_oldest_seconds")
    await db.close()
    const left = await valuesOf()
    expect(left).toContain("service_database_up")
    expect(known.filter((name) => left.includes(name))).toEqual([])
  })

  test("a silent database is reported before the scraper times out", async () => {
    const DATABASE_URL = await databases.newDatabase()
    const throughLine = new URL(DATABASE_URL)
    const line = await startLine(Number(throughLine.port))
    throughLine.port = String(line.port)
    const db = databases.open(throughLine.href)
    const url = await open({ withRedis: false, DATABASE_URL }, { db })
    expect(await (await ask(url, "/metrics")).text()).toMatch(/^service_database_up 1$/m)
    line.fallSilent()
    const answer = ask(url, "/metrics").then((response) => response.text())
    const waited = await awakeUntilSettled(answer)
    line.stop()
    // Prometheus's default scrape timeout is ten seconds, after which it would report the process as down.
    expect(waited).toBeLessThan(10_000)
    const told = await answer
    expect(told).toMatch(/^service_database_up 0$/m)
    expect(told).not.toMatch("service_clock_offset_seconds")
  }, 60_000)

  test("a process is not ready while the database accepts no writes, and /readyz says why", async () => {
    const DATABASE_URL = await databases.newDatabase()
    const url = await open({ withRedis: false, DATABASE_URL }, { db: databases.open(DATABASE_URL) })
    const { read } = databases.open(DATABASE_URL)
    const database = sql.identifier(new URL(DATABASE_URL).pathname.slice(1))
    await read.execute(sql`alter database ${database} set default_transaction_read_only = on`)
    const refused = await ask(url, "/readyz")
    await read.execute(sql`alter database ${database} reset default_transaction_read_only`)
    const why =
      "Postgres cannot do this on this server (25006): cannot execute UPDATE in a read-only transaction\n"
    expect([refused.status, await refused.text()]).toEqual([503, why])
    const ready = await ask(url, "/readyz")
    expect([ready.status, await ready.text()]).toEqual([200, "ready\n"])
  })
})

test("the queue board is served under /queues with the content security policy it needs, and is read-only", async () => {
  const url = await open({ withRedis: true })
  let page = await ask(url, "/queues")
  while (page.status === 503) page = await ask(url, "/queues")
  expect(page.status).toBe(200)
  expect(page.headers.get("content-security-policy")).toMatch("font-src 'self'; ")
  expect(page.headers.get("content-security-policy")).toMatch("frame-ancestors 'none'")
  const shown = await page.text()
  expect(shown).toMatch('<base href="/queues/"')
  expect(shown).toMatch("Lifecycle console")
  expect(shown).not.toMatch("https:")
  const { queues } = (await (await ask(url, "/queues/api/queues")).json()) as {
    queues: { name: string; readOnlyMode: boolean }[]
  }
  expect(queues).toMatchObject([{ name: "wake-ups", readOnlyMode: true }])
})

describe("the queue board in a browser", () => {
  const { newPage } = useBrowser()

  test("uses the fonts and colours of this service, fits phone and desktop screens, and contacts no other host", async () => {
    const url = await open({ withRedis: true })
    let status = 503
    while (status === 503) status = (await ask(url, "/queues")).status
    const visited = await newPage()
    await visited.page.goto(`${url}/queues`)
    await visited.page.locator('main a[title="wake-ups"]').waitFor()
    // Transitions between pages would be captured halfway in the screenshots.
    await visited.page.addStyleTag({ content: "* { transition: none !important }" })
    const flaws = await flawsOf(visited, "queues")
    // Accessibility of the board's own elements is its authors' concern.
    expect(flaws.filter((flaw) => /too wide|is broken|is drawn in/.test(flaw))).toEqual([])
    expect(visited.requested).toContainEqual(expect.stringMatching(/\/fonts\/ibm-plex-sans-latin-.*\.woff2$/))
    expect(visited.requested.filter((address) => !address.startsWith(url))).toEqual([])
    expect(visited.complaints).toEqual([])
    const ground = "getComputedStyle(document.body).backgroundColor"
    const onBoard = await visited.page.evaluate(ground)
    await visited.page.goto(`${url}/login`)
    expect(onBoard).toBe(await visited.page.evaluate(ground))
  }, 60_000)
})

test("an unknown path is an HTML page for a browser and a line of text for other clients", async () => {
  const url = await open({ withRedis: false })
  const accept = "text/html,application/xhtml+xml"
  for (const path of ["/queues", "/nothing"]) {
    const page = await fetch(`${url}${path}`, { headers: { accept } })
    expect(page.status).toBe(404)
    expect(await page.text()).toMatch("<h1>Not found</h1>")
    expect(await (await ask(url, path)).text()).toMatch(/^(REDIS_URL is not set|There is nothing at).*\n$/)
  }
})

test("metrics and the queue board require the operator token if one is configured", async () => {
  const url = await open({ withRedis: false, OPERATOR_TOKEN: "0123456789abcdef0123456789abcdef" })
  expect((await ask(url, "/metrics")).status).toBe(401)
  expect((await ask(url, "/queues")).status).toBe(401)
  expect((await ask(url, "/readyz")).status).toBe(200)
})

type Settings = {
  withRedis: boolean
  REDIS_URL?: string
  OPERATOR_TOKEN?: string
  CHAINS?: string
  DATABASE_URL?: string
}

async function open({ withRedis, ...settings }: Settings, changes: Partial<Context> = {}): Promise<string> {
  const redis = withRedis ? await startRedis() : null
  if (redis) closers.push(redis.stop)
  const opened = await openWorld(configOf({ ...(redis && { REDIS_URL: redis.url }), ...settings }), tell)
  const world = { ...opened, context: { ...opened.context, ...changes } }
  const { pages, close } = await openObservationPages(world)
  const server = startOperatorServer(world.context, [pages])
  closers.push(world.close, close, server.stop)
  return server.url
}

function configOf(settings: Omit<Settings, "withRedis">): Config {
  const folder = mkdtempSync(join(tmpdir(), "metrics-"))
  closers.push(() => rmSync(folder, { recursive: true }))
  return loadConfig({
    DATA_DIR: folder,
    SERVICE_SECRET: "a secret of tests that is long enough",
    OPERATOR_PORT: "0",
    LOG_LEVEL: "silent",
    ...settings,
  })
}

function ask(url: string, path: string): Promise<Response> {
  return fetch(`${url}${path}`)
}

/** Nothing listens on port 1. */
const deadUrl = "http://127.0.0.1:1"

/** A chain whose only provider does not exist. */
function silentChain(): { folder: string; CHAINS: string } {
  const CHAINS = chainsOf(deadUrl)
  return { folder: dirname(CHAINS), CHAINS }
}

/** A chain with these providers, which are ranked each second at most. */
function chainsOf(...rpc_urls: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "chains-"))
  closers.push(() => rmSync(folder, { recursive: true }))
  const CHAINS = join(folder, "chains.json")
  const factory_address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
  writeFileSync(CHAINS, JSON.stringify({ 31337: { rpc_urls, factory_address, block_time_seconds: 0.25 } }))
  return CHAINS
}

/** A node that says 1 to everything, or fails. */
function startNode() {
  let isFailing = false
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    async fetch(request) {
      if (isFailing) return new Response("out of order", { status: 500 })
      const { id } = (await request.json()) as { id: number }
      return Response.json({ jsonrpc: "2.0", id, result: "0x1" })
    },
  })
  closers.push(() => server.stop(true))
  return {
    url: `http://127.0.0.1:${server.port}`,
    fail: () => {
      isFailing = true
    },
    recover: () => {
      isFailing = false
    },
  }
}
