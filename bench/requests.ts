import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startPostgres } from "../test/harness/postgres.ts"
import { type Child, moveAside, startChild, stopChildren } from "./load/child.ts"
import { type Load, load, quantile, wireRequest } from "./load/client.ts"
import { type Fixture, fillDatabase } from "./load/fixture.ts"
import { report } from "./report.ts"

/**
 * What a request costs, against servers that do nothing but the unavoidable. Each case alternates with its anchors in
 * slices of two seconds, so that whatever else the machine does meets all of them.
 */
const connections = 64
const sliceSeconds = 2
const rounds = Number(process.env.BENCH_ROUNDS ?? 5)
const pairs = 500

moveAside()
const folder = mkdtempSync(join(tmpdir(), "bench-requests-"))
const results: CaseResult[] = []
const latencies: { case: string; rate: number; quantiles: Record<string, Record<string, number>> }[] = []
try {
  await benchSqlite()
  if (!process.env.BENCH_ONLY_SQLITE) await benchPostgres()
} finally {
  await stopChildren()
  rmSync(folder, { recursive: true, force: true })
}
report(
  { results, latencies },
  `${results.map(textOf).join("\n")}\n${latencies.map(latencyText).join("\n")}\n`,
)

type CaseResult = {
  case: string
  floor: string
  ours: Figures
  anchors: Record<string, Figures & { ratio: number; ratios: number[] }>
}

type Figures = {
  /** Responses a second, of each slice. */
  per_second: number[]
  microseconds_of_processor: number
  p99_milliseconds: number
  statuses: Record<string, number>
}

async function benchSqlite(): Promise<void> {
  const made = await fillDatabase(folder, `sqlite:${join(folder, "service.db")}`, pairs)
  const copy = (name: string) => {
    cpSync(join(folder, "service.db"), join(folder, name))
    return `sqlite:${join(folder, name)}`
  }
  const bareUrl = copy("bare.db")
  const statementsUrl = copy("statements.db")
  const ours = await startService(made)
  const answer = join(folder, "answer.json")
  writeFileSync(answer, await unitAnswer(ours, made))
  const organization = { ORGANIZATION_ID: made.organization_id }
  const bare = await startBare({ ANCHOR: "insert", DATABASE_URL: bareUrl })
  const statements = await startBare({ ANCHOR: "statements", DATABASE_URL: statementsUrl, ...organization })
  const reads = await startBare({ ANCHOR: "read", ANSWER_FILE: answer })
  const tap = () => tapRequest(made)
  await compare(
    {
      name: "POST /v1/taps, SQLite",
      floor: "Elysia, its schema, one insert, a commit on disk for each group",
      nextRequest: tap,
    },
    ours,
    { bare, "same statements": statements },
  )
  await compare(
    {
      name: "GET /v1/units/{id}, SQLite",
      floor: "Elysia, one hash of the bearer, the same bytes",
      nextRequest: () => readRequest(made),
    },
    ours,
    { bare: reads },
  )
  await compareLatency("POST /v1/taps at half the reached rate, SQLite", ours, bare, tap)
  await stopChildren()
}

async function benchPostgres(): Promise<void> {
  const cluster = await startPostgres({ fsync: "on" })
  try {
    const made = await fillDatabase(folder, cluster.url("postgres"), pairs)
    const ours = await startService(made)
    const bare = await startBare({ ANCHOR: "postgres", DATABASE_URL: cluster.url("postgres") })
    await compare(
      {
        name: "POST /v1/taps, Postgres",
        floor: "Elysia, its schema, one insert in a database transaction of its own",
        nextRequest: () => tapRequest(made),
      },
      ours,
      { bare },
    )
    const answer = join(folder, "answer.json")
    writeFileSync(answer, await unitAnswer(ours, made))
    const reads = await startBare({ ANCHOR: "read", ANSWER_FILE: answer })
    await compare(
      {
        name: "GET /v1/units/{id}, Postgres",
        floor: "Elysia, one hash, no database",
        nextRequest: () => readRequest(made),
      },
      ours,
      { bare: reads },
    )
  } finally {
    await stopChildren()
    await cluster.stop()
  }
}

function startService(made: Fixture): Promise<Child> {
  return startChild("src/main.ts", { ...made.environment, LOG_FILE: join(folder, "service.log") })
}

function startBare(environment: Record<string, string>): Promise<Child> {
  return startChild("bench/load/bare.ts", environment)
}

function tapRequest(made: Fixture): string {
  return wireRequest("POST", "/v1/taps", made.api_key, made.nextTap())
}

function readRequest(made: Fixture): string {
  const unitId = made.unit_ids[Math.floor(Math.random() * made.unit_ids.length)]
  return wireRequest("GET", `/v1/units/${unitId}`, made.api_key)
}

async function unitAnswer(ours: Child, made: Fixture): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${ours.port}/v1/units/${made.unit_ids[0]}`, {
    headers: { authorization: `Bearer ${made.api_key}` },
  })
  return await response.text()
}

type Case = {
  name: string
  /** What the anchors do, which nobody could leave out. */
  floor: string
  nextRequest: () => string
}

type Slice = Load & { processor_seconds: number }

async function compare(
  { name, floor, nextRequest }: Case,
  ours: Child,
  anchors: Record<string, Child>,
): Promise<void> {
  const slices: Record<string, Slice[]> = {}
  // The first round warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [contender, child] of Object.entries({ ours, ...anchors })) {
      const before = child.spent().seconds
      const seconds = round === 0 ? 1 : sliceSeconds
      const slice = await load({ port: child.port, connections, seconds, nextRequest })
      if (round === 0) continue
      const known = slices[contender] ?? []
      slices[contender] = [...known, { ...slice, processor_seconds: child.spent().seconds - before }]
    }
  const mine = figuresOf(slices.ours ?? [])
  const against = Object.keys(anchors).map((anchor) => {
    const figures = figuresOf(slices[anchor] ?? [])
    const ratios = mine.per_second.map((rate, index) => round3(rate / (figures.per_second[index] ?? 1)))
    return [anchor, { ...figures, ratio: quantile(ratios, 0.5), ratios }] as const
  })
  results.push({ case: name, floor, ours: mine, anchors: Object.fromEntries(against) })
}

function figuresOf(slices: Slice[]): Figures {
  const milliseconds = slices.flatMap((slice) => slice.milliseconds)
  const seconds = slices.reduce((sum, { processor_seconds }) => sum + processor_seconds, 0)
  const statuses: Record<string, number> = {}
  for (const [status, count] of slices.flatMap((slice) => Object.entries(slice.statuses)))
    statuses[status] = (statuses[status] ?? 0) + count
  return {
    per_second: slices.map((slice) => Math.round(slice.answers / slice.seconds)),
    microseconds_of_processor: Math.round((seconds / milliseconds.length) * 1e6),
    p99_milliseconds: Math.round(quantile(milliseconds, 0.99) * 10) / 10,
    statuses,
  }
}

/** Requests come when they are due, whether others have responses or not, at half of what the service reached. */
async function compareLatency(
  name: string,
  ours: Child,
  bare: Child,
  nextRequest: () => string,
): Promise<void> {
  const reached = results.find((result) => result.case.startsWith("POST /v1/taps"))?.ours.per_second ?? []
  const rate = Math.round(quantile(reached, 0.5) / 2)
  const quantiles: Record<string, Record<string, number>> = {}
  for (const [contender, child] of Object.entries({ ours, bare })) {
    const { milliseconds } = await load({ port: child.port, connections: 256, seconds: 5, rate, nextRequest })
    const at = (share: number) => Math.round(quantile(milliseconds, share) * 10) / 10
    quantiles[contender] = { p50: at(0.5), p99: at(0.99), "p99.9": at(0.999) }
  }
  latencies.push({ case: name, rate, quantiles })
}

function latencyText({ case: name, rate, quantiles }: (typeof latencies)[number]): string {
  const lines = Object.entries(quantiles).map(
    ([contender, at]) =>
      `  ${contender.padEnd(16)} ${Object.entries(at)
        .map(([share, milliseconds]) => `${share} ${milliseconds} ms`)
        .join(", ")}`,
  )
  return `${name}: ${rate}/s, each sent when it is due\n${lines.join("\n")}`
}

function round3(value: number): number {
  return Math.round(value * 1_000) / 1_000
}

function textOf({ case: name, floor, ours, anchors }: CaseResult): string {
  const line = (
    contender: string,
    { per_second, microseconds_of_processor, p99_milliseconds, statuses }: Figures,
  ) =>
    `  ${contender.padEnd(16)} ${quantile(per_second, 0.5)}/s (${Math.min(...per_second)} to ${Math.max(...per_second)}), ` +
    `${microseconds_of_processor} µs of processor each, p99 ${p99_milliseconds} ms, ${JSON.stringify(statuses)}`
  const against = Object.entries(anchors).map(
    ([anchor, figure]) =>
      `${line(anchor, figure)}\n  ratio to ${anchor}: ${figure.ratio} (${figure.ratios.join(", ")}), by processor time ${round3(figure.microseconds_of_processor / ours.microseconds_of_processor)}`,
  )
  return `${name}, against: ${floor}\n${[line("ours", ours), ...against].join("\n")}\n`
}
