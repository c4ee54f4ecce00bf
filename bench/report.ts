import { parseArgs } from "node:util"

/** Prints what a benchmark measured: one JSON document with `--json`, else its text. */
export function report(measured: object, text: string): void {
  process.stdout.write(process.argv.includes("--json") ? `${JSON.stringify(measured)}\n` : text)
}

/** What `--name N` says. Options that other benchmarks take may stand beside it. */
export function numberGiven(name: string, otherwise: number): number {
  const { values } = parseArgs({ options: { [name]: { type: "string" } }, strict: false })
  return Number(values[name] ?? otherwise)
}
