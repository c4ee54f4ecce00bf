import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { moveAside, startChild, stopChildren } from "./load/child.ts"
import { load, wireRequest } from "./load/client.ts"
import { fillDatabase } from "./load/fixture.ts"
import { numberGiven, report } from "./report.ts"

/**
 * What the service holds in memory while taps come as fast as it responds, on SQLite. `--taps` says how many; the
 * slope is that of the second half, when every cache has what it will ever have.
 */
const most = numberGiven("taps", 2_000_000)
const sliceSeconds = 10
const connections = 64

type Sample = { taps: number; resident_megabytes: number }

moveAside()
const folder = mkdtempSync(join(tmpdir(), "bench-memory-"))
const samples: Sample[] = []
try {
  const made = await fillDatabase(folder, `sqlite:${join(folder, "service.db")}`, 500)
  const service = await startChild("src/main.ts", {
    ...made.environment,
    // As in the images, whatever memory this machine has.
    BUN_JSC_forceRAMSize: /BUN_JSC_forceRAMSize=(\d+)/.exec(readFileSync("Dockerfile", "utf8"))?.[1] ?? "",
    LOG_FILE: join(folder, "service.log"),
  })
  const nextRequest = () => wireRequest("POST", "/v1/taps", made.api_key, made.nextTap())
  for (let taps = 0; taps < most; ) {
    samples.push({ taps, resident_megabytes: service.spent().resident_megabytes })
    const slice = await load({ port: service.port, connections, seconds: sliceSeconds, nextRequest })
    const { "201": made_taps = 0, ...others } = slice.statuses
    if (Object.keys(others).length > 0) throw new Error(`answers: ${JSON.stringify(slice.statuses)}`)
    taps += made_taps
    process.stderr.write(`${taps} taps, ${Math.round(service.spent().resident_megabytes)} MB\n`)
  }
  samples.push({ taps: most, resident_megabytes: service.spent().resident_megabytes })
} finally {
  await stopChildren()
  rmSync(folder, { recursive: true, force: true })
}
const later = samples.slice(Math.floor(samples.length / 2))
const peak_megabytes = Math.max(...samples.map(({ resident_megabytes }) => resident_megabytes))
const megabytes_per_million = slopeOf(later) * 1e6
report(
  { samples, peak_megabytes, megabytes_per_million },
  `${most} taps: at most ${Math.round(peak_megabytes)} MB, in the second half ${megabytes_per_million.toFixed(1)} MB for each further million\n`,
)

/** Megabytes for each tap, by least squares. */
function slopeOf(points: Sample[]): number {
  const mean = (of: (point: Sample) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean(({ taps }) => taps), mean(({ resident_megabytes }) => resident_megabytes)]
  const spread = points.reduce((sum, { taps }) => sum + (taps - x) ** 2, 0)
  const together = points.reduce(
    (sum, { taps, resident_megabytes }) => sum + (taps - x) * (resident_megabytes - y),
    0,
  )
  return together / spread
}
