import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { type Area, areas } from "./areas.ts"
import { faultsOfContract } from "./contract-faults.ts"
import { drawn, type Fault, faultsOf } from "./faults.ts"
import { makeCopy } from "./play.ts"
import { whyHarmless } from "./without-consequence.ts"

/**
 * `bun run test:mutations [--seed S] [--most N] [--area A,B] [--at FILE:LINE,…] [--list]`: mutates the project in
 * single places, one after the other, and runs the tests. Exits with 1 if they detect fewer than 92 percent of the
 * faults that have a consequence.
 */
async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "1" },
      most: { type: "string", default: "50" },
      area: { type: "string" },
      at: { type: "string" },
      list: { type: "boolean", default: false },
    },
  })
  const chosen = areas.filter(({ name }) => !values.area || values.area.split(",").includes(name))
  const played = chosen.flatMap((area) =>
    drawn(faultsIn(area), Number(values.most), values.seed)
      .filter((fault) => !values.at || values.at.split(",").includes(placeOf(fault)))
      .map((fault) => ({ area, fault })),
  )
  process.stdout.write(`${played.length} faults, seed ${values.seed}\n`)
  if (values.list) {
    for (const { area, fault } of played) process.stdout.write(`${area.name} ${sentenceOf(fault)}\n`)
    return 0
  }
  return await playAll(played)
}

type Played = { area: Area; fault: Fault }
type Tally = { noticed: number; survived: number; harmless: number }

async function playAll(played: Played[]): Promise<number> {
  const tallies: Tally[] = []
  for (const [area, chosen] of Map.groupBy(played, ({ area }) => area)) {
    const tally = await playArea(
      area,
      chosen.map(({ fault }) => fault),
    )
    process.stdout.write(`${area.name}: ${sumOf(tally)}\n`)
    tallies.push(tally)
  }
  const all = tallies.reduce((one, other) => ({
    noticed: one.noticed + other.noticed,
    survived: one.survived + other.survived,
    harmless: one.harmless + other.harmless,
  }))
  process.stdout.write(`${sumOf(all)}\n`)
  return shareOf(all) >= leastShare ? 0 : 1
}

async function playArea(area: Area, faults: Fault[]): Promise<Tally> {
  const copy = makeCopy()
  const tally: Tally = { noticed: 0, survived: 0, harmless: 0 }
  const tell = (words: string) => process.stdout.write(`${area.name} ${words}\n`)
  try {
    const whole = await copy.play(area, null)
    if (!whole || whole.failed)
      throw new Error(`the tests of ${area.name} fail with nothing broken: ${whole?.failed}`)
    tell(`takes ${whole.seconds.toFixed(1)} s with nothing broken`)
    for (const fault of faults) {
      const verdict = await copy.play(area, fault)
      if (!verdict) {
        tell(`${sentenceOf(fault)}: does not compile, which does not count`)
        continue
      }
      const { failed, seconds } = verdict
      const why = failed ? null : whyHarmless(fault)
      tally[failed ? "noticed" : why ? "harmless" : "survived"] += 1
      const became = failed ? `noticed by ${failed}` : why ? `without consequence: ${why}` : "SURVIVED"
      tell(`${sentenceOf(fault)}: ${became} (${seconds.toFixed(1)} s)`)
    }
  } finally {
    copy.remove()
  }
  return tally
}

function sumOf(tally: Tally): string {
  const { noticed, survived, harmless } = tally
  const share = (100 * shareOf(tally)).toFixed(1)
  return `${noticed} of ${noticed + survived} noticed, ${share} %; ${harmless} more without consequence`
}

function shareOf({ noticed, survived }: Tally): number {
  return noticed / (noticed + survived)
}

const leastShare = 0.92

function faultsIn({ files }: Area): Fault[] {
  const paths = files.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
  return paths.flatMap((path) => {
    const text = readFileSync(join(root, path), "utf8")
    return path.endsWith(".sol") ? faultsOfContract(path, text) : faultsOf(path, text)
  })
}

const root = join(import.meta.dir, "../..")

function placeOf({ file, line }: Fault): string {
  return `${file}:${line}`
}

function sentenceOf(fault: Fault): string {
  return `${placeOf(fault)} ${fault.kind}`
}

process.exit(await run())
