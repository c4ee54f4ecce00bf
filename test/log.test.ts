import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { sql } from "drizzle-orm"
import { openSqlite } from "../src/db/sqlite.ts"
import { loggable } from "../src/log.ts"

test("each event is one line of JSON on standard error, with its time, and none below the level", async () => {
  const script = `
    import { createLog } from "./src/log.ts"
    const log = createLog("warn")
    log.info({}, "not said")
    log.warn({ queue: "timers" }, "first\\nline")
    log.error({ error: "Error: no" }, "second")
  `
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: dirname(import.meta.dir),
    stdout: "pipe",
    stderr: "pipe",
  })
  const [output, lines] = await Promise.all([child.stdout.text(), child.stderr.text()])
  const said = lines
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
  expect(said).toMatchObject([
    { queue: "timers", message: "first\nline" },
    { error: "Error: no", message: "second" },
  ])
  for (const { time } of said) expect(new Date(time).toISOString()).toBe(time)
  expect(output).toBe("")
})

test("an error of the database is shown without what the statement was given", async () => {
  const folder = mkdtempSync(join(tmpdir(), "log-"))
  const db = openSqlite(join(folder, "service.db"))
  const error = await db.read.execute(sql`select ${"hunter2"} from nowhere`).catch((error: unknown) => error)
  await db.close()
  rmSync(folder, { recursive: true })
  expect(String(error)).toContain("hunter2")
  expect(loggable(error)).toEqual({ error: "SQLiteError: no such table: nowhere" })
})

test("whatever was thrown is shown as text", () => {
  expect(loggable("no")).toEqual({ error: "no" })
  expect(loggable(undefined)).toEqual({ error: "undefined" })
  expect(loggable(new TypeError("no"))).toEqual({ error: "TypeError: no" })
})
