import { DatabaseUnavailable, withPlace } from "../db/database.ts"
import { processEnvironment } from "./config.ts"
import { ConfigError } from "./config-error.ts"
import { StartError } from "./start-error.ts"

/**
 * Runs a long-lived process. `start` returns a function that stops it, which SIGINT and SIGTERM call. A failed start
 * prints the reason in one line on standard error. It exits with 1, and so does a stop of more than ten seconds.
 */
export async function runUntilStopped(start: () => Promise<() => Promise<unknown>>): Promise<void> {
  keepFilesPrivate()
  reachThisMachineDirectly()
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

/** Makes the files that this process writes, such as databases, accessible only to its own user. */
export function keepFilesPrivate(): void {
  process.umask(0o077)
}

/** Excepts this machine, where the local chain is, from the proxy of the environment, which could not reach it. */
export function reachThisMachineDirectly(): void {
  const excepted = processEnvironment.no_proxy || processEnvironment.NO_PROXY
  if (excepted === "*") return
  const all = [...(excepted ? [excepted] : []), "localhost", "127.0.0.1", "::1"].join(",")
  // Bun reads the one in small letters first.
  for (const name of ["no_proxy", "NO_PROXY"]) processEnvironment[name] = all
}

/** Prints one line for the person at the terminal. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Returns the cause and the next step in one line. */
function startFailure(error: unknown): string {
  if (error instanceof DatabaseUnavailable) return withPlace(error)
  const known = [ConfigError, StartError].some((kind) => error instanceof kind)
  const { message } = error as Error
  return known ? message : `the service could not start: ${message}`
}
