import type { Chains } from "./chain/chains.ts"
import type { Config } from "./config.ts"
import { afterCommit, type Database } from "./db/database.ts"
import type { Turn } from "./db/turn.ts"
import type { Log } from "./log.ts"

/** What functions need of the world around them; made once, in the composition root. */
export type Context = {
  config: Config
  db: Database
  /** The only clock. */
  clock: () => Date
  chains: Chains
  wake: (queue: string) => void
  log: Log
}

/** Runs `work` in one database transaction that has one time and one cause. `work` may run more than once. */
export function inTurn<T>(
  context: Context,
  requestId: string | null,
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  return context.db.transaction((tx) =>
    work({
      tx,
      at: context.clock(),
      request_id: requestId,
      wake: (queue) => afterCommit(() => context.wake(queue)),
    }),
  )
}
