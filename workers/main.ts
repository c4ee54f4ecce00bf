import { checkChains } from "../src/chain/check-chains.ts"
import { loadConfig, processEnvironment } from "../src/config.ts"
import { openWorld } from "../src/context.ts"
import { startOperatorPort } from "../src/operator-port/start.ts"
import { runUntilStopped } from "../src/run.ts"
import { startWorkers } from "./start.ts"

/** A worker process: everything that happens outside a request. */
await runUntilStopped(async () => {
  const config = loadConfig(processEnvironment)
  const world = await openWorld(config)
  const { log } = world.context
  await checkChains(config.chains, log)
  const operator = startOperatorPort(world)
  const workers = startWorkers(world)
  const chains = config.chains.map(({ chain_id }) => chain_id)
  log.info({ chains, operator_url: operator.url }, "the workers are at work")
  return async () => {
    log.info({}, "the workers are stopping")
    operator.announceStop()
    await workers.stop()
    await operator.stop()
    await world.close()
  }
})
