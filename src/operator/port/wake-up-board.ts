import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createBullBoard } from "@bull-board/api"
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter"
import { HonoAdapter } from "@bull-board/hono"
import { Queue } from "bullmq"
import { Hono } from "hono"
import { serveStatic } from "hono/bun"
import type { Redis } from "ioredis"
import type { Log } from "../../platform/log.ts"
import { palette } from "../../platform/look/look.ts"
import { connectRedis, quiet } from "../../platform/redis.ts"
import { wakeUpQueue } from "../../platform/wake-redis.ts"

/** The wake-ups in Redis: the read-only BullMQ board, and how many there are. */
export type WakeUpBoard = {
  pages: Hono
  /** Wake-ups that no worker has taken yet; null while Redis is down. */
  waiting(): Promise<number | null>
  /** Tries a write: a full or demoted Redis still answers reads. */
  takesWrites(): Promise<boolean>
  close(): Promise<void>
}

export function openWakeUpBoard(redisUrl: string, path: string, log: Log): WakeUpBoard {
  // The publisher already says when Redis is down.
  const redis = connectRedis(redisUrl, 1_000)
  redis.once("ready", () => void warnOfEviction(redis, log))
  // BullMQ would print its own warnings, which are no JSON, between the lines of the log.
  const options = { prefix: wakeUpQueue.prefix, connection: redis, skipVersionCheck: true }
  const queue = quiet(new Queue(wakeUpQueue.name, options))
  const adapter = new HonoAdapter(serveStatic)
  adapter.setBasePath(path)
  const queues = [new BullMQAdapter(queue, { readOnlyMode: true })]
  createBullBoard({ queues, serverAdapter: adapter, options: { uiConfig: look } })
  const pages = new Hono()
  pages.use(`${path}/*`, async (c, next) => {
    if (redis.status === "ready") await next()
    else c.res = c.text("Redis does not answer at the moment.\n", 503)
    if (c.res.headers.get("content-type")?.startsWith("text/html"))
      c.res = new Response(dressed(await c.res.text()), c.res)
    c.res.headers.set("content-security-policy", boardPolicy)
  })
  pages.route(path, adapter.registerPlugin())
  return {
    pages,
    async waiting() {
      if (redis.status !== "ready") return null
      const counts = await queue.getJobCounts("waiting", "active").catch(() => null)
      return counts && Object.values(counts).reduce((sum, count) => sum + count, 0)
    },
    async takesWrites() {
      if (redis.status !== "ready") return false
      return await redis.set(probeKey, "1", "PX", 1_000).then(
        () => true,
        () => false,
      )
    },
    async close() {
      redis.disconnect()
    },
  }
}

const probeKey = "service-api:probe"

async function warnOfEviction(redis: Redis, log: Log): Promise<void> {
  const memory = await redis.info("memory").catch(() => "")
  const [, policy = "noeviction"] = /^maxmemory_policy:(\S+)/m.exec(memory) ?? []
  if (policy !== "noeviction")
    log.warn(
      { policy },
      "Redis deletes wake-ups and rate limits when it is full: set its maxmemory-policy to noeviction",
    )
}

/** Like the console, with a link back to it. */
const look = {
  boardTitle: "Wake-ups",
  favIcon: { default: "/console/icon.svg", alternative: "/console/icon.svg" },
  miscLinks: [{ text: "Lifecycle console", url: "/console" }],
  hideDocsLink: true,
}

/** The board's page in the console's colours, without its request to Google for fonts that the service has itself. */
function dressed(page: string): string {
  return page.replace(/<link href="https:[^>]*>/g, "").replace("</head>", `<style>${style}</style></head>`)
}

// After its own style, whose variables these colours override.
const style = palette + readFileSync(join(import.meta.dir, "wake-up-board.css"), "utf8")

/** The board has inline styles and settings in its page. */
const boardPolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; base-uri 'self'; frame-ancestors 'none'"
