import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { startChild, stopChildren } from "./load/child.ts"

/** What `bun run dev` costs while nobody asks anything: the processor time of all its processes, local chain included. */
const { values } = parseArgs({ options: { json: { type: "boolean", default: false } }, strict: false })
const settleSeconds = 20
const watchedSeconds = 60

const folder = mkdtempSync(join(tmpdir(), "bench-idle-"))
try {
  await startChild("src/dev.ts", { DATA_DIR: folder, HOME: folder, LOG_FILE: join(folder, "dev.log") })
  await Bun.sleep(settleSeconds * 1_000)
  const before = secondsBelow(process.pid)
  await Bun.sleep(watchedSeconds * 1_000)
  const percent = ((secondsBelow(process.pid) - before) / watchedSeconds) * 100
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ percent_of_a_core: percent })}\n`
      : `dev, idle: ${percent.toFixed(2)} % of one core\n`,
  )
} finally {
  await stopChildren()
  rmSync(folder, { recursive: true, force: true })
}

/** Processor time of every process that came from this one, in seconds. */
function secondsBelow(parent: number): number {
  const rows = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => rowOf(Number(name)) ?? [])
  const below = (pid: number): number =>
    rows.filter((row) => row.parent === pid).reduce((sum, row) => sum + row.seconds + below(row.pid), 0)
  return below(parent)
}

const clockTicksPerSecond = 100

function rowOf(pid: number): { pid: number; parent: number; seconds: number } | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ")
    return {
      pid,
      parent: Number(fields[1]),
      seconds: (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond,
    }
  } catch {
    return null
  }
}
