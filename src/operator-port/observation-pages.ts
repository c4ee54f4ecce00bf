import type { World } from "../context.ts"
import { type OperatorPage, textAnswer } from "./page.ts"
import { metricsType, renderMetrics } from "./render-metrics.ts"
import { openWakeUpBoard } from "./wake-up-board.ts"

/** `/metrics` for Prometheus, and `/queues`, the BullMQ board, where there is Redis. */
export function openObservationPages(world: World): { pages: OperatorPage[]; close(): Promise<void> } {
  const { redis_url } = world.context.config
  const board = redis_url ? openWakeUpBoard(redis_url, "/queues") : null
  return {
    pages: [
      {
        method: "GET",
        path: "/metrics",
        access: "token",
        answer: async () =>
          new Response(await renderMetrics(world, board), { headers: { "content-type": metricsType } }),
      },
      {
        method: "*",
        path: "/queues/*",
        access: "token",
        async answer({ request }) {
          if (!board) return textAnswer("REDIS_URL is unset: the wake-ups stay inside the process.", 404)
          const answer = await board.fetch(request)
          const response = new Response(answer.body, answer)
          response.headers.set("content-security-policy", boardPolicy)
          return response
        },
      },
    ],
    close: async () => await board?.close(),
  }
}

/** The board brings styles and its settings inside its page. */
const boardPolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; base-uri 'self'; frame-ancestors 'none'"
