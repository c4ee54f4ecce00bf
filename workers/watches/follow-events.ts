import { numberEvents } from "../../src/engine/events/numbering.ts"
import { queueReplays } from "../../src/engine/events/webhook-queue.ts"
import type { Context } from "../../src/platform/context.ts"

/** Gives events their place in the feed, queues them for webhook endpoints, and goes on with what is sent again. */
export async function followEvents(context: Context): Promise<void> {
  await numberEvents(context, null)
  await queueReplays(context)
}
