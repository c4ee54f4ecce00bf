import { checkChains } from "./chain/check-chains.ts"
import { loadConfig, processEnvironment } from "./config.ts"
import { openWorld } from "./context.ts"
import { startOperatorPort } from "./operator-port/start.ts"
import { runUntilStopped } from "./run.ts"
import { startServer } from "./server.ts"

/** Load balancers look about once a second whether a process is ready. */
const noticeMilliseconds = 1_500

// The API process: configuration, database, migrations, server. A signal lets it finish its last answers.
await runUntilStopped(async () => {
  const config = loadConfig(processEnvironment)
  const world = await openWorld(config)
  const { log } = world.context
  await checkChains(config.chains, log)
  const operator = startOperatorPort(world)
  const server = await startServer(world.context)
  log.info({ host: config.host, port: config.port, operator_url: operator.url }, "the API is listening")
  return async () => {
    log.info({}, "the API is stopping")
    operator.announceStop()
    await Bun.sleep(noticeMilliseconds)
    await server.stop()
    await operator.stop()
    await world.close()
  }
})
