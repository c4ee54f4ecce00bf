import type { Turn } from "../../src/db/turn.ts"
import { queueReplayStep, replayingEndpoints } from "../../src/engine/events/webhook-queue.ts"
import { retryingEndpoints, retryStep } from "../../src/engine/events/webhook-retries.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { keptSince } from "./reap-events.ts"

/**
 * Works on retries and replays of webhook endpoints, one step of each in turn, so that none waits for another's end.
 * Answers "more" where something is left; where other workers were quicker, they go on.
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

/**
 * Another process, with another clock, may be deleting old events unseen: a queued row for a deleted event would wait
 * for ever.
 */
const clearanceMilliseconds = 60 * 60_000
