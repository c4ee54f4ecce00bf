import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createBullBoard } from "@bull-board/api"
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter"
import { HonoAdapter } from "@bull-board/hono"
import { Queue } from "bullmq"
import { Hono } from "hono"
import { serveStatic } from "hono/bun"
import { palette } from "../../platform/look/look.ts"
import { connectRedis, quiet } from "../../platform/redis.ts"
import { wakeUpQueue } from "../../platform/wake-redis.ts"

/** A look at the wake-ups in Redis: the BullMQ board, which changes nothing, and how many there are. */
export type WakeUpBoard = {
  pages: Hono
  /** Wake-ups that nobody has taken off yet; null while Redis is away. */
  waiting(): Promise<number | null>
  /** Tries it: one that is full, or was demoted, answers questions all the same. */
  takesWrites(): Promise<boolean>
  close(): Promise<void>
}

export function openWakeUpBoard(redisUrl: string, path: string): WakeUpBoard {
  // Who publishes says when Redis is away.
  const redis = connectRedis(redisUrl, 1_000)
  const queue = quiet(new Queue(wakeUpQueue.name, { prefix: wakeUpQueue.prefix, connection: redis }))
  const adapter = new HonoAdapter(serveStatic)
  adapter.setBasePath(path)
  const queues = [new BullMQAdapter(queue, { readOnlyMode: true })]
  createBullBoard({ queues, serverAdapter: adapter, options: { uiConfig: look } })
  const pages = new Hono()
  pages.use(`${path}/*`, async (c, next) => {
    if (redis.status === "ready") await next()
    else c.res = c.text("Redis does not answer now\n", 503)
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

/** As the console looks, with a way back to it. */
const look = {
  boardTitle: "Wake-ups",
  favIcon: { default: "/console/icon.svg", alternative: "/console/icon.svg" },
  miscLinks: [{ text: "Lifecycle console", url: "/console" }],
  hideDocsLink: true,
}

/** The board's page in the colours of the others. It would ask Google for the fonts that the service has itself. */
function dressed(page: string): string {
  return page.replace(/<link href="https:[^>]*>/g, "").replace("</head>", `<style>${style}</style></head>`)
}

// Behind its own style, whose names these colours are given to.
const style = palette + readFileSync(join(import.meta.dir, "wake-up-board.css"), "utf8")

/** The board brings styles and its settings inside its page. */
const boardPolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; base-uri 'self'; frame-ancestors 'none'"
