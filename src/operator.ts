import { ConfigError, loadConfig, processEnvironment } from "./config.ts"
import { openWorld } from "./context.ts"
import { DatabaseUnavailable, driverError } from "./db/database.ts"
import { withDevEnvironment } from "./dev-environment.ts"
import { ApiError, type ErrorDetails } from "./errors.ts"
import { cancel } from "./operator/cancel.ts"
import { chainStatus } from "./operator/chain-status.ts"
import { chipCommands } from "./operator/chips.ts"
import { type Command, type Output, parseValues, UsageError } from "./operator/command.ts"
import { explain } from "./operator/explain.ts"
import { organizationCommands } from "./operator/organizations.ts"
import { retry } from "./operator/retry.ts"
import { stuck } from "./operator/stuck.ts"
import { ChipFileError } from "./organizations/chip-file.ts"

const commands: Command[] = [
  ...organizationCommands,
  ...chipCommands,
  chainStatus,
  stuck,
  retry,
  cancel,
  explain,
]

/** Runs one command of the operator CLI. Answers the exit code: 0 done, 1 refused or failed, 2 wrong usage. */
async function runOperator(words: string[]): Promise<number> {
  const isJson = words.includes("--json")
  const isHelp = words.some((word) => word === "--help" || word === "-h")
  const rest = words.filter((word) => !["--json", "--help", "-h"].includes(word))
  try {
    if (rest.length === 0 || isHelp) {
      process.stdout.write(usage(rest))
      return 0
    }
    const output = await runCommand(rest)
    process.stdout.write(isJson ? `${JSON.stringify(output.document, null, 2)}\n` : `${output.text}\n`)
    return 0
  } catch (error) {
    const failure = failureOf(error)
    if (isJson) process.stdout.write(`${JSON.stringify({ error: failure.document }, null, 2)}\n`)
    process.stderr.write(`${failure.lines.map((line) => `operator: ${line}`).join("\n")}\n`)
    if (!(error instanceof UsageError)) return 1
    process.stderr.write(`\n${usage(rest)}`)
    return 2
  }
}

async function runCommand(words: string[]): Promise<Output> {
  const command = commands.find((each) => startsWith(words, each))
  if (!command) throw new UsageError(`there is no command "${words.slice(0, 2).join(" ")}"`)
  const run = command.plan(parseValues(command, words.slice(command.name.split(" ").length)))
  const world = await openWorld(loadConfig(withDevEnvironment(processEnvironment)))
  try {
    return await run(world)
  } finally {
    await world.close()
  }
}

function startsWith(words: string[], command: Command): boolean {
  return command.name.split(" ").every((word, index) => words[index] === word)
}

/** How to call the command that was meant, or all of them. */
function usage(words: string[]): string {
  const meant = commands.filter((command) => startsWith(words, command))
  const sameTopic = commands.filter((command) => command.name.split(" ")[0] === words[0])
  const shown = [meant, sameTopic, commands].find((each) => each.length > 0) ?? []
  const lines = shown.map(({ name, takes }) => `  operator ${name} ${takes}`.trimEnd())
  const about = meant.flatMap((command) => (command.about ? [`\n${command.about}\n`] : []))
  return `usage:\n${lines.join("\n")}\n${about.join("")}\n  --json prints one JSON document; exit code 0 done, 1 refused or failed, 2 wrong usage\n`
}

type Failure = { lines: string[]; document: { code: string; message: string; details?: ErrorDetails } }

function failureOf(error: unknown): Failure {
  if (error instanceof ApiError) {
    const { code, message, details } = error
    if (!details) return { lines: [message], document: { code, message } }
    const fields = Object.entries(details.fieldErrors).flatMap(([field, messages]) =>
      messages.map((each) => `${field}: ${each}`),
    )
    return { lines: [...details.formErrors, ...fields], document: { code, message, details } }
  }
  if (error instanceof ChipFileError) {
    const message = "Nothing was imported: the file has lines that cannot be."
    const details = { formErrors: error.problems, fieldErrors: {} }
    return { lines: [message, ...error.problems], document: { code: "validation.failed", message, details } }
  }
  const { message } = driverError(error) as Error
  if (error instanceof UsageError) return { lines: [message], document: { code: "usage", message } }
  if (error instanceof ConfigError) return { lines: [message], document: { code: "configuration", message } }
  if (error instanceof DatabaseUnavailable)
    return { lines: [message], document: { code: "database", message } }
  return { lines: [message], document: { code: "internal.error", message } }
}

if (import.meta.main) process.exitCode = await runOperator(process.argv.slice(2))
