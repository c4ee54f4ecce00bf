import pino from "pino"
import pretty from "pino-pretty"
import type { LogLevel } from "./config.ts"
import { driverError } from "./db/database.ts"

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
  return pino(options, process.stderr.isTTY ? readable() : pino.destination({ fd: 2, sync: true }))
}

function readable() {
  return pretty({
    destination: 2,
    sync: true,
    singleLine: true,
    messageKey: "message",
    translateTime: "SYS:HH:MM:ss",
  })
}

/** An error as a log line may show it: its name and message, without parameters of statements. */
export function loggable(error: unknown): { error: string } {
  const cause = driverError(error)
  return { error: cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause) }
}
