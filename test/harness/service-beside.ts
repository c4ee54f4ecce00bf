import { createApp } from "../../src/api/app.ts"
import type { Config } from "../../src/platform/config.ts"
import type { HttpService } from "./api.ts"

/** A second instance of the service with other settings on the same database, like another process. */
export function startBeside(service: HttpService, settings: Partial<Config>): HttpService {
  const context = { ...service.context, config: { ...service.context.config, ...settings } }
  const app = createApp(context).listen({ hostname: "127.0.0.1", port: 0 })
  return {
    ...service,
    context,
    base_url: `http://127.0.0.1:${app.server?.port}`,
    async close() {
      await app.stop(true)
    },
  }
}
