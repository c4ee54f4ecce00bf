import { startServer } from "./api/server.ts"
import { placeOfDatabase } from "./db/open.ts"
import { checkChains } from "./engine/chain/check-chains.ts"
import { learnGenerations } from "./engine/chain/learn-generations.ts"
import { openWorld } from "./engine/world.ts"
import { startOperatorPort } from "./operator/port/start.ts"
import { loadConfig, processEnvironment } from "./platform/config.ts"
import { withFreePort } from "./platform/free-port.ts"
import { runUntilStopped } from "./platform/run.ts"
import { tell } from "./resources/news/tell.ts"

/** Load balancers check about once a second whether a process is ready. */
const noticeMilliseconds = 1_500

// The API process: configuration, database, migrations, server. A signal lets it finish its last responses.
await runUntilStopped(async () => {
  const config = loadConfig(await withFreePort(processEnvironment))
  const world = await openWorld(config, tell)
  const { log } = world.context
  await checkChains(world.context)
  await learnGenerations(world.context.db.read, world.chains.values())
  world.watchRoles()
  const operator = await startOperatorPort(world)
  const server = await startServer(world.context)
  const { host, port } = config
  const database = placeOfDatabase(config.database_url)
  log.info({ host, port, operator_url: operator.url, database }, "the API is listening")
  return async () => {
    log.info({}, "the API is stopping")
    operator.announceStop()
    server.announceStop()
    await Bun.sleep(noticeMilliseconds)
    await server.stop()
    await operator.stop()
    await world.close()
  }
})
