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

const names = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))
const unknown = names.find((name) => !benchmarks.includes(name))
if (unknown) {
  process.stderr.write(`there is no benchmark ${unknown}; there are: ${benchmarks.join(", ")}\n`)
  process.exit(2)
}
for (const name of names.length > 0 ? names : benchmarks) {
  const flags = process.argv.slice(2).filter((argument) => argument.startsWith("--"))
  const { exitCode } = Bun.spawnSync([process.execPath, `${import.meta.dir}/${name}.ts`, ...flags], {
    stdio: ["ignore", "inherit", "inherit"],
  })
  if (exitCode !== 0) process.exit(exitCode)
}
