import { and, asc, eq, isNull, type SQL, sql } from "drizzle-orm"
import { codeOf, type Database, driverError, Outrun } from "../../db/database.ts"
import { eventFeeds, events } from "../../db/event-schema.ts"
import { type Given, query } from "../../db/query.ts"
import type { Turn } from "../../db/turn.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { queueBeforePauses, queueForEndpoints } from "./webhook-queue.ts"

/**
 * Assigns feed positions to committed events, in the order in which they happened, and queues them for the webhook
 * endpoints that ask for them; for one organization, or for all. Only one process at a time assigns positions, and only
 * to committed events, so a reader past a position has missed nothing before it. Returns how many.
 */
export async function numberEvents(context: Context, organizationId: string | null): Promise<number> {
  const { db } = context
  const asked = { organization_id: organizationId ?? undefined }
  if ((await someUnnumbered(db.read, asked)).length === 0) return 0
  let numbered = 0
  for (let limit = leastAtOnce; ; limit = Math.min(2 * limit, mostAtOnce)) {
    const step = (turn: Turn) => numberSome(db, turn, { ...asked, limit })
    const number = () => inTurn(context, null, step, "read committed alone")
    const some = await number().catch(async (error) => {
      if (!isTaken(error)) throw error
      await inTurn(context, null, ({ tx }) => bringUpFeed(tx, {}), "read committed alone")
      return await number()
    })
    numbered += some
    // All events that existed at the start have positions; later ones are not waited for.
    if (some < limit) return numbered
  }
}

/** Each step reads all events without a position, so steps grow if there are many. */
const [leastAtOnce, mostAtOnce] = [500, 8_000]

/** Returns whether a position was already assigned, as after a process of an earlier release set the feed back. */
function isTaken(error: unknown): boolean {
  return ["23505", "SQLITE_CONSTRAINT_UNIQUE"].includes(codeOf(driverError(error)))
}

const bringUpFeed = query((db) => {
  const highest = sql`(select max(${events.position}) from ${events})`
  return db
    .update(eventFeeds)
    .set({ last_position: highest })
    .where(sql`${eventFeeds.last_position} < ${highest}`)
    .returning({ last_position: eventFeeds.last_position })
})

type Asked = { organization_id: string | undefined }

const someUnnumbered = query((db, given: Given<Asked>) =>
  db.select({ id: events.id }).from(events).where(unnumbered(given)).limit(1),
)

function unnumbered({ organization_id }: Given<Asked>): SQL | undefined {
  return and(isNull(events.position), organization_id && eq(events.organization_id, organization_id))
}

async function numberSome(db: Database, turn: Turn, asked: Asked & { limit: number }): Promise<number> {
  // Under read committed, a process that waited for this row sees everything committed in the meantime.
  const [feed] = await lockFeed(turn.tx, {})
  if (!feed) throw new Error("the table event_feeds has no row for the feed")
  const { last_position: after } = feed
  const numbered = await numberOldest[db.engine](turn.tx, { ...asked, after })
  if (numbered.length === 0) return 0
  const until = after + numbered.length
  if ((await moveFeed(turn.tx, { after, until })).length === 0)
    throw new Outrun("another process has numbered events at the same time")
  const organizationIds = [...new Set(numbered.map(({ organization_id }) => organization_id))]
  await queueForEndpoints(turn, organizationIds, { after, until })
  await queueBeforePauses(turn, organizationIds, { after, until })
  return numbered.length
}

const lockFeed = query((db) =>
  db
    .update(eventFeeds)
    .set({ last_position: eventFeeds.last_position })
    .where(eq(eventFeeds.name, "events"))
    .returning({ last_position: eventFeeds.last_position }),
)

const moveFeed = query((db, { after, until }: Given<{ after: number; until: number }>) =>
  db
    .update(eventFeeds)
    .set({ last_position: until })
    .where(and(eq(eventFeeds.name, "events"), eq(eventFeeds.last_position, after)))
    .returning({ name: eventFeeds.name }),
)

// An event that depends on another commit began after it; a tap makes sure of that. Transaction ids show that order;
// clocks do not.
const numberOldest = {
  postgres: numberBy(sql`age(${events}.xmin) desc, ${events.id}`),
  // The unary plus keeps SQLite from scanning the whole table in rowid order.
  sqlite: numberBy(sql`+${events}.rowid`),
}

function numberBy(order: SQL) {
  return query((db, { after, limit, ...asked }: Given<Asked & { after: number; limit: number }>) => {
    const oldest = db
      .select({ id: events.id, number: sql<number>`row_number() over (order by ${order})`.as("number") })
      .from(events)
      .where(unnumbered(asked))
      .orderBy(asc(order))
      .limit(limit)
      .as("oldest")
    return db
      .update(events)
      .set({ position: sql`${after} + ${oldest.number}` })
      .from(oldest)
      .where(eq(events.id, oldest.id))
      .returning({ organization_id: events.organization_id })
  })
}
