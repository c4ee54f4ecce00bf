import pino from "pino"
import type { LogLevel } from "./config.ts"
import { driverError } from "./db/database.ts"

export type Log = {
  debug(fields: Fields, message: string): void
  info(fields: Fields, message: string): void
  warn(fields: Fields, message: string): void
  error(fields: Fields, message: string): void
}

type Fields = Record<string, unknown>

/** One JSON line for each event, to standard error. Fields are named by the caller: never a request's body or headers. */
export function createLog(level: LogLevel): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: "message" },
    pino.destination({ fd: 2, sync: true }),
  )
}

/** An error as a log line may show it: its name and message, without parameters of statements. */
export function loggable(error: unknown): { error: string } {
  const cause = driverError(error)
  return { error: cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause) }
}
