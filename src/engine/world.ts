import { migrate } from "../db/migrate.ts"
import { openDatabase } from "../db/open.ts"
import type { Tell } from "../db/turn.ts"
import type { Config } from "../platform/config.ts"
import { type Context, inTurn } from "../platform/context.ts"
import { createLog, type Log } from "../platform/log.ts"
import { holdToKnownSecrets } from "../platform/service-secrets.ts"
import { createTracing, noTracing } from "../platform/tracing.ts"
import { createWakeUps, type WakeUps } from "../platform/wake.ts"
import { type ConnectedChain, createChains } from "./chain/chains.ts"
import { watchRoles } from "./chain/check-roles.ts"
import { openSignerAccounts } from "./chain/signers.ts"
import { ensureLane } from "./lanes/leases.ts"

/** What a process has opened: what all its parts share, and what only workers need. */
export type World = {
  context: Context
  chains: ReadonlyMap<number, ConnectedChain>
  wakeUps: WakeUps
  /** Starts checking the keys' roles on chain; from then on `keyFaults` reports what is wrong. */
  watchRoles(): void
  close(): Promise<void>
}

/**
 * Opens everything that the configuration names, and migrates the database. `tell` is passed in because it presents
 * resources, a layer above this one. Throws `DatabaseUnavailable`, or `StartError` if the database needs a
 * `SERVICE_SECRET` that the configuration lacks.
 */
export async function openWorld(config: Config, tell: Tell): Promise<World> {
  const world = await openUncheckedWorld(config, tell)
  try {
    await inTurn(world.context, null, (turn) => holdToKnownSecrets(turn, config.service_secret))
  } catch (error) {
    await world.close()
    throw error
  }
  return world
}

/** Like `openWorld`, but without checking the secret: for recovery after a secret was lost. */
export async function openUncheckedWorld(config: Config, tell: Tell): Promise<World> {
  const log = createLog(config.log_level)
  const tracing = config.traces_url ? await createTracing(config.traces_url, log) : noTracing
  const db = openDatabase(config.database_url)
  const chains = createChains(config, await openSignerAccounts(config.signer_keys))
  const wakeUps = await openWakeUps(config, log)
  const clock = () => new Date()
  const steadyClock = () => performance.now()
  const { wake, onWake } = wakeUps
  let roles: ReturnType<typeof watchRoles> | undefined
  const keyFaults = () => [...chains.keys()].flatMap((id) => roles?.faultsOf(id) ?? [])
  const clocks = { clock, steadyClock }
  const context: Context = { config, db, ...clocks, chains, wake, onWake, tell, log, tracing, keyFaults }
  const close = async () => {
    roles?.stop()
    await wakeUps.close()
    await db.close()
    await tracing.close()
  }
  try {
    await migrate(db, clock(), log)
    await inTurn(context, null, async (turn) => {
      for (const chain of chains.values())
        for (const signer of chain.signers) await ensureLane(turn, chain.chain_id, signer)
    })
  } catch (error) {
    await close()
    throw error
  }
  return {
    context,
    chains,
    wakeUps,
    close,
    watchRoles() {
      roles ??= watchRoles(chains, log)
    },
  }
}

/** Loads BullMQ only if Redis is configured: it takes 11 MB of memory and a tenth of a second. */
async function openWakeUps({ redis_url }: Config, log: Log): Promise<WakeUps> {
  if (!redis_url) return createWakeUps()
  const { createRedisWakeUps } = await import("../platform/wake-redis.ts")
  return createRedisWakeUps(redis_url, log)
}
