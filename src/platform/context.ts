import { afterCommit, type Database, type Isolation } from "../db/database.ts"
import type { Tell, Turn } from "../db/turn.ts"
import type { Chains } from "./chain.ts"
import type { Config } from "./config.ts"
import type { Log } from "./log.ts"
import type { Tracing } from "./tracing.ts"

/** What functions need from outside; created once, in the composition root. */
export type Context = {
  config: Config
  db: Database
  /** The only clock for the time of day. It may be wrong and be corrected. */
  clock: () => Date
  /** Milliseconds of a monotonic clock, for ages kept in memory. */
  steadyClock: () => number
  chains: Chains
  wake: (queue: string) => void
  /** Calls `callback` whenever a queue is woken. Returns a function that stops this. */
  onWake: (queue: string, callback: () => void) => () => void
  /** Adds what happened to the event feed. */
  tell: Tell
  log: Log
  tracing: Tracing
  /** Returns the keys of this service that lack their role on a chain, as last checked. */
  keyFaults: () => readonly KeyFault[]
}

/** `text` is one line for whoever can fix it. */
export type KeyFault = {
  chain_id: number
  variable: "AUTHORIZER_KEY" | "SIGNER_KEYS" | "CHAINS"
  text: string
}

/** Runs `work` in one database transaction with one time and one cause. `work` may run more than once. */
export function inTurn<T>(
  context: Context,
  requestId: string | null,
  work: (turn: Turn) => Promise<T>,
  isolation: Isolation = "serializable",
): Promise<T> {
  return context.db.transaction(
    (tx) =>
      work({
        tx,
        engine: context.db.engine,
        at: context.clock(),
        request_id: requestId,
        wake: (queue) => afterCommit(() => context.wake(queue)),
        tell: context.tell,
      }),
    isolation,
  )
}
