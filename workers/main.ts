import { placeOfDatabase } from "../src/db/open.ts"
import { checkChains } from "../src/engine/chain/check-chains.ts"
import { openWorld } from "../src/engine/world.ts"
import { startOperatorPort } from "../src/operator/port/start.ts"
import { loadConfig, processEnvironment } from "../src/platform/config.ts"
import { runUntilStopped } from "../src/platform/run.ts"
import { tell } from "../src/resources/news/tell.ts"
import { startWorkers } from "./start.ts"

/** The worker process: everything that happens outside a request. */
await runUntilStopped(async () => {
  const config = loadConfig(processEnvironment)
  const world = await openWorld(config, tell)
  const { log } = world.context
  await checkChains(world.context)
  world.watchRoles()
  const operator = await startOperatorPort(world)
  const workers = startWorkers(world)
  const chains = config.chains.map(({ chain_id }) => chain_id)
  const database = placeOfDatabase(config.database_url)
  log.info({ chains, operator_url: operator.url, database }, "the workers are running")
  return async () => {
    log.info({}, "the workers are stopping")
    operator.announceStop()
    await workers.stop()
    await operator.stop()
    await world.close()
  }
})
