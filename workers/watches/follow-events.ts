import { numberEvents } from "../../src/engine/events/numbering.ts"
import type { Context } from "../../src/platform/context.ts"

/** Assigns feed positions to new events and queues them for webhook endpoints. */
export async function followEvents(context: Context): Promise<void> {
  await numberEvents(context, null)
}
