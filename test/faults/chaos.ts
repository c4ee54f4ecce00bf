import { parseArgs } from "node:util"
import { crashesInGate, faultsInGate, matrix, type Outcome, run, type Scenario } from "./scenarios.ts"

/**
 * `bun test/faults/chaos.ts [--json] [--quick] [--only TEXT | --named NAME] [--at-once N]`: runs the whole matrix,
 * the scenarios of `bun test`, or those whose name contains the text or equals the name, and prints a table. Exits
 * with 1 if anything was lost, repeated or out of order.
 */
export async function playAll(
  scenarios: Scenario[],
  atOnce: number,
  tell: (outcome: Outcome) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const waiting = [...scenarios]
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const outcome = await run(next)
      outcomes.push(outcome)
      tell(outcome)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return outcomes
}

function line({ name, faults, duplicates, missing, seconds }: Outcome): string {
  const verdict = faults.length === 0 ? "ok" : "FAILED"
  const columns = [
    name.padEnd(84),
    verdict.padEnd(7),
    String(duplicates).padStart(10),
    String(missing).padStart(8),
  ]
  return `${columns.join(" ")} ${seconds.toFixed(1).padStart(8)}\n`
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      json: { type: "boolean" },
      quick: { type: "boolean" },
      only: { type: "string" },
      named: { type: "string" },
      "at-once": { type: "string", default: "2" },
    },
  })
  const { json: isJson, only, named } = values
  const chosen = (values.quick ? [...crashesInGate, ...faultsInGate] : matrix).filter(
    ({ name }) => (only === undefined || name.includes(only)) && (named === undefined || name === named),
  )
  const begin = performance.now()
  if (!isJson) process.stdout.write(`${"scenario".padEnd(84)} verdict duplicates  missing  seconds\n`)
  const outcomes = await playAll(chosen, Number(values["at-once"]), (outcome) => {
    if (isJson) return
    process.stdout.write(line(outcome))
    for (const fault of outcome.faults) process.stdout.write(`    ${fault}\n`)
  })
  const sum = (of: (outcome: Outcome) => number) => outcomes.reduce((total, each) => total + of(each), 0)
  const total = {
    runs: outcomes.length,
    failed: outcomes.filter(({ faults }) => faults.length > 0).length,
    duplicates: sum(({ duplicates }) => duplicates),
    missing: sum(({ missing }) => missing),
    seconds: Math.round((performance.now() - begin) / 1_000),
  }
  process.stdout.write(
    isJson
      ? `${JSON.stringify({ ...total, scenarios: outcomes }, null, 2)}\n`
      : `\n${total.runs} runs, ${total.failed} failed, ${total.duplicates} duplicates, ${total.missing} missing, ${total.seconds} s\n`,
  )
  process.exit(total.failed === 0 ? 0 : 1)
}
