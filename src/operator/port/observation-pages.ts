import { Hono } from "hono"
import type { World } from "../../engine/world.ts"
import { wantsHtml } from "../../http/accept.ts"
import { missingPage } from "../console/page.ts"
import { metricsType, renderMetrics } from "./render-metrics.ts"
import { openWakeUpBoard } from "./wake-up-board.ts"

/** `/metrics` for Prometheus, and `/queues`, the BullMQ board, where there is Redis. */
export function openObservationPages(world: World): { pages: Hono; close(): Promise<void> } {
  const { redis_url } = world.context.config
  const board = redis_url ? openWakeUpBoard(redis_url, "/queues") : null
  const pages = new Hono()
  pages.get("/metrics", async (c) =>
    c.body(await renderMetrics(world, board), 200, { "content-type": metricsType }),
  )
  if (board) pages.route("/", board.pages)
  else
    pages.all("/queues/*", (c) => {
      const why = "REDIS_URL is unset: the wake-ups stay inside the process."
      return wantsHtml(c.req.header("accept") ?? "") ? c.html(missingPage(why), 404) : c.text(`${why}\n`, 404)
    })
  return { pages, close: async () => await board?.close() }
}
