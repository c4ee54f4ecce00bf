import { Hono } from "hono"
import type { World } from "../../engine/world.ts"
import { wantsHtml } from "../../http/accept.ts"
import type { Context } from "../../platform/context.ts"
import { missingPage } from "../console/page.ts"
import { metricsType, renderMetrics } from "./render-metrics.ts"
import type { WakeUpBoard } from "./wake-up-board.ts"

/** `/metrics` for Prometheus and, if there is Redis, `/queues`, the BullMQ board. */
export async function openObservationPages(world: World): Promise<{ pages: Hono; close(): Promise<void> }> {
  const board = await boardOf(world.context)
  const pages = new Hono()
  pages.get("/metrics", async (c) =>
    c.body(await renderMetrics(world, board), 200, { "content-type": metricsType }),
  )
  if (board) pages.route("/", board.pages)
  else
    pages.all("/queues/*", (c) => {
      const why = "REDIS_URL is not set: wake-ups stay inside the process."
      return wantsHtml(c.req.header("accept") ?? "") ? c.html(missingPage(why), 404) : c.text(`${why}\n`, 404)
    })
  return { pages, close: async () => await board?.close() }
}

async function boardOf({ config: { redis_url }, log }: Context): Promise<WakeUpBoard | null> {
  if (redis_url === null) return null
  // BullMQ and its board are a quarter of what a process would load.
  const { openWakeUpBoard } = await import("./wake-up-board.ts")
  return openWakeUpBoard(redis_url, "/queues", log)
}
