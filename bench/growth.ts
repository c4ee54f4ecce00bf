import { Database as File } from "bun:sqlite"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createApp } from "../src/api/app.ts"
import { openWorld } from "../src/engine/world.ts"
import { loadConfig } from "../src/platform/config.ts"
import { tell } from "../src/resources/news/tell.ts"
import { startChild, stopChildren } from "./load/child.ts"
import { quantile } from "./load/client.ts"
import { type Fixture, fillDatabase } from "./load/fixture.ts"
import { numberGiven, report } from "./report.ts"

/**
 * Whether requests take longer where there is more: the same requests, in turns, on a database with few taps and on
 * one with many, one at a time and without sockets. `--taps` says how many there are in the large one.
 */
const taps = numberGiven("taps", 1_000_000)
const few = { taps: 10_000, chips: 1_000, organizations: 2 }
const many = { taps, chips: taps / 10, organizations: 200 }
const rounds = 60

type Size = typeof few

/** A database of this size with an organization of its own that is asked, and a quota on everything. */
async function open(name: string, size: Size) {
  const folder = mkdtempSync(join(tmpdir(), `bench-growth-${name}-`))
  const path = join(folder, "service.db")
  const made = await fillDatabase(folder, `sqlite:${path}`, 500)
  fillWithTaps(path, made, size)
  const environment = { ...made.environment, LOG_LEVEL: "silent" }
  const world = await openWorld(loadConfig(environment), tell)
  const app = createApp(world.context)
  return { folder, path, made, environment, world, app }
}

type Opened = Awaited<ReturnType<typeof open>>

/** Rows as they would stand, past the services: half of all taps, chips and units are the asked organization's. */
function fillWithTaps(path: string, { organization_id, collection_id }: Fixture, size: Size): void {
  const file = new File(path)
  file.exec("pragma foreign_keys = off")
  file.exec("pragma synchronous = off")
  file.exec("begin")
  const numbers = (count: number) =>
    `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})`
  const id = (kind: number, n: string) => `printf('0192f000-0000-7000-${8000 + kind}-%012x', ${n})`
  const owner = (n: string) =>
    `case ${n} % 2 when 0 then '${organization_id}' else ${id(0, `${n} % ${size.organizations}`)} end`
  const at = (n: string, seconds: number) =>
    `strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + ${n} * ${seconds}, 'unixepoch')`
  const chip = (n: string) => `printf('F%09X', ${n})`
  file.exec(`${numbers(size.chips)} insert into units (id, organization_id, collection_id, external_id, token_status, serial,
    claimed, created_at) select ${id(1, "n")}, ${owner("n")}, '${collection_id}', 'old-' || n, 'active', 100000000 + n, 0,
    ${at("n", 1)} from numbers`)
  file.exec(`${numbers(size.chips)} insert into chips (chip_id, organization_id, is_test, uid, wrapped_keys, key_version, counter,
    emitted_counter, scan_count, unit_id, paired_at, created_at) select ${chip("n")}, ${owner("n")}, 0, printf('F%013X', n), '',
    1, 10, 10, 10, ${id(1, "n")}, ${at("n", 1)}, ${at("n", 1)} from numbers`)
  const seconds = Math.max(1, Math.floor(60_000_000 / size.taps))
  const tapped = `(n % ${size.chips} + 1)`
  file.exec(`${numbers(size.taps)} insert into taps select ${id(2, "n")}, ${owner(tapped)}, ${chip(tapped)}, ${id(1, tapped)}, 0, 1,
    n / ${size.chips}, 0, ${at("n", seconds)} from numbers`)
  file.exec(
    `update organizations set quota_units = 100000000, quota_chips = 100000000, quota_taps_per_month = 100000000`,
  )
  file.exec("commit")
  file.close()
}

const requests: Record<string, (made: Fixture, round: number) => Request> = {
  "POST /v1/taps, with a quota": (made) => write(made, "/v1/taps", made.nextTap()),
  "POST /v1/units, with a quota": (made) => write(made, "/v1/units", { collection_id: made.collection_id }),
  "GET /v1/units/{id}": (made, round) => read(made, `/v1/units/${made.unit_ids[round]}`),
  "GET /v1/taps": (made) => read(made, "/v1/taps?limit=100"),
  "GET /v1/taps?is_test=true": (made) => read(made, "/v1/taps?limit=100&is_test=true"),
  "GET /v1/taps?chip_id": (made) => read(made, "/v1/taps?limit=100&chip_id=F000000002"),
  "GET /v1/taps?chip_id, a window": (made) =>
    read(made, "/v1/taps?limit=100&chip_id=F000000002&created_after=2023-12-01T00:00:00Z"),
  "GET /v1/taps?unit_id": (made) =>
    read(made, "/v1/taps?limit=100&unit_id=0192f000-0000-7000-8001-000000000002"),
  "GET /v1/chips?is_test=true": (made) => read(made, "/v1/chips?limit=100&is_test=true"),
  "GET /v1/units?external_id": (made) => read(made, "/v1/units?external_id=old-2"),
}

function read({ api_key }: Fixture, path: string): Request {
  return new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${api_key}` } })
}

function write({ api_key }: Fixture, path: string, body: unknown): Request {
  const headers = { authorization: `Bearer ${api_key}`, "content-type": "application/json" }
  return new Request(`http://localhost${path}`, { method: "POST", headers, body: JSON.stringify(body) })
}

async function measure({ app, made }: Opened, name: string, round: number): Promise<number> {
  const request = requests[name]?.(made, round) as Request
  const begin = performance.now()
  const response = await app.handle(request)
  const text = await response.text()
  if (!response.ok) throw new Error(`${name}: ${text}`)
  return performance.now() - begin
}

const small = await open("few", few)
const large = await open("many", many)
const result: Record<string, { few_milliseconds: number; many_milliseconds: number; ratio: number }> = {}
for (const name of Object.keys(requests)) {
  const times: Record<"few" | "many", number[]> = { few: [], many: [] }
  for (let round = 0; round < rounds; round++) {
    const begin = { few: await measure(small, name, round), many: await measure(large, name, round) }
    // What a quota limits is counted once; that and cold pages are not what is asked here.
    if (round < 5) continue
    times.few.push(begin.few)
    times.many.push(begin.many)
  }
  const [ofFew, ofMany] = [quantile(times.few, 0.5), quantile(times.many, 0.5)]
  result[name] = { few_milliseconds: ofFew, many_milliseconds: ofMany, ratio: ofMany / ofFew }
}
for (const { world } of [small, large]) await world.close()
const { start_milliseconds } = await startChild("src/main.ts", large.environment)
await stopChildren()
for (const { folder } of [small, large]) rmSync(folder, { recursive: true })

const lines = Object.entries(result).map(
  ([name, { few_milliseconds, many_milliseconds, ratio }]) =>
    `  ${name.padEnd(32)} ${few_milliseconds.toFixed(2)} ms, ${many_milliseconds.toFixed(2)} ms: ${ratio.toFixed(2)}`,
)
report(
  { few, many, result, start_milliseconds },
  `with ${few.taps} and with ${many.taps} taps, the median\n${lines.join("\n")}\n  start to the first response, with the many: ${Math.round(start_milliseconds)} ms\n`,
)
