/** `bun run bench [name …] [--json]`: runs the named benchmarks, or all of them. */
const benchmarks = [
  "gas",
  "console",
  "issuance",
  "sun",
  "chips",
  "requests",
  "growth",
  "processes",
  "memory",
  "idle",
  "events",
  "feed",
  "webhooks",
  "lanes",
  "turns",
]

const given = process.argv.slice(2)
const isFlag = (argument: string | undefined) => argument?.startsWith("--") === true
/** Of `--taps 1000`; `--json` takes none. */
const isValue = (_argument: string, index: number) =>
  isFlag(given[index - 1]) && given[index - 1] !== "--json"
const names = given.filter((argument, index) => !isFlag(argument) && !isValue(argument, index))
const flags = given.filter((argument, index) => isFlag(argument) || isValue(argument, index))
const unknown = names.find((name) => !benchmarks.includes(name))
if (unknown) {
  process.stderr.write(`there is no benchmark ${unknown}; there are: ${benchmarks.join(", ")}\n`)
  process.exit(2)
}
for (const name of names.length > 0 ? names : benchmarks) {
  const { exitCode } = Bun.spawnSync([process.execPath, `${import.meta.dir}/${name}.ts`, ...flags], {
    stdio: ["ignore", "inherit", "inherit"],
  })
  if (exitCode !== 0) process.exit(exitCode)
}
