import type { Context } from "../context.ts"
import type { Database } from "../db/database.ts"
import { loggable } from "../log.ts"
import { entriesFor } from "../settings/cors-entry.ts"
import { listAllCorsOrigins } from "../settings/service.ts"

/** The CORS lists of all organizations, in memory. */
export type CorsOrigins = {
  /** Reads the lists again when they are older than 15 seconds or were forgotten. */
  refresh(): Promise<void>
  /** Makes the next request read the lists again. */
  forget(): void
  /** Whether any organization lets the origin in: all that is known while a browser asks for permission. */
  anyLetsIn(origin: string): boolean
  organizationLetsIn(organization_id: string, origin: string): boolean
}

/** One for each database, so that whoever changes a list reaches those who read it. */
export function corsOriginsOf(context: Context): CorsOrigins {
  const known = all.get(context.db) ?? createCorsOrigins(context)
  all.set(context.db, known)
  return known
}

const all = new WeakMap<Database, CorsOrigins>()
const rememberedMilliseconds = 15_000

function createCorsOrigins(context: Context): CorsOrigins {
  let union = new Set<string>()
  let lists = new Map<string, Set<string>>()
  let readAt = Number.NEGATIVE_INFINITY
  let reading = Promise.resolve()
  let latest = 0

  /** A database that is away leaves what is known standing: the request will be told by what it needs itself. */
  async function read(): Promise<void> {
    const turn = ++latest
    try {
      const found = await listAllCorsOrigins(context.db.read)
      if (turn !== latest) return
      lists = new Map([...found].map(([id, entries]) => [id, new Set(entries)]))
      union = new Set([...found.values()].flat())
    } catch (error) {
      readAt = Number.NEGATIVE_INFINITY
      context.log.warn(loggable(error), "the CORS lists could not be read again")
    }
  }

  return {
    async refresh() {
      const now = context.clock().getTime()
      if (Math.abs(now - readAt) >= rememberedMilliseconds) {
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
      const list = lists.get(organization_id)
      return list !== undefined && entriesFor(origin).some((entry) => list.has(entry))
    },
  }
}
