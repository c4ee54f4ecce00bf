import { parseArgs } from "node:util"
import { loadConfig, processEnvironment } from "./config.ts"
import { openWorld } from "./context.ts"
import { withDevEnvironment } from "./dev-environment.ts"
import { parseId } from "./ids.ts"
import { startInspectionFeed } from "./inspection/feed.ts"
import { runUntilStopped, say } from "./run.ts"
import { StartError } from "./start-error.ts"

/** `bun run inspect [ID …] [--port N]`: the running actors for the inspector, beside a service with the same `DATA_DIR`. */
async function inspect(words: string[]): Promise<() => Promise<void>> {
  const { port, ids } = optionsOf(words)
  const world = await openWorld(loadConfig(withDevEnvironment(processEnvironment)))
  const feed = startInspectionFeed(world.context, { port, ids, every_milliseconds: 500 })
  say(
    `The actors are told at ${feed.feed_url}; open ${feed.url} to see them in the inspector. Ctrl-C ends it.`,
  )
  return async () => {
    await feed.stop()
    await world.close()
  }
}

function optionsOf(words: string[]): { port: number; ids: string[] } {
  const usage = "usage: inspect [ID …] [--port N]"
  const parsed = parseWords(words)
  if (!parsed) throw new StartError(usage)
  const port = Number(parsed.values.port)
  const wrong = parsed.positionals.find((text) => parseId(text) === null)
  if (!/^\d{1,5}$/.test(parsed.values.port) || port > 65_535)
    throw new StartError(`--port takes a number up to 65535; ${usage}`)
  if (wrong !== undefined) throw new StartError(`${JSON.stringify(wrong)} is not an id; ${usage}`)
  return { port, ids: parsed.positionals.map((text) => text.toLowerCase()) }
}

function parseWords(args: string[]) {
  try {
    return parseArgs({ args, options: { port: { type: "string", default: "8080" } }, allowPositionals: true })
  } catch {
    return null
  }
}

if (import.meta.main) await runUntilStopped(() => inspect(process.argv.slice(2)))
