import type { Turn } from "../../src/db/turn.ts"
import { queueReplayStep, replayingEndpoints } from "../../src/engine/events/webhook-queue.ts"
import { retryingEndpoints, retryStep } from "../../src/engine/events/webhook-retries.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { keptSince } from "./reap-events.ts"

/**
 * Works on retries and replays of webhook endpoints, one step of each in turn, so that none waits for another to end.
 * Returns "more" if something is left. Where other workers were faster, they continue.
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
 * Keeps replays away from events that are about to be deleted: another process, with another clock, may be deleting
 * them, and a queued row of a deleted event would wait for ever.
 */
const clearanceMilliseconds = 60 * 60_000
