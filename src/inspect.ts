import { parseArgs } from "node:util"
import type { Queries } from "./db/database.ts"
import { withDevEnvironment } from "./dev/environment.ts"
import { findActor } from "./engine/actors/runtime.ts"
import { openWorld } from "./engine/world.ts"
import { startInspectionFeed } from "./operator/inspection/feed.ts"
import { loadConfig, processEnvironment } from "./platform/config.ts"
import { parseId } from "./platform/ids.ts"
import { runUntilStopped, say } from "./platform/run.ts"
import { StartError } from "./platform/start-error.ts"
import { tell } from "./resources/news/tell.ts"

/** `bun run inspect [ID …] [--port N]`: the running actors for the inspector, beside a service with the same `DATA_DIR`. */
async function inspect(words: string[]): Promise<() => Promise<void>> {
  const { port, ids } = optionsOf(words)
  const world = await openWorld(loadConfig(withDevEnvironment(processEnvironment)), tell)
  await requireActors(world.context.db.read, ids)
  const feed = startInspectionFeed(world.context, { port, ids, every_milliseconds: 500 })
  say(
    `The feed of actors is at ${feed.feed_url}; open ${feed.url} to see them in the inspector. Ctrl-C stops it.`,
  )
  return async () => {
    await feed.stop()
    await world.close()
  }
}

async function requireActors(queries: Queries, ids: string[]): Promise<void> {
  for (const id of ids)
    if (!(await findActor(queries, id)))
      throw new StartError(
        `no actor has the id ${id}; if an effect, a transaction or an organization has it, this names the actors: operator explain ${id}`,
      )
}

const usage = "usage: inspect [ID …] [--port N]"

function optionsOf(words: string[]): { port: number; ids: string[] } {
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

const words = process.argv.slice(2)
if (words.includes("--help") || words.includes("-h")) say(usage)
else await runUntilStopped(() => inspect(words))
