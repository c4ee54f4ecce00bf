import { asc, lte } from "drizzle-orm"
import { fireDueTimers } from "../src/actors/runtime.ts"
import { type Context, inTurn } from "../src/context.ts"
import { actorTimers } from "../src/db/schema.ts"

/** Gives the actors whose time has come their timer events; whoever reads an actor earlier does the same. */
export async function fireTimers(context: Context): Promise<void> {
  const due = await context.db.read
    .selectDistinct({ actor_id: actorTimers.actor_id, due_at: actorTimers.due_at })
    .from(actorTimers)
    .where(lte(actorTimers.due_at, context.clock()))
    .orderBy(asc(actorTimers.due_at))
    .limit(atOnce)
  await Promise.all(due.map(({ actor_id }) => inTurn(context, null, (turn) => fireDueTimers(turn, actor_id))))
}

const atOnce = 200
