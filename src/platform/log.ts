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
 * Creates a log that writes one JSON line per entry to standard error, or readable lines to a terminal. The caller
 * chooses the fields: never a request's body or headers.
 */
export function createLog(level: LogLevel): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: "message" }
  return pino(options, process.stderr.isTTY ? readable() : inBatches(openStandardError()))
}

const standardError = 2

/** Reopens a pipe as non-blocking, so that no write waits for its reader. If that fails, uses it as it is. */
function openStandardError(): number {
  try {
    if (!fstatSync(standardError).isFIFO()) return standardError
    return openSync(`/proc/self/fd/${standardError}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return standardError
  }
}

/** Pino's levels: the more severe, the greater. */
const warnLevel = 40
const errorLevel = 50
const batchMilliseconds = 20
const batchCharacters = 16_384
/** Compared with characters and with bytes alike, as lines hardly contain anything but ASCII. */
const mostPending = 1_048_576
const stalledMilliseconds = 500
const exitMilliseconds = 5_000

/**
 * Writes lines in batches, at most 20 ms late, since single writes would cost too much. Errors are written at once, and
 * pending lines at exit, unless the process is killed. Errors wait for a slow reader, and so does everything once 1 MiB
 * is pending. A reader that takes nothing for half a second is no longer waited for: until it reads again, lines beyond
 * 1 MiB are dropped and counted.
 */
function inBatches(file: number) {
  let pending = ""
  /** What the reader refused before, from any byte of a character on. Retrying with every line would cost too much. */
  let refused: Buffer = Buffer.alloc(0)
  /** How many lines were dropped since the last one that was not. */
  let dropped = 0
  /** Whether the reader took nothing for half a second, and has not read since. */
  let isStalled = false
  let timer: Timer | undefined

  /** Writes what is pending. Waits for a slow reader, even without patience, while too much is pending. */
  function flush(patienceMilliseconds: number): void {
    clearTimeout(timer)
    timer = undefined
    let bytes = Buffer.concat([refused, Buffer.from(pending)])
    pending = ""
    for (let waited = 0; bytes.length > 0; ) {
      const written = writeSome(file, bytes)
      bytes = bytes.subarray(written)
      if (written > 0) {
        isStalled = false
        waited = 0
        continue
      }
      const mustWait = bytes.length >= mostPending && !isStalled
      if (!mustWait && waited >= patienceMilliseconds) break
      Bun.sleepSync(1)
      waited += 1
      if (waited >= stalledMilliseconds) isStalled = true
    }
    refused = bytes
    if (refused.length > 0) flushLater()
  }

  function flushLater(): void {
    timer ??= setTimeout(flush, batchMilliseconds, 0).unref()
  }

  function sayDropped(): void {
    if (dropped > 0) pending += lineOnDropped(dropped)
    dropped = 0
  }

  process.on("exit", () => {
    sayDropped()
    flush(exitMilliseconds)
  })
  return {
    /** Makes pino set `lastLevel` to each line's level. */
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write(line: string): void {
      if (isStalled && refused.length + pending.length >= mostPending) {
        dropped += 1
        flushLater()
        return
      }
      const isBatch = pending.length + line.length >= batchCharacters
      sayDropped()
      pending += line
      if (this.lastLevel >= errorLevel) flush(isStalled ? 0 : stalledMilliseconds)
      else if (isBatch) flush(0)
      else flushLater()
    },
  }
}

function lineOnDropped(lines: number): string {
  const time = pino.stdTimeFunctions.isoTime()
  return `{"level":${warnLevel}${time},"message":"the log was not read in time: ${lines} lines are missing here"}\n`
}

/** Returns how many bytes were written: none if the reader is slow, all if it is gone. */
function writeSome(file: number, bytes: Buffer): number {
  try {
    return writeSync(file, bytes)
  } catch (error) {
    // The reader has closed the log, which is no reason to exit.
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

/** Formats a request as one short line, and anything else as its message followed by its fields. */
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

/** Returns an error for a log line: name and message, without a statement's parameters. */
export function loggable(error: unknown): { error: string } {
  const cause = driverError(error)
  return { error: cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause) }
}
