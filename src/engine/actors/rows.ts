import { and, asc, eq, lte } from "drizzle-orm"
import { type Given, query } from "../../db/query.ts"
import { type ActorRow, actorEvents, actors, actorTimers, type EffectRow, effects } from "../../db/schema.ts"

type EventRow = typeof actorEvents.$inferSelect
type TimerRow = typeof actorTimers.$inferSelect

export const actorOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(actors).where(eq(actors.id, id)),
)

export const insertActor = query((db, row: Given<ActorRow>) => db.insert(actors).values(row))

type Saved = Omit<ActorRow, "machine" | "organization_id" | "created_at"> & { seen_version: number }

/** Compares and sets by version: returns no row if another write came first. */
export const saveActor = query((db, { id, seen_version, ...changed }: Given<Saved>) =>
  db
    .update(actors)
    .set(changed)
    .where(and(eq(actors.id, id), eq(actors.version, seen_version)))
    .returning({ id: actors.id }),
)

export const insertEvent = query((db, row: Given<EventRow>) => db.insert(actorEvents).values(row))

export const insertTimer = query((db, row: Given<TimerRow>) => db.insert(actorTimers).values(row))

export const removeTimer = query((db, given: Given<Pick<TimerRow, "actor_id" | "send_id">>) =>
  db
    .delete(actorTimers)
    .where(and(eq(actorTimers.actor_id, given.actor_id), eq(actorTimers.send_id, given.send_id))),
)

/** Selects the timer that was due first. */
export const dueTimerOf = query((db, given: Given<{ actor_id: string; at: Date }>) =>
  db
    .select({ send_id: actorTimers.send_id, event: actorTimers.event })
    .from(actorTimers)
    .where(and(eq(actorTimers.actor_id, given.actor_id), lte(actorTimers.due_at, given.at)))
    .orderBy(asc(actorTimers.due_at), asc(actorTimers.send_id))
    .limit(1),
)

export const insertEffect = query((db, row: Given<EffectRow>) => db.insert(effects).values(row))

export const openEffectOfId = query((db, { id }: Given<{ id: string }>) =>
  db
    .select({ actor_id: effects.actor_id })
    .from(effects)
    .where(and(eq(effects.id, id), eq(effects.status, "open"))),
)

/** Selects one open effect of a queue, if there is any. */
export const openEffectIn = query((db, { queue }: Given<{ queue: string }>) =>
  db
    .select({ id: effects.id })
    .from(effects)
    .where(and(eq(effects.queue, queue), eq(effects.status, "open")))
    .limit(1),
)

type Closed = Pick<EffectRow, "id" | "status" | "closed_at" | "last_error">

/** Returns no row if the effect was already closed or cancelled. */
export const closeEffect = query((db, { id, ...closed }: Given<Closed>) =>
  db
    .update(effects)
    .set(closed)
    .where(and(eq(effects.id, id), eq(effects.status, "open")))
    .returning({
      actor_id: effects.actor_id,
      invoke_id: effects.invoke_id,
      request_id: effects.request_id,
    }),
)

export const cancelEffect = query((db, given: Given<{ actor_id: string; invoke_id: string; at: Date }>) =>
  db
    .update(effects)
    .set({ status: "cancelled", closed_at: given.at })
    .where(
      and(
        eq(effects.actor_id, given.actor_id),
        eq(effects.invoke_id, given.invoke_id),
        eq(effects.status, "open"),
      ),
    ),
)
