import { expect, test } from "bun:test"
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { sql } from "drizzle-orm"
import { openSqlite } from "../../src/db/sqlite.ts"
import { loggable, readableLine } from "../../src/platform/log.ts"

test("each event is one line of JSON on standard error with its time, and events below the level are dropped", async () => {
  const script = `
    import { createLog } from "./src/platform/log.ts"
    const log = createLog("warn")
    log.info({}, "not said")
    log.warn({ queue: "timers" }, "first\\nline")
    log.error({ error: "Error: no" }, "second")
  `
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: dirname(dirname(import.meta.dir)),
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

test("logged lines are written when the process ends, and errors even when it is killed", async () => {
  const script = `
    import { createLog } from "./src/platform/log.ts"
    const log = createLog("info")
    for (let number = 0; number < 50_000; number++) log.info({ number }, "said")
  `
  const folder = mkdtempSync(join(tmpdir(), "log-"))
  const file = join(folder, "stderr")
  for (const [ending, last] of [
    ["process.exit(1)", "said"],
    // The error is logged first so that Bun's report of the other one comes after a whole line.
    ['log.error({}, "failed"); log.info({}, "went on"); throw new Error("nobody catches this")', "went on"],
    ['log.error({}, "killed"); process.kill(process.pid, "SIGKILL")', "killed"],
  ] as const) {
    // This process could be held up for so long that lines are dropped, so another one reads the pipe.
    const shell = ["sh", "-c", '"$@" 2>&1 >/dev/null | cat >"$0"', file]
    const cwd = dirname(dirname(import.meta.dir))
    await Bun.spawn([...shell, process.execPath, "-e", script + ending], { cwd }).exited
    const lines = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.startsWith("{"))
    const numbers = lines.map((line) => JSON.parse(line).number)
    expect(numbers.slice(0, 50_000)).toEqual(Array.from({ length: 50_000 }, (_, number) => number))
    expect(lines.at(-1)).toContain(`"message":"${last}"`)
  }
  rmSync(folder, { recursive: true })
})

test("a log that nobody reads blocks nothing, and reports how many lines were dropped", async () => {
  const script = `
    import { createLog } from "./src/platform/log.ts"
    const log = createLog("info")
    for (let number = 0; number < 50_000; number++) log.info({ number, name: "🧥".repeat(100) }, "said")
    log.error({}, "and an error")
    console.log("went on")
    await Bun.stdin.text()
  `
  const folder = mkdtempSync(join(tmpdir(), "log-"))
  const pipe = join(folder, "stderr")
  Bun.spawnSync(["mkfifo", pipe])
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  const cwd = dirname(dirname(import.meta.dir))
  const stderr = openSync(pipe, "w")
  const child = Bun.spawn([process.execPath, "-e", script], { cwd, stdin: "pipe", stdout: "pipe", stderr })
  closeSync(stderr)
  const { value } = await child.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toBe("went on\n")
  const end = openSync(pipe, "r")
  const readAll = Bun.spawn(["cat"], { stdin: end, stdout: "pipe" })
  closeSync(end)
  closeSync(reader)
  await child.stdin.end()
  const log = readAll.stdout.text()
  rmSync(folder, { recursive: true })
  const lines = (await log).trimEnd().split("\n")
  expect(lines[0]).toContain('"number":0')
  // A pipe may take a part of a character.
  const wrong = lines.slice(0, -2).filter((line) => !line.includes(`"${"🧥".repeat(100)}"`))
  expect(wrong).toEqual([])
  const leftOut = Number(
    /the log was not read in time: (\d+) lines are missing here/.exec(lines.at(-1) ?? "")?.[1],
  )
  expect(lines.length - 1 + leftOut).toBe(50_001)
})

test("a database error is logged without the statement's parameters", async () => {
  const folder = mkdtempSync(join(tmpdir(), "log-"))
  const db = openSqlite(join(folder, "service.db"))
  const error = await db.read.execute(sql`select ${"hunter2"} from nowhere`).catch((error: unknown) => error)
  await db.close()
  rmSync(folder, { recursive: true })
  expect(String(error)).toContain("hunter2")
  expect(loggable(error)).toEqual({ error: "SQLiteError: no such table: nowhere" })
})

test("a request is one short line on a terminal, and other events keep their fields", () => {
  const request = { operation: "createTap", status: 409, code: "chip.already_scanned", milliseconds: 3.1 }
  const line = {
    level: 30,
    time: "2030",
    message: "request",
    request_id: "req_1",
    organization_id: "o",
    ...request,
  }
  expect(readableLine(line)).toBe("createTap 409 chip.already_scanned 3.1 ms")
  expect(readableLine({ ...line, status: 500, code: "internal.error" })).toContain("req_1")
  expect(readableLine({ level: 40, message: "late", queue: "timers" })).toBe('late {"queue":"timers"}')
})

test("each event is a separate line on a terminal, too", async () => {
  const script = `
    process.stderr.isTTY = true
    const { createLog } = await import("./src/platform/log.ts")
    const log = createLog("info")
    log.info({ operation: "createTap", status: 201, milliseconds: 2 }, "request")
    log.warn({ queue: "timers" }, "late")
  `
  const cwd = dirname(dirname(import.meta.dir))
  const child = Bun.spawn([process.execPath, "-e", script], { cwd, stdout: "ignore", stderr: "pipe" })
  expect(await child.stderr.text()).toMatch(/^\S+ INFO: createTap 201 2 ms\n\S+ WARN: late .*\n$/)
})

test("anything that was thrown is logged as text", () => {
  expect(loggable("no")).toEqual({ error: "no" })
  expect(loggable(undefined)).toEqual({ error: "undefined" })
  expect(loggable(new TypeError("no"))).toEqual({ error: "TypeError: no" })
})
