import { Database } from "bun:sqlite"
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fillWithActors } from "../../bench/many-actors.ts"
import { type Queries, queriesOver } from "../../src/db/database.ts"
import { withHiddenParameters } from "../../src/db/sqlite.ts"
import { openWorld, type World } from "../../src/engine/world.ts"
import { consolePages } from "../../src/operator/console/routes.ts"
import { type OperatorServer, startOperatorServer } from "../../src/operator/port/server.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { tell } from "../../src/resources/news/tell.ts"

setDefaultTimeout(60_000)

let folder: string
let world: World
let server: OperatorServer
let unitId: string
let file: Database
const asked = new Map<string, unknown[]>()

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "console-scale-"))
  const config = loadConfig({
    SERVICE_SECRET: "a secret of tests that is long enough",
    DATA_DIR: folder,
    OPERATOR_PORT: "0",
    LOG_LEVEL: "silent",
  })
  world = await openWorld(config, tell)
  unitId = fillWithActors(join(folder, "service.db"), 200_000).unit_id
  file = new Database(join(folder, "service.db"), { readonly: true })
  const context = { ...world.context, db: { ...world.context.db, read: recordingQueries() } }
  server = startOperatorServer(context, [consolePages(context)])
})
afterAll(async () => {
  await server.stop()
  file.close()
  await world.close()
  rmSync(folder, { recursive: true })
})

/** Runs the console's own statements on a separate connection and records each. */
function recordingQueries(): Queries {
  return queriesOver(({ text }, params) => {
    asked.set(text, params)
    return file.prepare(text).values(...(params as never[])) as unknown[][]
  })
}

test("with 200,000 actors the console responds within a second", async () => {
  const before = process.cpuUsage()
  const text = await (await fetch(`${server.url}/console`)).text()
  // Of processor time, as a busy machine gives it less of that.
  const { user, system } = process.cpuUsage(before)
  expect(user + system).toBeLessThan(1_000_000)
  expect(text).toContain(">140000</text>")
})

test("every statement of every page uses an index", async () => {
  const hash = `0x${"ab".repeat(32)}`
  const words = [unitId, "item-777", "0A1B2C3D4E", "04A1B2C3D4E5F6", "4711", hash, `0x${"cd".repeat(20)}`]
  const paths = [
    ...["/console", "/console/counts", "/console/machines/unit-token/states/active"],
    `/console/machines/unit-token/states/active?after=2023-11-14T22:13:20.000Z,${unitId}`,
    `/console/actors/${unitId}`,
    ...words.map((text) => `/console/search?q=${text}`),
  ]
  for (const path of paths) expect((await fetch(server.url + path)).status).toBe(200)
  // Tables that may be scanned, because they are small or all their rows are needed: signers, endpoints, serials lost
  // in a restore, one actor's timers, and what failed permanently.
  const ofFew = (sql: string) =>
    /from "(lanes|found_serials|actor_timers|webhook_endpoints|webhook_queue)"/.test(sql) ||
    sql.includes('or ("actors"."machine" = ')
  const scans = [...asked].flatMap(([sql, params]) =>
    ofFew(sql)
      ? []
      : planOf(sql, params).filter(
          (step) =>
            /^SCAN (?!.*USING (COVERING INDEX|INDEX (events_unnumbered|organizations_suspended)))/.test(
              step,
            ) || /TEMP B-TREE FOR ORDER/.test(step),
        ),
  )
  expect(scans).toEqual([])
  expect(asked.size).toBeGreaterThan(15)
})

function planOf(sql: string, params: unknown[]): string[] {
  const steps = file
    .prepare(`explain query plan ${withHiddenParameters(sql)}`)
    .all(...(params as never[])) as { detail: string }[]
  return steps.map(({ detail }) => `${detail} (${sql.slice(0, 120)})`)
}
