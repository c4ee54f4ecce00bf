import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startChild, stopChildren } from "./load/child.ts"
import { secondsBelow } from "./load/processor-time.ts"
import { report } from "./report.ts"

/** What `bun run dev` costs while nobody asks anything: the processor time of all its processes, local chain included. */
const settleSeconds = 20
const watchedSeconds = 60

const folder = mkdtempSync(join(tmpdir(), "bench-idle-"))
try {
  await startChild("src/dev.ts", { DATA_DIR: folder, HOME: folder, LOG_FILE: join(folder, "dev.log") })
  await Bun.sleep(settleSeconds * 1_000)
  const before = secondsBelow(process.pid)
  await Bun.sleep(watchedSeconds * 1_000)
  const percent = ((secondsBelow(process.pid) - before) / watchedSeconds) * 100
  report({ percent_of_a_core: percent }, `dev, idle: ${percent.toFixed(2)} % of one core\n`)
} finally {
  await stopChildren()
  rmSync(folder, { recursive: true, force: true })
}
