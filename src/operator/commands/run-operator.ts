import { codeOf, DatabaseUnavailable, driverError, withPlace } from "../../db/database.ts"
import { ChainUnreachable } from "../../engine/chain/rpc.ts"
import { TemplateError } from "../../engine/sun/encoding/tag-address.ts"
import { RecipientError } from "../../engine/sun/encoding/write-manifest.ts"
import { openUncheckedWorld, openWorld } from "../../engine/world.ts"
import { type Environment, loadConfig } from "../../platform/config.ts"
import { ConfigError } from "../../platform/config-error.ts"
import { ApiError, type ErrorDetails } from "../../platform/errors.ts"
import { StartError } from "../../platform/start-error.ts"
import { ChipFileError } from "../../resources/chip-stock/records.ts"
import { TagConflicts } from "../../resources/encodings/wanted-tags.ts"
import { tell } from "../../resources/news/tell.ts"
import { OperatorRefusal } from "../verbs/refusal.ts"
import { type Command, type Output, parseValues, UsageError } from "./command.ts"
import { commands } from "./commands.ts"

/** Where a command prints its output and its errors. `ifUnseen` is to be said if the text cannot be written. */
export type Terminal = {
  print(text: string, ifUnseen?: string): void | Promise<void>
  complain(text: string): void
}

/**
 * Runs one operator command on the service that the environment configures; the environment is read only if the
 * command is well formed. Returns the exit code: 0 done, 1 refused or failed, 2 wrong usage.
 */
export async function runOperator(
  readEnvironment: () => Environment,
  terminal: Terminal,
  words: string[],
): Promise<number> {
  const isJson = words.includes("--json")
  const isHelp = words.some((word) => word === "--help" || word === "-h")
  const rest = words.filter((word) => !["--json", "--help", "-h"].includes(word))
  if (isHelp || words.length === 0) {
    const text = usage(rest)
    terminal.print(isJson ? jsonText({ usage: text }) : text)
    return 0
  }
  let hasBegun = false
  try {
    return await runCommand(readEnvironment, rest, async (output) => {
      for await (const piece of isJson ? jsonOf(output) : textOf(output)) {
        hasBegun = true
        await terminal.print(piece, output.ifUnseen)
      }
    })
  } catch (error) {
    const failure = failureOf(error)
    // After the beginning of a list, it would be a second document.
    if (isJson && !hasBegun) terminal.print(jsonText({ error: failure.document }))
    terminal.complain(`${failure.lines.map((line) => `operator: ${line}`).join("\n")}\n`)
    if (!(error instanceof UsageError)) return 1
    terminal.complain(topicOf(rest).length > 0 ? `\n${usage(rest)}` : "operator: --help lists the commands\n")
    return 2
  }
}

function jsonOf(output: Output): AsyncIterable<string> | string[] {
  return "pieces" in output ? output.pieces.json : [jsonText(output.document)]
}

function textOf(output: Output): AsyncIterable<string> | string[] {
  return "pieces" in output ? output.pieces.text : [`${output.text}\n`]
}

function jsonText(document: Record<string, unknown>): string {
  return `${JSON.stringify(document, null, 2)}\n`
}

/** Returns the exit code after showing the output, whose later pieces are read while the world is open. */
async function runCommand(
  readEnvironment: () => Environment,
  words: string[],
  show: (output: Output) => Promise<void>,
): Promise<number> {
  const command = commands.find((each) => startsWith(words, each))
  if (!command) throw new UsageError(unknownCommand(words))
  const run = command.plan(parseValues(command, words.slice(command.name.split(" ").length)))
  const open = command.needs === "unchecked world" ? openUncheckedWorld : openWorld
  // Logs are for long-running processes; a command says what it has to say itself.
  const world = await open(loadConfig({ LOG_LEVEL: "error", ...readEnvironment() }), tell)
  try {
    const output = await run(world)
    await show(output)
    return output.isRefusal ? 1 : 0
  } finally {
    await world.close()
  }
}

function startsWith(words: string[], command: Command): boolean {
  return command.name.split(" ").every((word, index) => words[index] === word)
}

function unknownCommand(words: string[]): string {
  const [topic, ...rest] = words
  if (topic === undefined) return "a command is needed"
  if (rest.length === 0 && topicOf(words).length > 0)
    return `"${topic}" must be followed by one of these words`
  return `there is no command "${words.slice(0, 2).join(" ")}"`
}

function topicOf([topic]: string[]): readonly Command[] {
  return commands.filter(({ name }) => name.split(" ")[0] === topic)
}

/** How to call the command that was meant, or those of its topic; else an overview of all. */
function usage(words: string[]): string {
  const meant = commands.filter((command) => startsWith(words, command))
  const shown = [meant, topicOf(words)].find((each) => each.length > 0)
  const about = meant.flatMap((command) => (command.about ? [`\n${command.about}\n`] : []))
  return `usage:\n${shown ? shown.map(callOf).join("\n") : overview()}\n${about.join("")}\n  --json prints one JSON document; exit code 0 done, 1 refused or failed, 2 wrong usage\n`
}

function callOf({ name, takes, does }: Command): string {
  return `${`  operator ${name} ${takes}`.trimEnd()}\n      ${does}`
}

function overview(): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  const lines = commands.map(({ name, does }) => `  operator ${name.padEnd(width)}  ${does}`)
  return `${lines.join("\n")}\n\n  operator COMMAND --help shows its arguments`
}

type Failure = { lines: string[]; document: { code: string; message: string; details?: ErrorDetails } }

function failureOf(error: unknown): Failure {
  if (error instanceof ApiError) return refusal(error)
  if (error instanceof ChipFileError) return fileRefusal(error.outcome, error.problems)
  if (error instanceof TagConflicts)
    return fileRefusal("Nothing was registered: the file has errors.", error.problems)
  if (error instanceof DatabaseUnavailable) return inOneLine("database", withPlace(error))
  if (error instanceof ChainUnreachable)
    return inOneLine(
      "chain",
      `the chain does not answer (${error.message}): see chain status, and rpc_urls in CHAINS`,
    )
  const { message } = driverError(error) as Error
  if (error instanceof OperatorRefusal) return inOneLine(error.code, message)
  if (error instanceof UsageError) return inOneLine("usage", message)
  if (error instanceof ConfigError || error instanceof StartError) return inOneLine("configuration", message)
  if (error instanceof TemplateError || error instanceof RecipientError)
    return inOneLine("validation.failed", message)
  if (codeOf(error) === "EISDIR") return inOneLine("file", "a folder is named where a file is needed")
  return inOneLine(isOfFile(error) ? "file" : "internal.error", message)
}

function inOneLine(code: string, message: string): Failure {
  return { lines: [message], document: { code, message } }
}

function refusal({ code, message, details }: ApiError): Failure {
  if (!details) return inOneLine(code, message)
  const fields = Object.entries(details.fieldErrors).flatMap(([field, messages]) =>
    messages.map((each) => `${field}: ${each}`),
  )
  return { lines: [...details.formErrors, ...fields], document: { code, message, details } }
}

function fileRefusal(message: string, problems: string[]): Failure {
  const details = { formErrors: problems, fieldErrors: {} }
  return { lines: [message, ...problems], document: { code: "validation.failed", message, details } }
}

function isOfFile(error: unknown): boolean {
  return codeOf(error) !== "" && (error as NodeJS.ErrnoException).path !== undefined
}
