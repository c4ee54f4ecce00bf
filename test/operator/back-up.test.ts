import { afterEach, expect, test } from "bun:test"
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sql } from "drizzle-orm"
import { openDatabase } from "../../src/db/open.ts"
import { lanes, units } from "../../src/db/schema.ts"
import { inTurn } from "../../src/platform/context.ts"
import { createDatabase, databaseName, startCluster } from "../harness/cluster.ts"
import { startLoad } from "../harness/cluster-load.ts"
import { engines } from "../harness/engines.ts"
import { activeCollection, createCaller, newUnit, openService } from "../harness/services.ts"

const root = join(import.meta.dir, "../..")
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
}, 30_000)

const [sqlite] = engines

test("a back-up of SQLite made during writes has everything committed before, and the service can run on it", async () => {
  if (!sqlite) throw new Error("there is no SQLite")
  const service = await openService(sqlite)
  closers.push(service.close)
  const folder = newFolder()
  const caller = await createCaller(service)
  const collection = await activeCollection(service, caller)
  let isWriting = true
  const accepted: string[] = []
  const writing = Array.from({ length: 8 }, async () => {
    while (isWriting) accepted.push((await newUnit(service, caller, collection)).id)
  })
  while (accepted.length < 200) await Bun.sleep(5)
  const before = [...accepted]
  const copy = join(folder, "copy.db")
  await run([process.execPath, join(root, "src/back-up.ts"), copy], {
    DATABASE_URL: service.database_url,
    SERVICE_SECRET: service.secret.current,
  })
  isWriting = false
  await Promise.all(writing)

  const restored = openDatabase(`sqlite:${copy}`)
  closers.push(restored.close)
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  const check = await restored.read.execute(sql.raw("pragma integrity_check"))
  expect(JSON.stringify(check)).toContain("ok")
  const kept = new Set((await restored.read.select({ id: units.id }).from(units)).map(({ id }) => id))
  expect(before.filter((id) => !kept.has(id))).toEqual([])
  const again = { ...service, context: { ...service.context, db: restored } }
  const unit = await newUnit(
    { ...again, turn: (work) => inTurn(again.context, null, work) },
    caller,
    collection,
  )
  expect(unit.token_status).toBe("pending")
}, 60_000)

test("a back-up that fails leaves no file behind, and reports one line", async () => {
  const folder = newFolder()
  const path = join(folder, "service.db")
  writeFileSync(path, "this is no database".repeat(1_000))
  const copy = join(folder, "copy.db")
  const copying = run([process.execPath, join(root, "src/back-up.ts"), copy], {
    DATABASE_URL: `sqlite:${path}`,
    SERVICE_SECRET: "a secret of tests that is long enough",
  })
  await expect(copying).rejects.toThrow(/^.*the copy failed \(.*\), and .*copy\.db was not written.*\n$/)
  expect(readdirSync(folder)).toEqual(["service.db"])
})

test("a service runs again on a Postgres restored from a dump made under load, and a lane that is behind the chain halts with a reason", async () => {
  const cluster = await startCluster({ apis: 1, workers: 1 })
  closers.push(cluster.stop)
  const dump = join(newFolder(), "service.dump")
  const load = await startLoad(cluster, { clients: 3 })
  await load.untilProgress(2)
  const url = cluster.postgres.url(databaseName)
  const units = [...load.promises.units]
  await run([cluster.postgres.program("pg_dump"), "--format", "custom", "--file", dump, url])
  await load.untilProgress(3)
  await load.finish()

  const members = [...cluster.apis, ...cluster.workers]
  for (const member of members) await member.stop()
  await createDatabase(cluster.postgres)
  await run([cluster.postgres.program("pg_restore"), "--dbname", url, dump])
  for (const member of members) await member.start()

  const api = cluster.apis[0]?.base_url
  for (const { id } of units) {
    const response = await fetch(`${api}/v1/units/${id}`, {
      headers: { authorization: `Bearer ${cluster.api_key}` },
    })
    expect(response.status).toBe(200)
  }
  const read = cluster.context.db.read
  let halted: (typeof lanes.$inferSelect)[] = []
  while (halted.length === 0) {
    halted = (
      await read
        .select()
        .from(lanes)
        .catch(() => [])
    ).filter(({ status }) => status === "halted")
    await Bun.sleep(100)
  }
  expect(halted[0]?.reason).toMatch(/the chain has \d+ transactions of 0x\w+, but the database knows of \d+/)
}, 180_000)

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "back-up-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function run(command: string[], environment: Record<string, string> = {}): Promise<void> {
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH, ...environment },
    stdout: "ignore",
    stderr: "pipe",
  })
  const complaint = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(complaint)
}
