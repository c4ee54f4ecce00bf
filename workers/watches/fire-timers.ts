import { asc, lte } from "drizzle-orm"
import { type Given, query } from "../../src/db/query.ts"
import { actorTimers } from "../../src/db/schema.ts"
import { fireDueTimers } from "../../src/engine/actors/runtime.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/** Fires due timers. An actor that is used before that fires its own. */
export async function fireTimers(context: Context): Promise<void> {
  const due = await dueTimers(context.db.read, { at: context.clock() })
  await Promise.all(due.map(({ actor_id }) => inTurn(context, null, (turn) => fireDueTimers(turn, actor_id))))
}

const atOnce = 200

const dueTimers = query((db, { at }: Given<{ at: Date }>) =>
  db
    .selectDistinct({ actor_id: actorTimers.actor_id, due_at: actorTimers.due_at })
    .from(actorTimers)
    .where(lte(actorTimers.due_at, at))
    .orderBy(asc(actorTimers.due_at))
    .limit(atOnce),
)
