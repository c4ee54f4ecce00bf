import type { Turn } from "../../src/db/turn.ts"
import { queueReplayStep, replayingEndpoints } from "../../src/engine/events/webhook-queue.ts"
import { retryingEndpoints, retryStep } from "../../src/engine/events/webhook-retries.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { keptSince } from "./reap-events.ts"

/**
 * Queues what webhook endpoints are sent again, and has tried at once what waits for them, one step of each in turn, so
 * that none waits for the end of another's. Answers "more" where it has left something; where other workers were
 * quicker, they go on.
 */
export async function followReplays(context: Context): Promise<"more" | undefined> {
  const oldest = new Date(keptSince(context).getTime() + clearanceMilliseconds)
  let isMore = false
  const take = async (step: (turn: Turn) => Promise<boolean>) => {
    if (await inTurn(context, null, step, "read committed")) isMore = true
  }
  for (const endpoint of await retryingEndpoints(context.db.read, {}))
    await take((turn) => retryStep(turn, endpoint))
  for (const endpoint of await replayingEndpoints(context.db.read, {}))
    await take((turn) => queueReplayStep(turn, endpoint, oldest))
  return isMore ? "more" : undefined
}

/** Whoever deletes what is too old may be at it, unseen, and by another clock: a row for what is gone would wait for ever. */
const clearanceMilliseconds = 60 * 60_000
