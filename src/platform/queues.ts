/** Where work for one lane waits. */
export function laneQueue(laneId: string): string {
  return `lane:${laneId}`
}

/** Where work waits that one chain is watched for. */
export function chainQueue(chainId: number): string {
  return `chain:${chainId}`
}

/** Where events wait for their position in the feed; readers of the feed listen, too. */
export const eventsQueue = "events"

/** Where events wait to be delivered to webhook endpoints. */
export const webhooksQueue = "webhooks"

/** Where replays to webhook endpoints wait to be queued. */
export const replaysQueue = "replays"
