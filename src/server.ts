import { createApp } from "./app.ts"
import type { Context } from "./context.ts"

export type Server = { base_url: string; stop(): Promise<void> }

/** Answers requests on the configured port until it is stopped; requests under way are finished first. */
export async function startServer(context: Context): Promise<Server> {
  const { host, port, api_base_url } = context.config
  const app = createApp(context)
  app.listen({ hostname: host, port })
  return {
    base_url: api_base_url,
    async stop() {
      await app.stop()
    },
  }
}
