import { consolePages } from "../console/routes.ts"
import type { World } from "../context.ts"
import { openObservationPages } from "./observation-pages.ts"
import type { OperatorPage } from "./page.ts"
import { type OperatorServer, startOperatorServer } from "./server.ts"

/** The operator port of a process: probes, metrics, the board of wake-ups, the lifecycle console, and what else is mounted. */
export function startOperatorPort(world: World, mounted: readonly OperatorPage[] = []): OperatorServer {
  const observation = openObservationPages(world)
  const server = startOperatorServer(world.context, [
    ...observation.pages,
    ...consolePages(world.context),
    ...mounted,
  ])
  return {
    ...server,
    async stop() {
      await server.stop()
      await observation.close()
    },
  }
}
