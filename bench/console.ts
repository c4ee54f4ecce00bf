import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { chromium } from "playwright-core"
import { openWorld } from "../src/engine/world.ts"
import { consolePages } from "../src/operator/console/routes.ts"
import { startOperatorServer } from "../src/operator/port/server.ts"
import { loadConfig } from "../src/platform/config.ts"
import { tell } from "../src/resources/news/tell.ts"
import { fillWithActors } from "./many-actors.ts"
import { report } from "./report.ts"

/** How long the console's pages take over a database with many actors, in a browser where there is one. */
const actors = 200_000
const folder = mkdtempSync(join(tmpdir(), "bench-console-"))
const config = loadConfig({
  SERVICE_SECRET: "a secret of benchmarks, long enough",
  DATA_DIR: folder,
  OPERATOR_PORT: "0",
  LOG_LEVEL: "silent",
})
const world = await openWorld(config, tell)
const { unit_id } = fillWithActors(join(folder, "service.db"), actors)
const server = startOperatorServer(world.context, [consolePages(world.context)])

const pages = {
  overview: "/console",
  counts: "/console/counts",
  state: "/console/machines/unit-token/states/active",
  actor: `/console/actors/${unit_id}`,
  search: "/console/search?q=item-777",
}
const answered_milliseconds: Record<string, number> = {}
for (const [name, path] of Object.entries(pages))
  answered_milliseconds[name] = await measure(async () => {
    await (await fetch(server.url + path)).text()
  })
const opened_milliseconds = await openInBrowser()
await server.stop()
await world.close()
rmSync(folder, { recursive: true })

const result = { actors, answered_milliseconds, opened_milliseconds }
report(result, textOf())

async function measure(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return Math.round((performance.now() - begin) * 10) / 10
}

/** From the first request to the loaded page, the browser running already; null without Chromium. */
async function openInBrowser(): Promise<number | null> {
  const executablePath = Bun.which("chromium")
  if (!executablePath) return null
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] })
  const page = await browser.newPage()
  const milliseconds = await measure(async () => {
    await page.goto(`${server.url}/console`)
  })
  await browser.close()
  return milliseconds
}

function textOf(): string {
  const lines = Object.entries(answered_milliseconds).map(([name, ms]) => `  ${name.padEnd(10)} ${ms} ms`)
  return `console with ${actors} actors\n${lines.join("\n")}\n  in a browser, loaded: ${opened_milliseconds ?? "no Chromium"} ms\n`
}
