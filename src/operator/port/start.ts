import type { World } from "../../engine/world.ts"
import { consolePages } from "../console/routes.ts"
import { openObservationPages } from "./observation-pages.ts"
import { type OperatorServer, startOperatorServer } from "./server.ts"

/** The operator port of a process: probes, metrics, the wake-up board and the lifecycle console. */
export async function startOperatorPort(world: World): Promise<OperatorServer> {
  const observation = await openObservationPages(world)
  const server = startOperatorServer(world.context, [observation.pages, consolePages(world.context)])
  return {
    ...server,
    async stop() {
      await server.stop()
      await observation.close()
    },
  }
}
