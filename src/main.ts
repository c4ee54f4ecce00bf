import { loadConfig, processEnvironment } from "./config.ts"
import { openWorld } from "./context.ts"
import { runUntilStopped } from "./run.ts"
import { startServer } from "./server.ts"

// The API process: configuration, database, migrations, server. A signal lets it finish its last answers.
await runUntilStopped(async () => {
  const config = loadConfig(processEnvironment)
  const world = await openWorld(config)
  const { log } = world.context
  try {
    const server = await startServer(world.context)
    log.info({ host: config.host, port: config.port }, "the API is listening")
    return async () => {
      log.info({}, "the API is stopping")
      await server.stop()
      await world.close()
    }
  } catch (error) {
    await world.close()
    throw error
  }
})
