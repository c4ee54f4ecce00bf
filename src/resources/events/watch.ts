import { and, eq, inArray, isNull } from "drizzle-orm"
import { eventFeeds } from "../../db/event-schema.ts"
import { apiKeys } from "../../db/schema.ts"
import { numberEvents } from "../../engine/events/numbering.ts"
import type { Context } from "../../platform/context.ts"
import { loggable } from "../../platform/log.ts"
import { eventsQueue } from "../../platform/queues.ts"

/** Somebody who reads the feed as it grows. */
type Reader = { organization_id: string; credential_id: string; grown(): void; end(): void }

/**
 * Tells all readers of this process when the feed has grown: woken by wake-ups, else by one look a second for all of
 * them together. A reader whose key is revoked is ended. Looks at nothing while nobody reads.
 */
type FeedWatch = { add(reader: Reader): () => void; readersOf(organizationId: string): number }

/** The one watch of a process's context. */
export function feedWatchOf(context: Context): FeedWatch {
  const watch = watches.get(context) ?? createFeedWatch(context)
  watches.set(context, watch)
  return watch
}

const watches = new WeakMap<Context, FeedWatch>()

const lookMilliseconds = 1_000
const keysCheckedMilliseconds = 3_000

function createFeedWatch(context: Context): FeedWatch {
  const readers = new Set<Reader>()
  let stopListening: (() => void) | undefined
  let timer: Timer | undefined
  let lastPosition = 0
  let keysCheckedAt = 0
  let _looking: Promise<void> | undefined
  let isWanted = false

  async function look(): Promise<void> {
    try {
      await numberEvents(context, null)
      const [feed] = await context.db.read.select().from(eventFeeds).where(eq(eventFeeds.name, "events"))
      if (feed && feed.last_position !== lastPosition) {
        lastPosition = feed.last_position
        for (const reader of readers) reader.grown()
      }
      if (performance.now() - keysCheckedAt >= keysCheckedMilliseconds) await endRevoked()
    } catch (error) {
      context.log.debug(loggable(error), "the feed of events could not be looked at")
    }
  }

  async function endRevoked(): Promise<void> {
    keysCheckedAt = performance.now()
    const ids = [...new Set([...readers].map(({ credential_id }) => credential_id))]
    const valid = await context.db.read
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .where(and(inArray(apiKeys.id, ids), isNull(apiKeys.revoked_at)))
    const known = new Set(valid.map(({ id }) => id))
    for (const reader of readers) if (!known.has(reader.credential_id)) reader.end()
  }

  /** One look at a time; what comes meanwhile is one more. */
  function lookSoon(): void {
    isWanted = true
    _looking ??= (async () => {
      while (isWanted && readers.size > 0) {
        isWanted = false
        await look()
      }
      _looking = undefined
    })()
  }

  function start(): void {
    keysCheckedAt = performance.now()
    stopListening = context.onWake(eventsQueue, lookSoon)
    timer = setInterval(lookSoon, lookMilliseconds)
  }

  function stop(): void {
    stopListening?.()
    clearInterval(timer)
  }

  return {
    add(reader) {
      readers.add(reader)
      if (readers.size === 1) start()
      return () => {
        if (readers.delete(reader) && readers.size === 0) stop()
      }
    },
    readersOf: (organizationId) =>
      [...readers].filter(({ organization_id }) => organization_id === organizationId).length,
  }
}
