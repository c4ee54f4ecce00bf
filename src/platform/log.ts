import { constants, fstatSync, openSync, writeSync } from "node:fs"
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
 * Logs one JSON line for each event to standard error, or readable lines to a terminal. The caller names the fields:
 * never a request's body or headers.
 */
export function createLog(level: LogLevel): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: "message" }
  return pino(options, process.stderr.isTTY ? readable() : inBatches(openStandardError()))
}

const standardError = 2

/**
 * Opens a pipe once more, non-blocking, so that no write waits for its reader; where that fails, it is used as it is.
 */
function openStandardError(): number {
  try {
    if (!fstatSync(standardError).isFIFO()) return standardError
    return openSync(`/proc/self/fd/${standardError}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return standardError
  }
}

/** Pino's numbers: graver is greater. */
const warnLevel = 40
const errorLevel = 50
const batchMilliseconds = 20
const batchCharacters = 16_384
const mostCharacters = 1_048_576
const muchMilliseconds = 500
const exitMilliseconds = 5_000

/**
 * Writes lines in batches, at most 20 ms late; single writes would cost more than what they tell about. Errors are
 * written at once, and everything before the process ends, unless it is killed. A slow reader is waited for by errors,
 * and once a megabyte waits; a reader that takes nothing for half a second no more: then lines beyond a megabyte are
 * dropped and counted.
 */
function inBatches(file: number) {
  let text = ""
  let leftOut = 0
  /** What the reader did not take; trying again with each line would cost too much. */
  let left = 0
  let isRead = true
  let timer: Timer | undefined

  function flush(patienceMilliseconds: number): void {
    clearTimeout(timer)
    timer = undefined
    let bytes = Buffer.from(text)
    for (let waited = 0; bytes.length > 0; ) {
      const written = writeSome(file, bytes)
      bytes = bytes.subarray(written)
      if (written > 0) {
        isRead = true
        waited = 0
        continue
      }
      const isMuch = bytes.length >= mostCharacters && isRead
      if (!isMuch && waited >= patienceMilliseconds) break
      Bun.sleepSync(1)
      waited += 1
      if (waited >= muchMilliseconds) isRead = false
    }
    text = bytes.toString()
    left = text.length
    if (left > 0) flushLater()
  }

  function flushLater(): void {
    timer ??= setTimeout(flush, batchMilliseconds, 0).unref()
  }

  /** Answers whether there is room for the line. */
  function add(line: string): boolean {
    if (!isRead && text.length >= mostCharacters) {
      leftOut += 1
      return false
    }
    sayLeftOut()
    text += line
    return true
  }

  function sayLeftOut(): void {
    if (leftOut > 0) text += lineOnLeftOut(leftOut)
    leftOut = 0
  }

  process.on("exit", () => {
    sayLeftOut()
    flush(exitMilliseconds)
  })
  return {
    /** Makes pino set `lastLevel` to each line's level. */
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write(line: string): void {
      const isMuch = text.length + line.length >= left + batchCharacters
      const isError = this.lastLevel >= errorLevel
      if (add(line) && (isMuch || isError)) flush(isError && isRead ? muchMilliseconds : 0)
      else flushLater()
    },
  }
}

function lineOnLeftOut(lines: number): string {
  const time = pino.stdTimeFunctions.isoTime()
  return `{"level":${warnLevel}${time},"message":"nobody read the log: ${lines} lines are left out here"}\n`
}

/** How many bytes the file took; none where its reader is slow or gone. */
function writeSome(file: number, bytes: Buffer): number {
  try {
    return writeSync(file, bytes)
  } catch (error) {
    // Nobody reads the log any more, which is no reason to end.
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
