import { type Chains, type ConnectedChain, createChains } from "./chain/chains.ts"
import { ensureLane } from "./chain/lanes.ts"
import type { Config } from "./config.ts"
import { afterCommit, type Database } from "./db/database.ts"
import { migrate } from "./db/migrate.ts"
import { openDatabase } from "./db/open.ts"
import type { Turn } from "./db/turn.ts"
import { createLog, type Log } from "./log.ts"
import { createTracing, noTracing, type Tracing } from "./tracing.ts"
import { createWakeUps, type WakeUps } from "./wake.ts"
import { createRedisWakeUps } from "./wake-redis.ts"

/** What functions need of the world around them; made once, in the composition root. */
export type Context = {
  config: Config
  db: Database
  /** The only clock. */
  clock: () => Date
  chains: Chains
  wake: (queue: string) => void
  log: Log
  tracing: Tracing
}

/** The world of a process, opened: what its parts share and what only the workers need. */
export type World = {
  context: Context
  chains: ReadonlyMap<number, ConnectedChain>
  wakeUps: WakeUps
  close(): Promise<void>
}

/** Opens everything a configuration names, in order; the database is migrated. Throws `DatabaseUnavailable`. */
export async function openWorld(config: Config): Promise<World> {
  const log = createLog(config.log_level)
  const tracing = config.traces_url ? await createTracing(config.traces_url, log) : noTracing
  const db = openDatabase(config.database_url)
  const chains = createChains(config)
  const wakeUps = config.redis_url ? createRedisWakeUps(config.redis_url, log) : createWakeUps()
  const clock = () => new Date()
  const context: Context = { config, db, clock, chains, wake: wakeUps.wake, log, tracing }
  const close = async () => {
    await wakeUps.close()
    await db.close()
    await tracing.close()
  }
  try {
    await migrate(db, clock())
    await inTurn(context, null, async (turn) => {
      for (const chain of chains.values())
        for (const signer of chain.signers) await ensureLane(turn, chain.chain_id, signer)
    })
  } catch (error) {
    await close()
    throw error
  }
  return { context, chains, wakeUps, close }
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
