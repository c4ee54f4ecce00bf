import type { Context } from "../platform/context.ts"
import { listenFailure } from "../platform/listen-failure.ts"
import { createApp } from "./app.ts"
import { routes } from "./routes.ts"

type Server = {
  base_url: string
  /** Makes clients leave: from now on each response closes its connection, and streams end. */
  announceStop(): void
  stop(): Promise<void>
}

/** Serves requests on the configured port until it is stopped. Throws `StartError` if it cannot listen there. */
export async function startServer(context: Context): Promise<Server> {
  const { host, port, api_base_url } = context.config
  const stopping = new AbortController()
  const app = createApp(context, routes, stopping.signal)
  try {
    app.listen({ hostname: host, port })
  } catch (error) {
    throw listenFailure(error, {
      port: `port ${port}`,
      another: "set PORT to another one",
      host: { variable: "HOST", value: host },
    })
  }
  return {
    base_url: api_base_url,
    announceStop: () => stopping.abort(),
    /** Requests under way are finished first. */
    async stop() {
      const { server } = app
      if (!server) return
      stopping.abort()
      const deadline = performance.now() + patienceMilliseconds
      void server.stop()
      // Without this, idle connections would be waited for.
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(20)
      // Not `server.stop`: only the app's own closes what it has opened, such as a connection to Redis.
      await app.stop(true)
    },
  }
}

/** Longer than any request takes, and short enough to leave time for the rest of a stop. */
const patienceMilliseconds = 6_000
