import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const script = `
  import { loadConfig, processEnvironment } from "./src/platform/config.ts"
  import { openWorld } from "./src/engine/world.ts"
  import { tell } from "./src/resources/news/tell.ts"
  import { createApp } from "./src/api/app.ts"
  import { routes } from "./src/api/routes.ts"
  import { startOperatorPort } from "./src/operator/port/start.ts"
  import { startWorkers } from "./workers/start.ts"
  import "./src/dev/start.ts"
  const world = await openWorld(loadConfig(processEnvironment), tell)
  createApp(world.context, routes, new AbortController().signal)
  const operator = await startOperatorPort(world)
  const workers = startWorkers(world)
  await workers.stop()
  await operator.stop()
  await world.close()
  const packages = Object.keys(require.cache).map((path) => path.split("/node_modules/").at(-1))
  process.stdout.write(JSON.stringify(packages))
`

test("a service on SQLite alone loads nothing for Postgres, Redis, key services, charts or other chains", async () => {
  const folder = mkdtempSync(join(tmpdir(), "loaded-"))
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: dirname(dirname(import.meta.dir)),
    env: {
      DATA_DIR: folder,
      SERVICE_SECRET: "a secret of tests that is long enough",
      LOG_LEVEL: "silent",
      OPERATOR_PORT: "0",
    },
    stdout: "pipe",
  })
  const paths = JSON.parse(await child.stdout.text()) as string[]
  rmSync(folder, { recursive: true })
  const loaded = (name: string) => paths.some((path) => path.startsWith(`${name}/`))
  const ours = ["viem", "elysia", "hono", "xstate"]
  const drivers = ["pg", "ioredis", "bullmq", "@bull-board"]
  const seldom = ["@opentelemetry/sdk-trace", "elkjs", "age-encryption", "@aws-sdk", "google-auth-library"]
  // Hundreds of chains, one file each.
  const chains = "viem/_esm/chains/definitions"
  expect([...ours, ...drivers, ...seldom, chains].filter(loaded)).toEqual(ours)
})
