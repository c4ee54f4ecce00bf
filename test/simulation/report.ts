import { join } from "node:path"
import { describeFault, type Fault } from "./faults.ts"
import type { Outcome, Plan } from "./history.ts"

/** A plan as stored in a file, with what it once showed. */
type WrittenPlan = { about?: string; seed: string; faults: Fault[] }

export function writtenPlan({ seed, faults }: Plan): WrittenPlan {
  return { seed: `0x${seed.toString(16)}`, faults }
}

/** The histories that once failed, each with the fewest faults that made it fail. */
export function corpusFiles(): string[] {
  return [...new Bun.Glob("*.json").scanSync({ cwd: corpus, absolute: true })].sort()
}

const corpus = join(import.meta.dir, "corpus")

/** Reads the plan from a file. */
export async function readPlan(path: string): Promise<Plan> {
  const { seed, faults } = (await Bun.file(path).json()) as WrittenPlan
  return { seed: BigInt(seed), faults }
}

/**
 * A failed history for people: what was requested, what went wrong around it, what was found, and how to reproduce it.
 */
export function tellStory(shortest: Outcome, whole: Outcome): string {
  const seed = `0x${whole.seed.toString(16)}`
  const left = `${shortest.faults.length} of its ${whole.faults.length} faults`
  return [
    `\nThe history of seed ${seed} fails with ${left}.`,
    `  asked     ${shortest.asked}`,
    ...shortest.faults.map((fault) => `  ${describeFault(fault)}`),
    ...shortest.found.slice(0, 12).map((fault) => `  found     ${fault}`),
    `  to see it again, in a file for --faults: ${JSON.stringify(writtenPlan(shortest))}\n\n`,
  ].join("\n")
}

/** A failed history in a few lines, for a run of many: the first finding, and how to print all of it. */
export function tellFailure(seed: string, found: readonly string[]): string {
  const first = found.slice(0, toldAtOnce).map((fault) => fault.split("\n")[0]?.slice(0, 300))
  const more = found.length - first.length
  return [
    `fails: ${seed}`,
    ...first.map((fault) => `  found  ${fault}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    `  again  bun run simulate --seed ${seed}\n`,
  ].join("\n")
}

const toldAtOnce = 4
