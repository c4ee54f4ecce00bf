import { queueReplayStep, replayingEndpoints } from "../../src/engine/events/webhook-queue.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"

/**
 * Queues what webhook endpoints are sent again, one step of each in turn, so that none waits for the end of another's.
 * Answers "more" where it has left something; where other workers were quicker, they go on.
 */
export async function followReplays(context: Context): Promise<"more" | undefined> {
  let isMore = false
  for (const endpoint of await replayingEndpoints(context.db.read, {}))
    isMore =
      (await inTurn(context, null, (turn) => queueReplayStep(turn, endpoint), "read committed")) || isMore
  return isMore ? "more" : undefined
}
