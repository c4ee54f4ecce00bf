import { loadConfig, processEnvironment } from "../src/config.ts"
import { openWorld } from "../src/context.ts"
import { runUntilStopped } from "../src/run.ts"
import { startWorkers } from "./start.ts"

/** A worker process: everything that happens outside a request. */
await runUntilStopped(async () => {
  const world = await openWorld(loadConfig(processEnvironment))
  const workers = startWorkers(world)
  world.context.log.info({ chains: [...world.chains.keys()] }, "the workers are at work")
  return async () => {
    await workers.stop()
    await world.close()
  }
})
