import { createBullBoard } from "@bull-board/api"
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter"
import { HonoAdapter } from "@bull-board/hono"
import { Queue } from "bullmq"
import { Hono } from "hono"
import { serveStatic } from "hono/bun"
import { Redis } from "ioredis"
import { wakeUpQueue } from "../wake-redis.ts"

/** A look at the wake-ups in Redis: the BullMQ board, which changes nothing, and how many there are. */
export type WakeUpBoard = {
  fetch(request: Request): Response | Promise<Response>
  /** Wake-ups that nobody has taken off yet; null while Redis is away. */
  waiting(): Promise<number | null>
  close(): Promise<void>
}

export function openWakeUpBoard(redisUrl: string, path: string): WakeUpBoard {
  const redis = new Redis(redisUrl, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 1_000,
  })
  const queue = new Queue(wakeUpQueue.name, { prefix: wakeUpQueue.prefix, connection: redis })
  // Who publishes says when Redis is away; without a listener an error would end the process.
  for (const emitter of [redis, queue]) emitter.on("error", () => {})
  const adapter = new HonoAdapter(serveStatic)
  adapter.setBasePath(path)
  createBullBoard({ queues: [new BullMQAdapter(queue, { readOnlyMode: true })], serverAdapter: adapter })
  const app = new Hono().route(path, adapter.registerPlugin())
  return {
    fetch: (request) =>
      redis.status === "ready"
        ? app.fetch(request)
        : new Response("Redis does not answer now", { status: 503 }),
    async waiting() {
      if (redis.status !== "ready") return null
      const counts = await queue.getJobCounts("waiting", "active").catch(() => null)
      return counts && Object.values(counts).reduce((sum, count) => sum + count, 0)
    },
    async close() {
      redis.disconnect()
    },
  }
}
