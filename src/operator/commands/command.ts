import { parseArgs } from "node:util"
import type { World } from "../../engine/world.ts"

/** One command of the operator CLI. */
export type Command = {
  /** The words that choose it, such as `keys issue`. */
  name: string
  /** What it is for, in a few words. */
  does: string
  /** What follows the name, as the usage shows it. */
  takes: string
  /** What else its own usage says, in lines. */
  about?: string
  /** The one positional argument, such as `CHIP_ID`. */
  argument?: string
  /** Options that take a value; true if required. */
  options: Record<string, boolean>
  /** A world checks that its database was written with its secret, except for commands that repair exactly that. */
  needs?: "unchecked world"
  /** Options without a value. */
  flags?: string[]
  /** Parses what it was given, or throws `UsageError`; returns what to do once the world is open. */
  plan(values: Values): (world: World) => Promise<Output>
}

/**
 * What a command shows. `isRefusal`: it ran and found something wrong, so it exits with 1. `ifUnseen`: what was done
 * all the same if this cannot be written, and what to do then.
 */
export type Output = (ShortOutput | LongOutput) & { isRefusal?: boolean; ifUnseen?: string }

/** The document for `--json`, and the same as text. */
type ShortOutput = { document: Record<string, unknown>; text: string }

/** The same if it may be long: in pieces, each made once the previous one is written. */
type LongOutput = { pieces: { json: AsyncIterable<string>; text: AsyncIterable<string> } }

/** Wrong usage, which exits with 2: one line that names what is wrong. */
export class UsageError extends Error {
  override name = "UsageError"
}

/** What a command was given. */
export type Values = {
  /** The positional argument. */
  argument: string
  /** An option's text, or null if it was not given. */
  option(name: string): string | null
  /** A required option's text. */
  required(name: string): string
  /** Whether an option without a value was given. */
  flag(name: string): boolean
}

/** Parses a command's own words. Throws `UsageError`. */
export function parseValues(command: Command, words: string[]): Values {
  const { values, positionals, tokens } = parseWords(command, words)
  const names = tokens.flatMap((token) => (token.kind === "option" ? [token.name] : []))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice) throw new UsageError(`${command.name} takes --${twice} once`)
  const missing = Object.entries(command.options).find(
    ([name, isRequired]) => isRequired && !(name in values),
  )
  if (missing) throw new UsageError(`${command.name} needs --${missing[0]}`)
  const [argument = "", ...others] = positionals
  if (command.argument && argument === "") throw new UsageError(`${command.name} needs ${command.argument}`)
  const unexpected = command.argument ? others[0] : positionals[0]
  if (unexpected !== undefined) throw new UsageError(`${command.name} does not take "${unexpected}"`)
  return {
    argument,
    option: (name) => textOf(values[name]),
    required: (name) => textOf(values[name]) ?? "",
    flag: (name) => values[name] === true,
  }
}

/** An option as a whole number of at least `least`; null if it was not given. Throws `UsageError`. */
export function wholeNumber(values: Values, name: string, least: number): number | null {
  const text = values.option(name)
  return text === null ? null : wholeNumberIn(text, name, least)
}

/** The same for one text, because an option may hold several numbers, or a word. Throws `UsageError`. */
export function wholeNumberIn(text: string, name: string, least: number): number {
  const number = Number(text)
  if (/^\d{1,15}$/.test(text) && number >= least) return number
  throw new UsageError(`--${name} takes a whole number of at least ${least}, not "${text}"`)
}

/** How a file is written, by the end of its name; null for another one. */
export function formatOf(file: string): "json" | "csv" | null {
  const name = file.toLowerCase()
  if (name.endsWith(".json")) return "json"
  return name.endsWith(".csv") ? "csv" : null
}

function textOf(value: string | boolean | undefined): string | null {
  return typeof value === "string" ? value : null
}

function parseWords(command: Command, words: string[]) {
  try {
    return parseArgs({
      args: words,
      options: {
        ...Object.fromEntries(
          Object.keys(command.options).map((name) => [name, { type: "string" as const }]),
        ),
        ...Object.fromEntries((command.flags ?? []).map((name) => [name, { type: "boolean" as const }])),
      },
      strict: true,
      allowPositionals: true,
      tokens: true,
    })
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\n|\. /)
    throw new UsageError(`${command.name}: ${sentence}`)
  }
}
