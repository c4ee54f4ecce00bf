import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { type Area, areas } from "./areas.ts"
import { drawn, type Fault, faultsOf } from "./faults.ts"
import { makeCopy } from "./play.ts"
import { whyHarmless } from "./without-consequence.ts"

/**
 * `bun run test:mutations [--seed S] [--most N] [--area A,B] [--at FILE:LINE,…] [--list]`: breaks the project in single places, one after the other, and asks the tests. Ends with 1 where they notice fewer
 * than 92 of a hundred faults that have a consequence.
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
  return await playAll(chosen, played)
}

type Played = { area: Area; fault: Fault }

async function playAll(chosen: Area[], played: Played[]): Promise<number> {
  const copy = makeCopy()
  const tally = { noticed: 0, survived: 0, harmless: 0 }
  try {
    for (const { name, tests } of chosen) {
      const { failed, seconds } = await copy.play(tests, null)
      if (failed) throw new Error(`the tests of ${name} fail with nothing broken: ${failed}`)
      process.stdout.write(`${name}: ${seconds.toFixed(1)} s with nothing broken\n`)
    }
    for (const { area, fault } of played) {
      const { failed, seconds } = await copy.play(area.tests, fault)
      const why = failed ? null : whyHarmless(fault)
      tally[failed ? "noticed" : why ? "harmless" : "survived"] += 1
      const verdict = failed ? `noticed by ${failed}` : why ? `without consequence: ${why}` : "SURVIVED"
      process.stdout.write(`${area.name} ${sentenceOf(fault)}: ${verdict} (${seconds.toFixed(1)} s)\n`)
    }
  } finally {
    copy.remove()
  }
  const { noticed, survived, harmless } = tally
  const share = noticed / (noticed + survived)
  process.stdout.write(
    `${noticed} of ${noticed + survived} noticed, ${(100 * share).toFixed(1)} %; ${harmless} more without consequence\n`,
  )
  return share >= leastShare ? 0 : 1
}

const leastShare = 0.92

function faultsIn({ files }: Area): Fault[] {
  const paths = files.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
  return paths.flatMap((path) => faultsOf(path, readFileSync(join(root, path), "utf8")))
}

const root = join(import.meta.dir, "../..")

function placeOf({ file, line }: Fault): string {
  return `${file}:${line}`
}

function sentenceOf(fault: Fault): string {
  return `${placeOf(fault)} ${fault.kind}`
}

process.exit(await run())
