/** Where work for one lane waits. */
export function laneQueue(laneId: string): string {
  return `lane:${laneId}`
}

/** Where waits what one chain is watched for. */
export function chainQueue(chainId: number): string {
  return `chain:${chainId}`
}

/** Where events wait for their position in the feed, of which those who read it are told too. */
export const eventsQueue = "events"

/** Where events wait to be delivered to webhook endpoints. */
export const webhooksQueue = "webhooks"

/** Where webhook endpoints wait for what they are sent again to be queued. */
export const replaysQueue = "replays"
