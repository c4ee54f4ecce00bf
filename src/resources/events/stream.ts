import type { EventRow } from "../../db/event-schema.ts"
import { eventBody } from "../../engine/events/body.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError } from "../../platform/errors.ts"
import { type EventFilter, eventsAfter, type Place } from "./service.ts"
import { feedWatchOf } from "./watch.ts"

/**
 * The feed from a position on as server-sent events (HTML Living Standard, 9.2), until `stopping` or the end of the
 * caller's key. A reader that takes nothing is sent nothing more. Throws `rate_limit.exceeded` where an organization
 * has too many open.
 */
export async function* streamEvents(
  context: Context,
  caller: Caller,
  { place, stopping, ...filter }: EventFilter & { place: Place; stopping: AbortSignal },
): AsyncGenerator<string> {
  const { organization_id, credential_id } = caller
  let news = Promise.withResolvers<void>()
  let isOver = stopping.aborted
  const wake = () => news.resolve()
  const end = () => {
    isOver = true
    wake()
  }
  stopping.addEventListener("abort", end)
  const leave = feedWatchOf(context).add({ organization_id, credential_id, grown: wake, end })
  try {
    // An id alone is no event: whoever is cut off before the first one goes on from here.
    yield `: the feed of events\nid: ${place.id}\n\n`
    for (let seen = place.position; !isOver; ) {
      news = Promise.withResolvers<void>()
      const rows = await eventsAfter(context.db.read, caller, { ...filter, position: seen, limit: pageSize })
      for (const row of rows) yield messageOf(row)
      seen = rows.at(-1)?.position ?? seen
      if (rows.length === pageSize || isOver) continue
      if ((await withinPatience(news.promise)) === "silence") yield ": still here\n\n"
    }
  } finally {
    leave()
    stopping.removeEventListener("abort", end)
  }
}

/** Throws `rate_limit.exceeded` where the organization has as many streams open in this process as it may. */
export function requireRoom(context: Context, { organization_id }: Caller): void {
  if (feedWatchOf(context).readersOf(organization_id) >= mostStreams)
    throw new ApiError("rate_limit.exceeded", `An organization has at most ${mostStreams} streams open.`)
}

const mostStreams = 100
const pageSize = 100
const silenceMilliseconds = 15_000

function messageOf(row: EventRow): string {
  return `id: ${row.id}\nevent: ${row.type}\ndata: ${JSON.stringify(eventBody(row))}\n\n`
}

async function withinPatience(news: Promise<void>): Promise<"news" | "silence"> {
  let timer: Timer | undefined
  const silence = new Promise<"silence">((resolve) => {
    timer = setTimeout(() => resolve("silence"), silenceMilliseconds)
  })
  try {
    return await Promise.race([news.then(() => "news" as const), silence])
  } finally {
    clearTimeout(timer)
  }
}
