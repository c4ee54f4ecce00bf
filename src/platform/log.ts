import { writeSync } from "node:fs"
import pino from "pino"
import pretty from "pino-pretty"
import { driverError } from "../db/database.ts"
import type { LogLevel } from "./config.ts"

export type Log = {
  debug(fields: Fields, message: string): void
  info(fields: Fields, message: string): void
  warn(fields: Fields, message: string): void
  error(fields: Fields, message: string): void
}

type Fields = Record<string, unknown>

/**
 * One JSON line for each event, to standard error; for people to read where that is a terminal. Fields are named by
 * the caller: never a request's body or headers.
 */
export function createLog(level: LogLevel): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: "message" }
  return pino(options, process.stderr.isTTY ? readable() : inBatches(standardError))
}

const standardError = 2
/** Pino's number for errors; what is graver has a greater one. */
const errorLevel = 50
const batchMilliseconds = 20
const batchCharacters = 16_384
const mostCharacters = 1_048_576

/**
 * Writes lines together, at most 20 ms late: one by one they would cost more than what they tell of. Errors are
 * written at once, and everything is before the process ends, unless it is killed. Nothing waits for a slow reader
 * while less than a megabyte is left to write.
 */
function inBatches(file: number) {
  let text = ""
  let timer: Timer | undefined

  function flush(patience: "wait" | "leave"): void {
    clearTimeout(timer)
    timer = undefined
    let bytes = Buffer.from(text)
    while (bytes.length > 0) {
      const written = writeSome(file, bytes)
      bytes = bytes.subarray(written)
      if (written > 0) continue
      if (patience === "leave" && bytes.length < mostCharacters) break
      Bun.sleepSync(1)
    }
    text = bytes.toString()
    if (text !== "") flushLater()
  }

  function flushLater(): void {
    timer ??= setTimeout(flush, batchMilliseconds, "leave").unref()
  }

  process.on("exit", () => flush("wait"))
  return {
    /** Has pino say in `lastLevel` how grave a line is. */
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write(line: string): void {
      text += line
      if (this.lastLevel >= errorLevel) flush("wait")
      else if (text.length >= batchCharacters) flush("leave")
      else flushLater()
    },
  }
}

/** How many bytes the file took: none where its reader is slow or gone. */
function writeSome(file: number, bytes: Buffer): number {
  try {
    return writeSync(file, bytes)
  } catch (error) {
    // Nobody reads the log any more, and a log is no reason to end.
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return bytes.length
    return 0
  }
}

function readable() {
  return pretty({
    destination: 2,
    sync: true,
    messageKey: "message",
    translateTime: "SYS:HH:MM:ss",
    hideObject: true,
    messageFormat: readableLine,
  })
}

/** A request in one short line; of anything else, its words and then its fields. */
export function readableLine(line: Fields): string {
  const { message, level: _level, time: _time, ...fields } = line
  if (message !== "request") {
    const rest = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ""
    return `${message}${rest}`
  }
  const { operation, status, code, milliseconds, request_id } = fields
  const words = [operation ?? "page", status, code, `${milliseconds} ms`, status === 500 && request_id]
  return words.filter(Boolean).join(" ")
}

/** An error as a log line may show it: its name and message, without parameters of statements. */
export function loggable(error: unknown): { error: string } {
  const cause = driverError(error)
  return { error: cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause) }
}
