import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startPostgres } from "../test/harness/postgres.ts"
import { type Child, moveAside, startChild, stopChildren } from "./load/child.ts"
import { type Load, load, quantile, wireRequest } from "./load/client.ts"
import { fillDatabase } from "./load/fixture.ts"
import { secondsBelow } from "./load/processor-time.ts"
import { report } from "./report.ts"

/**
 * Whether two API processes on one Postgres slow each other down: the same rate of taps, to one of them and to both, in
 * turns. Both get the same processor, so that the database and the client have the rest.
 */
const tapsASecond = 500
const sliceSeconds = 5
const rounds = 6
const connections = 64

/** Seconds of the API processes, and of them and the database together. */
type Spent = { api: number; all: number; taps: number; milliseconds: number[] }

moveAside()
const folder = mkdtempSync(join(tmpdir(), "bench-processes-"))
const cluster = await startPostgres({ fsync: "on" })
const spent: Record<string, Spent> = { one: nothing(), two: nothing() }
try {
  const made = await fillDatabase(folder, cluster.url("postgres"), 500)
  const start = () =>
    startChild("src/main.ts", { ...made.environment, LOG_FILE: join(folder, "service.log") })
  const [first, second] = [await start(), await start()]
  const nextRequest = () => wireRequest("POST", "/v1/taps", made.api_key, made.nextTap())
  // The first round warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [name, children] of Object.entries({ one: [first], two: [first, second] })) {
      const before = { api: secondsOf(children), all: secondsBelow(process.pid) }
      const slices = await Promise.all(
        children.map(({ port }) =>
          load({
            port,
            connections,
            seconds: sliceSeconds,
            rate: tapsASecond / children.length,
            nextRequest,
          }),
        ),
      )
      requireTaps(slices)
      if (round === 0) continue
      const sum = spent[name] as Spent
      sum.api += secondsOf(children) - before.api
      sum.all += secondsBelow(process.pid) - before.all
      sum.milliseconds.push(...slices.flatMap(({ milliseconds }) => milliseconds))
      sum.taps = sum.milliseconds.length
    }
} finally {
  await stopChildren()
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
}

const results = Object.fromEntries(Object.entries(spent).map(([name, sum]) => [name, figuresOf(sum)]))
const lines = Object.entries(results).map(
  ([name, { api, postgres, p50, p99 }]) =>
    `${name.padEnd(4)} ${tapsASecond}/s: ${api} µs of the API and ${postgres} µs of Postgres for each tap, p50 ${p50} ms, p99 ${p99} ms\n`,
)
report({ taps_per_second: tapsASecond, ...results }, lines.join(""))

function nothing(): Spent {
  return { api: 0, all: 0, taps: 0, milliseconds: [] }
}

function secondsOf(children: Child[]): number {
  return children.reduce((sum, child) => sum + child.spent().seconds, 0)
}

function requireTaps(slices: Load[]): void {
  for (const { statuses } of slices)
    if (Object.keys(statuses).some((status) => status !== "201"))
      throw new Error(`answers: ${JSON.stringify(statuses)}`)
}

function figuresOf({ api, all, taps, milliseconds }: Spent) {
  const each = (seconds: number) => Math.round((seconds / taps) * 1e6)
  const at = (share: number) => Math.round(quantile(milliseconds, share) * 10) / 10
  return { api: each(api), postgres: each(all - api), p50: at(0.5), p99: at(0.99) }
}
