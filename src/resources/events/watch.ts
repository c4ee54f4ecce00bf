import { eq } from "drizzle-orm"
import { eventFeeds } from "../../db/event-schema.ts"
import { numberEvents } from "../../engine/events/numbering.ts"
import type { Context } from "../../platform/context.ts"
import { loggable } from "../../platform/log.ts"
import { eventsQueue } from "../../platform/queues.ts"
import { admittedApiKeys } from "../credentials/held-key.ts"
import { organizationsWithEventsAfter } from "./service.ts"

/** A reader of the feed as it grows. */
type Reader = { organization_id: string; credential_id: string; grown(): void; end(): void }

/**
 * Notifies the readers in this process whose organization has new events: it looks on a wake-up, or once a second, with
 * the same few queries for all of them. Ends a reader once its key would be rejected. Does nothing without readers.
 */
type FeedWatch = { add(reader: Reader): () => void; readersOf(organizationId: string): number }

/** Returns the one watch of a process's context. */
export function feedWatchOf(context: Context): FeedWatch {
  const watch = watches.get(context) ?? createFeedWatch(context)
  watches.set(context, watch)
  return watch
}

const watches = new WeakMap<Context, FeedWatch>()

const lookMilliseconds = 1_000
/** The pause between looks under load, so that each finds more, and its readers read more at once. */
const restMilliseconds = 50

function createFeedWatch(context: Context): FeedWatch {
  const readers = new Set<Reader>()
  let stopListening: (() => void) | undefined
  let timer: Timer | undefined
  let lastPosition: number | null = null
  let isLooking = false
  let isWanted = false

  async function look(): Promise<void> {
    try {
      await endRefused()
      await numberEvents(context, null)
      const [feed] = await context.db.read.select().from(eventFeeds).where(eq(eventFeeds.name, "events"))
      if (!feed || feed.last_position === lastPosition) return
      const grown = await organizationsGrownTo(feed.last_position)
      lastPosition = feed.last_position
      for (const reader of readers) if (grown.has(reader.organization_id)) reader.grown()
    } catch (error) {
      context.log.debug(loggable(error), "the feed of events could not be read; it is tried again")
    }
  }

  /**
   * Returns the readers' organizations that have events after the last look; all of them at the first look, or if the
   * feed was set back. A reader that joins meanwhile is not among them: it reads by itself what is there.
   */
  async function organizationsGrownTo(position: number): Promise<Set<string>> {
    const ids = [...new Set([...readers].map(({ organization_id }) => organization_id))]
    if (lastPosition === null || position < lastPosition) return new Set(ids)
    return await organizationsWithEventsAfter(context.db.read, ids, lastPosition)
  }

  async function endRefused(): Promise<void> {
    // A reader with another key may join meanwhile.
    const asked = [...readers]
    const ids = [...new Set(asked.map(({ credential_id }) => credential_id))]
    const admitted = await admittedApiKeys(context.db.read, ids, context.clock())
    for (const reader of asked) if (!admitted.has(reader.credential_id)) reader.end()
  }

  /** Looks at once, or once more after the look in progress, however often it is called meanwhile. */
  async function lookSoon(): Promise<void> {
    isWanted = true
    if (isLooking) return
    isLooking = true
    while (isWanted && readers.size > 0) {
      isWanted = false
      await look()
      if (isWanted) await Bun.sleep(restMilliseconds)
    }
    isLooking = false
  }

  function start(): void {
    stopListening = context.onWake(eventsQueue, lookSoon)
    timer = setInterval(lookSoon, lookMilliseconds)
    lastPosition = null
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
