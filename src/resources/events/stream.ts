import type { EventRow } from "../../db/event-schema.ts"
import { eventBody } from "../../engine/events/body.ts"
import type { TextStream } from "../../http/envelope.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError } from "../../platform/errors.ts"
import { type EventFilter, eventsAfter, type Place } from "./service.ts"
import { feedWatchOf } from "./watch.ts"

/**
 * Streams the feed after a place as server-sent events (HTML Living Standard, 9.2), until `stopping` or until the
 * caller's key ends. Throws `rate_limit.exceeded` if the organization has too many streams open in this process.
 */
export function streamEvents(
  context: Context,
  caller: Caller,
  { place, stopping, ...filter }: EventFilter & { place: Place; stopping: AbortSignal },
): TextStream {
  const { organization_id, credential_id } = caller
  const watch = feedWatchOf(context)
  if (watch.readersOf(organization_id) >= mostStreams)
    throw new ApiError("rate_limit.exceeded", `An organization has at most ${mostStreams} streams open.`)
  let news = Promise.withResolvers<void>()
  let isOver = stopping.aborted
  const wake = () => news.resolve()
  const end = () => {
    isOver = true
    leave()
    stopping.removeEventListener("abort", end)
    wake()
  }
  const leave = watch.add({ organization_id, credential_id, grown: wake, end })
  stopping.addEventListener("abort", end)

  async function* read(): AsyncGenerator<string, void> {
    try {
      // An id without data is not an event, but a client that disconnects before the first event resumes from it.
      yield `: the feed of events\nid: ${place.id}\n\n`
      let commentedAt = performance.now()
      for (let seen = place.position; !isOver; ) {
        news = Promise.withResolvers<void>()
        const rows = await eventsAfter(context.db.read, caller, {
          ...filter,
          position: seen,
          limit: pageSize,
        })
        if (isOver) return
        if (rows.length > 0) yield rows.map(messageOf).join("")
        seen = rows.at(-1)?.position ?? seen
        if (performance.now() - commentedAt >= commentMilliseconds) {
          yield ": still here\n\n"
          commentedAt = performance.now()
        }
        if (rows.length === pageSize) continue
        const timer = setTimeout(wake, commentedAt + commentMilliseconds - performance.now())
        await news.promise
        clearTimeout(timer)
      }
    } finally {
      end()
    }
  }

  const texts = read()
  return { next: () => texts.next(), end }
}

const mostStreams = 100
const pageSize = 100
const commentMilliseconds = 15_000

function messageOf(row: EventRow): string {
  return `id: ${row.id}\nevent: ${row.type}\ndata: ${JSON.stringify(eventBody(row))}\n\n`
}
