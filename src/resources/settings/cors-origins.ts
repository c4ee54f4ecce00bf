import type { CorsOrigins } from "../../http/cors.ts"
import type { Context } from "../../platform/context.ts"
import { loggable } from "../../platform/log.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import { entriesFor } from "./cors-entry.ts"
import { listAllCorsOrigins } from "./service.ts"

/** Caches all organizations' CORS lists in memory, for 15 seconds. */
export function createCorsOrigins(context: Context): CorsOrigins {
  let union = new Set<string>()
  let lists: Map<string, Set<string>> | null = null
  let readAt = Number.NEGATIVE_INFINITY
  let reading = Promise.resolve()
  let latest = 0

  /** Reloads the lists. If the database is down the old ones stay; requests that need the database fail anyway. */
  async function read(): Promise<void> {
    const number = ++latest
    try {
      const found = await listAllCorsOrigins(context.db.read)
      if (number !== latest) return
      lists = new Map([...found].map(([id, entries]) => [id, new Set(entries)]))
      union = new Set([...found.values()].flat())
    } catch (error) {
      readAt = Number.NEGATIVE_INFINITY
      context.log.warn(loggable(error), "the CORS lists could not be refreshed; the known ones stay in use")
    }
  }

  return {
    async refresh() {
      const now = context.steadyClock()
      if (now - readAt >= rememberedMilliseconds) {
        readAt = now
        reading = read()
      }
      await reading
    },
    forget() {
      readAt = Number.NEGATIVE_INFINITY
    },
    anyLetsIn: (origin) => entriesFor(origin).some((entry) => union.has(entry)),
    organizationLetsIn(organization_id, origin) {
      const list = lists?.get(organization_id)
      return list !== undefined && entriesFor(origin).some((entry) => list.has(entry))
    },
    requireKnown() {
      if (!lists) throw new Unavailable("the CORS lists could not be read since the process was started")
    },
  }
}

const rememberedMilliseconds = 15_000
