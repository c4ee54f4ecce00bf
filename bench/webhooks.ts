import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { count } from "drizzle-orm"
import { webhookDeliveries } from "../src/db/event-schema.ts"
import { recordEvent } from "../src/engine/events/record.ts"
import { openWorld } from "../src/engine/world.ts"
import { loadConfig, processEnvironment } from "../src/platform/config.ts"
import { inTurn } from "../src/platform/context.ts"
import { newId } from "../src/platform/ids.ts"
import { tell } from "../src/resources/news/tell.ts"
import { createOrganization } from "../src/resources/organizations/service.ts"
import { createWebhookEndpoint } from "../src/resources/webhook-endpoints/service.ts"
import { startPostgres } from "../test/harness/postgres.ts"
import { startWorkers } from "../workers/start.ts"
import { report } from "./report.ts"

/**
 * How many events a second are told, numbered, signed and delivered by one process to receivers in another: to one that
 * answers at once, to one that takes a tenth of a second, and to five.
 */
const told = 5_000
const ofUnits = 500

type Case = { name: string; engine: "sqlite" | "postgres"; endpoints: number; answer_milliseconds: number }
const cases: Case[] = [
  { name: "SQLite, one endpoint", engine: "sqlite", endpoints: 1, answer_milliseconds: 0 },
  { name: "SQLite, one that takes 100 ms", engine: "sqlite", endpoints: 1, answer_milliseconds: 100 },
  { name: "SQLite, five endpoints", engine: "sqlite", endpoints: 5, answer_milliseconds: 0 },
  { name: "Postgres, one endpoint", engine: "postgres", endpoints: 1, answer_milliseconds: 0 },
  { name: "Postgres, one that takes 100 ms", engine: "postgres", endpoints: 1, answer_milliseconds: 100 },
]

const receivers = `Bun.serve({ hostname: "127.0.0.1", port: 0, async fetch(request) {
  await request.text()
  const { pathname } = new URL(request.url)
  await Bun.sleep(Number(pathname.slice(1)))
  return new Response()
} })`
const child = Bun.spawn([process.execPath, "-e", `process.stdout.write(String((${receivers}).port))`], {
  stdout: "pipe",
})
const port = new TextDecoder().decode((await child.stdout.getReader().read()).value)
const folder = mkdtempSync(join(tmpdir(), "bench-webhooks-"))
const cluster = await startPostgres({ fsync: "on" })
const results: Awaited<ReturnType<typeof measure>>[] = []
try {
  for (const each of cases) results.push(await measure(each))
} finally {
  child.kill()
  await cluster.stop()
  rmSync(folder, { recursive: true })
}
const lines = results.map(
  ({ name, deliveries_per_second, milliseconds_of_processor }) =>
    `  ${name.padEnd(34)} ${deliveries_per_second} a second, ${milliseconds_of_processor} ms of processor time each\n`,
)
report(results, `deliveries of webhooks\n${lines.join("")}`)

/** Beside the rate, the processor time of this process for each, which says the same on a machine that is busy. */
async function measure({ name, engine, endpoints, answer_milliseconds }: Case) {
  const config = loadConfig({
    SERVICE_SECRET: "a secret of benchmarks, long enough",
    DATABASE_URL: engine === "sqlite" ? `sqlite:${join(folder, `${name}.db`)}` : cluster.url("postgres"),
    DATA_DIR: folder,
    LOG_LEVEL: "silent",
    BUN_CONFIG_MAX_HTTP_REQUESTS: processEnvironment.BUN_CONFIG_MAX_HTTP_REQUESTS,
  })
  const world = await openWorld(config, tell)
  const { context } = world
  const { id: organization_id } = await inTurn(context, null, (turn) =>
    createOrganization(turn, { name: "Bench", default_chain_id: null, allowed_chain_ids: [] }),
  )
  const caller = { organization_id, kind: "api_key" as const, credential_id: newId(), session: null }
  const url = `http://127.0.0.1:${port}/${answer_milliseconds}`
  for (let made = 0; made < endpoints; made++)
    await inTurn(context, null, (turn) =>
      createWebhookEndpoint(turn, config.service_secret, caller, { body: { url }, url }),
    )
  const delivered = async () => {
    const [noted] = await context.db.read.select({ there: count() }).from(webhookDeliveries)
    return Number(noted?.there)
  }
  const before = await delivered()
  const unitIds = Array.from({ length: ofUnits }, newId)
  const workers = startWorkers(world)
  const begin = performance.now()
  const used = process.cpuUsage()
  const tellOne = (number: number) =>
    inTurn(
      context,
      null,
      (turn) =>
        recordEvent(turn, {
          type: "tap.recorded",
          organization_id,
          unit_id: String(unitIds[number % ofUnits]),
          collection_id: null,
          is_test: false,
          data: { chip_id: "04A1B2C3D4", counter: number },
          endpoint_id: null,
        }),
      "read committed",
    )
  for (let first = 0; first < told; first += 100)
    await Promise.all(Array.from({ length: 100 }, (_, index) => tellOne(first + index)))
  while ((await delivered()) < before + told * endpoints) await Bun.sleep(10)
  const seconds = (performance.now() - begin) / 1_000
  const { user, system } = process.cpuUsage(used)
  await workers.stop()
  await world.close()
  return {
    name,
    deliveries_per_second: Math.round((told * endpoints) / seconds),
    milliseconds_of_processor: Math.round((user + system) / (told * endpoints)) / 1_000,
  }
}
