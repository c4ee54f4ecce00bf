import { DatabaseUnavailable, withPlace } from "../db/database.ts"
import { ConfigError } from "./config-error.ts"
import { StartError } from "./start-error.ts"

/**
 * Runs a long-lived process: `start` answers how to stop it, which SIGINT and SIGTERM do. A start that fails says
 * why in one line on standard error and ends with 1; so does a stop that takes longer than ten seconds.
 */
export async function runUntilStopped(start: () => Promise<() => Promise<unknown>>): Promise<void> {
  keepFilesPrivate()
  let stop: (() => Promise<unknown>) | undefined
  let isStopping = false
  const end = async () => {
    if (isStopping) return
    isStopping = true
    setTimeout(() => process.exit(1), stopPatienceMilliseconds).unref()
    await stop?.()
    process.exit(0)
  }
  process.on("SIGINT", end)
  process.on("SIGTERM", end)
  try {
    stop = await start()
    if (isStopping) await stop()
  } catch (error) {
    complain(startFailure(error))
    process.exit(1)
  }
}

const stopPatienceMilliseconds = 10_000

/** What this process writes, databases above all, is for its own user's eyes. */
export function keepFilesPrivate(): void {
  process.umask(0o077)
}

/** One line for the person at the terminal. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** The cause and the next step, in one line. */
function startFailure(error: unknown): string {
  if (error instanceof DatabaseUnavailable) return withPlace(error)
  const known = [ConfigError, StartError].some((kind) => error instanceof kind)
  const { message } = error as Error
  return known ? message : `the service could not start: ${message}`
}
