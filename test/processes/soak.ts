import { parseArgs } from "node:util"
import { type Cluster, startCluster } from "../harness/cluster.ts"
import {
  crashApi,
  crashPostgres,
  crashWorker,
  flushRedis,
  freezeLaneHolder,
  restartAll,
  stopRedis,
} from "../harness/cluster-faults.ts"
import { brokenPromises, type Load, sendAtOnce, startLoad, untilSettled } from "../harness/cluster-load.ts"

/**
 * Runs the faults of cluster.test.ts in turns for `--minutes`, with Redis down for a whole minute each time, and
 * prints the results. Exits with 1 if a promise was broken.
 */
const faults: Record<string, (cluster: Cluster, load: Load) => Promise<unknown>> = {
  "an API process killed": crashApi,
  "a worker killed": crashWorker,
  "Redis emptied": flushRedis,
  "Redis away for a minute": (cluster, load) => stopRedis(cluster, load, 60_000).then(expectNone),
  "Postgres crashed": crashPostgres,
  "a worker frozen past its lease": freezeLaneHolder,
  "one e a hundred times": (cluster, load) => sendAtOnce(cluster, load, 100).then(expectOnce),
  "every process restarted": (cluster, load) =>
    restartAll(cluster, load).then(({ failed }) => expectNone(failed)),
}

function expectNone(failed: number): void {
  if (failed > 0) throw new Error(`${failed} requests failed`)
}

function expectOnce(answers: Record<number, number>): void {
  if (answers[201] !== 1) throw new Error(`answers by status: ${JSON.stringify(answers)}`)
}

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } })
const cluster = await startCluster({ apis: 3, workers: 3 })
let isBroken = false
try {
  const load = await startLoad(cluster, { clients: 8 })
  const until = performance.now() + Number(values.minutes) * 60_000
  const rows: [string, string, string][] = []
  while (performance.now() < until) rows.push(...(await runRound(load)))
  await load.finish()
  await untilSettled(cluster)
  print(rows, load, await brokenPromises(cluster, load.promises))
} finally {
  await cluster.stop()
}
process.exit(isBroken ? 1 : 0)

async function runRound(load: Load): Promise<[string, string, string][]> {
  const rows: [string, string, string][] = []
  for (const [name, fault] of Object.entries(faults)) {
    const begin = performance.now()
    const outcome = await fault(cluster, load).then(
      () => "went on",
      (error: Error) => {
        isBroken = true
        return error.message
      },
    )
    rows.push([name, ((performance.now() - begin) / 1_000).toFixed(1), outcome])
    process.stderr.write(`${rows.at(-1)?.join("  ")}\n`)
  }
  return rows
}

function print(rows: [string, string, string][], { promises }: Load, broken: string[]): void {
  if (broken.length > 0) isBroken = true
  const answers = [...promises.answers].map(([status, times]) => `${times} × ${status || "no answer"}`)
  const lines = [
    ["FAULT", "SECONDS", "OUTCOME"],
    ...rows,
    ["", "", ""],
    ["units paired", String(promises.units.length), ""],
    ["taps accepted", String(promises.taps.length), ""],
    ["claims accepted", String(promises.claims.length), ""],
    ["answers", "", answers.join(", ")],
    ["promises broken", String(broken.length), broken.slice(0, 5).join("; ")],
  ]
  for (const [name = "", count = "", text = ""] of lines)
    process.stdout.write(`${name.padEnd(34)}${count.padStart(8)}  ${text}\n`)
}
