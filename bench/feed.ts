import { Database as File } from "bun:sqlite"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { openWorld } from "../src/engine/world.ts"
import { loadConfig } from "../src/platform/config.ts"
import { inTurn } from "../src/platform/context.ts"
import { newId } from "../src/platform/ids.ts"
import { listEvents } from "../src/resources/events/service.ts"
import { tell } from "../src/resources/news/tell.ts"
import { createOrganization } from "../src/resources/organizations/service.ts"
import { startPostgres } from "../test/harness/postgres.ts"
import { quantile } from "./load/client.ts"
import { numberGiven, report } from "./report.ts"

/**
 * Whether a page of 100 of the feed takes longer where there are more events: the same pages, in turns, of a small feed
 * and of a large one, on both engines. `--many` says how many there are in the large one; 10000000 takes 12 GB.
 */
const few = 10_000
const many = numberGiven("many", 1_000_000)
const rounds = 60
const collection = "0192f000-0000-7000-a000-000000000001"
const columns = "id, organization_id, type, unit_id, collection_id, is_test, data, position, created_at"

const idOf = (number: number) => `0192f000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`
const unitOf = (number: number) => `0192f000-0000-7000-9000-${number.toString(16).padStart(12, "0")}`

/** The median milliseconds of each page in the small feed and in the large one. */
type Pages = Record<string, { few: number; many: number; ratio: number }>

const folder = mkdtempSync(join(tmpdir(), "bench-feed-"))
const cluster = await startPostgres()
const results: Record<string, Pages> = {}
try {
  for (const engine of ["sqlite", "postgres"]) results[engine] = await compare(engine)
} finally {
  await cluster.stop()
  rmSync(folder, { recursive: true })
}
report(
  { few, many, results },
  Object.entries(results)
    .map(([engine, pages]) => textOf(engine, pages))
    .join(""),
)

function textOf(engine: string, pages: Pages): string {
  const lines = Object.entries(pages).map(
    ([page, { few: small, many: large, ratio }]) =>
      `  ${page.padEnd(22)} ${small.toFixed(2)} ms among ${few}, ${large.toFixed(2)} ms among ${many}: ratio ${ratio.toFixed(2)}\n`,
  )
  return `a page of 100 of the feed, ${engine}\n${lines.join("")}`
}

async function compare(engine: string): Promise<Pages> {
  const [small, large] = [await open(engine, few), await open(engine, many)]
  const times = new Map<string, [number[], number[]]>()
  for (let round = 0; round < rounds; round++)
    for (const [place, { read }] of [small, large].entries())
      for (const [name, milliseconds] of await read()) {
        const known = times.get(name) ?? [[], []]
        if (round > 0) known[place]?.push(milliseconds)
        times.set(name, known)
      }
  await small.close()
  await large.close()
  const medians = [...times].map(([name, [first, second]]) => {
    const [one, other] = [quantile(first, 0.5), quantile(second, 0.5)]
    return [name, { few: one, many: other, ratio: other / one }] as const
  })
  return Object.fromEntries(medians)
}

async function open(engine: string, total: number) {
  const name = `feed_${total}`
  const url = engine === "sqlite" ? `sqlite:${join(folder, name)}` : cluster.url(name)
  if (engine === "postgres") await onPostgres(cluster.url("postgres"), [`create database ${name}`])
  const config = loadConfig({
    SERVICE_SECRET: "a secret of benchmarks, long enough",
    DATABASE_URL: url,
    DATA_DIR: folder,
    LOG_LEVEL: "silent",
  })
  const { context, close } = await openWorld(config, tell)
  const { id: organization_id } = await inTurn(context, null, (turn) =>
    createOrganization(turn, { name: "Bench", default_chain_id: null, allowed_chain_ids: [] }),
  )
  if (engine === "sqlite") fillSqlite(join(folder, name), organization_id, total)
  else await fillPostgres(url, organization_id, total)
  const caller = { organization_id, kind: "api_key" as const, credential_id: newId(), session: null }
  const page = { limit: 100, after: null }
  const middle = idOf(Math.floor(total / 2))
  const pages = {
    "the newest": {},
    "from the oldest": { after: "0" },
    "from the middle": { after: middle },
    "of a type, rare": { type: "claim.failed" },
    "of a unit": { unit_id: unitOf(7) },
    "of a collection": { collection_id: collection },
    "of tests, rare": { is_test: true },
    "of all but tests": { is_test: false, after: middle },
  }
  return {
    close,
    async read(): Promise<[string, number][]> {
      const times: [string, number][] = []
      for (const [name, filter] of Object.entries(pages)) {
        const begin = performance.now()
        await listEvents(context.db.read, caller, { ...filter, page })
        times.push([name, performance.now() - begin])
      }
      return times
    },
  }
}

/** Rows as they would stand, past the service; one in fifty is of a rare type, one in fifty a test. */
function rowsOf(organizationId: string, hex: (number: string) => string, at: string): string {
  return `select ${hex("n").replace("?", "8000")}, '${organizationId}',
    case when n % 50 = 3 then 'claim.failed' else 'tap.recorded' end, ${hex("n % 50").replace("?", "9000")},
    '${collection}', n % 50 = 5, '{"counter":1}', n, ${at}`
}

function fillSqlite(path: string, organizationId: string, total: number): void {
  const file = new File(path)
  for (const setting of [
    "synchronous = off",
    "foreign_keys = off",
    "cache_size = -400000",
    "temp_store = file",
  ])
    file.exec(`pragma ${setting}`)
  const indexes = file
    .query(
      "select name, sql from sqlite_master where type = 'index' and tbl_name = 'events' and sql is not null",
    )
    .all() as { name: string; sql: string }[]
  for (const { name } of indexes) file.exec(`drop index ${name}`)
  const hex = (number: string) => `printf('0192f000-0000-7000-?-%012x', ${number})`
  const at = "strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + n / 1000, 'unixepoch')"
  file.exec(`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${total})
      insert into events (${columns}) ${rowsOf(organizationId, hex, at)} from numbers`)
  for (const { sql } of indexes) file.exec(sql)
  file.exec(`update event_feeds set last_position = ${total}`)
  file.close()
}

async function fillPostgres(url: string, organizationId: string, total: number): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(
    "select indexname as name, indexdef as sql from pg_indexes where tablename = 'events' and indexname <> 'events_pkey'",
  )
  await client.end()
  const hex = (number: string) => `('0192f000-0000-7000-?-' || lpad(to_hex(${number}), 12, '0'))::uuid`
  const rowsAsTyped = rowsOf(organizationId, hex, "to_timestamp(1700000000 + n / 1000)")
    .replace(`'${organizationId}'`, `'${organizationId}'::uuid`)
    .replace(`'${collection}'`, `'${collection}'::uuid`)
    .replace(`'{"counter":1}'`, `'{"counter":1}'::jsonb`)
  await onPostgres(url, [
    ...rows.map(({ name }) => `drop index ${name}`),
    `insert into events (${columns}) ${rowsAsTyped} from generate_series(1, ${total}) as numbers(n)`,
    ...rows.map(({ sql }) => sql),
    `update event_feeds set last_position = ${total}`,
    "vacuum analyze events",
  ])
}

async function onPostgres(url: string, statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}
