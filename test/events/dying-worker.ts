import { openDatabase } from "../../src/db/open.ts"
import { loadConfig } from "../../src/platform/config.ts"
import type { Context } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { noTracing } from "../../src/platform/tracing.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { followEvents } from "../../workers/watches/follow-events.ts"
import { createDeliverer } from "../../workers/webhooks/deliver.ts"

/** A process of `killed-workers.test.ts`: a worker that kills itself the third time it passes a step. */
const { url, secret, step, at } = JSON.parse(process.argv[2] ?? "{}") as Record<string, string>
const context: Context = {
  config: loadConfig({ SERVICE_SECRET: secret }),
  db: openDatabase(String(url)),
  clock: () => new Date(String(at)),
  steadyClock: () => performance.now(),
  chains: new Map(),
  wake: () => {},
  onWake: () => () => {},
  tell,
  log: { debug() {}, info() {}, warn() {}, error() {} },
  tracing: noTracing,
  keyFaults: () => [],
}
let passed = 0
const deliverer = createDeliverer(context, {
  owner: newId(),
  checkpoint(name) {
    if (name === step && ++passed === 3) process.kill(process.pid, "SIGKILL")
  },
})
for (;;) {
  await followEvents(context)
  await deliverer.tick()
  await Bun.sleep(20)
}
