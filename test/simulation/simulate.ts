import "./seams/install.ts"
import { parseArgs } from "node:util"
import type { Outcome, Plan } from "./history.ts"

// The service is loaded after the seams are in place.
const { openGround } = await import("./ground.ts")
const { planOf, playHistory } = await import("./history.ts")
const { shorten } = await import("./shorten.ts")
const { playFresh } = await import("./fresh.ts")
const { corpusFiles, readPlan, tellStory, writtenPlan } = await import("./report.ts")

/**
 * `bun run simulate [--seed S] [--count N | --hours H] [--faults F.json | --corpus] [--trace FILE] [--json]
 * [--keep-going] [--whole]`: runs histories from a seed on, or the one of a file, or those that once failed. Exits with
 * 1 at the first failure, told as a story with the fewest faults; `--whole` keeps the list as it was drawn. `--hours`
 * runs on every core and continues after failures.
 */
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    count: { type: "string", default: "1" },
    hours: { type: "string" },
    faults: { type: "string" },
    corpus: { type: "boolean", default: false },
    trace: { type: "string" },
    json: { type: "boolean", default: false },
    "keep-going": { type: "boolean", default: false },
    whole: { type: "boolean", default: false },
  },
})

const first = values.seed
  ? BigInt(values.seed)
  : BigInt(Math.floor(performance.timeOrigin + performance.now()))
if (values.hours) process.exit((await playFresh(first, Number(values.hours))) ? 0 : 1)
const plans: Iterable<Plan> = await readPlans()

const ground = await openGround()
const begin = performance.now()
const cpu = process.cpuUsage()
const failed: Outcome[] = []
let simulatedSeconds = 0
let played = 0
if (!values.json && !values.faults && !values.corpus)
  process.stdout.write(`histories from seed ${first} on\n`)
for (const plan of plans) {
  const outcome = await playHistory(ground, plan, values.trace !== undefined)
  played += 1
  simulatedSeconds += outcome.simulated_seconds
  if (values.trace) await Bun.write(values.trace, (outcome.trace ?? []).join("\n"))
  if (values.json) {
    const { trace, log, ...told } = outcome
    process.stdout.write(`${JSON.stringify({ ...told, ...writtenPlan(outcome) })}\n`)
  }
  if (outcome.found.length === 0) continue
  failed.push(outcome)
  if (!values.json) {
    const shortest = values.whole ? outcome : await shorten(ground, outcome)
    process.stdout.write(tellStory(shortest, outcome))
  }
  if (!values["keep-going"]) break
}
ground.close()
const seconds = (performance.now() - begin) / 1_000
const used = process.cpuUsage(cpu)
const cpuSeconds = (used.user + used.system) / 1e6
const total = {
  histories: played,
  failed: failed.length,
  simulated_hours: Math.round(simulatedSeconds / 360) / 10,
  seconds: Math.round(seconds),
  cpu_seconds_per_history: Math.round((cpuSeconds / played) * 100) / 100,
}
process.stdout.write(
  values.json
    ? `${JSON.stringify(total)}\n`
    : `${total.histories} histories, ${total.failed} failed, ${total.simulated_hours} simulated hours, ${total.seconds} s, ${total.cpu_seconds_per_history} CPU s each\n`,
)
process.exit(failed.length === 0 ? 0 : 1)

async function readPlans(): Promise<Iterable<Plan>> {
  if (values.faults) return [await readPlan(values.faults)]
  if (values.corpus) return await Promise.all(corpusFiles().map(readPlan))
  return plansFrom(first, Number(values.count))
}

function* plansFrom(seed: bigint, count: number): Iterable<Plan> {
  for (let index = 0; index < count; index++) yield planOf(seed + BigInt(index))
}
