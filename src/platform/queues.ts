/** Returns the queue of the work for one lane. */
export function laneQueue(laneId: string): string {
  return `lane:${laneId}`
}

/** Returns the queue of the work that waits for something to appear on one chain. */
export function chainQueue(chainId: number): string {
  return `chain:${chainId}`
}

/** Returns the chain of a queue made by `laneQueue` or `chainQueue`; null for another queue. */
export function chainOfQueue(queue: string): number | null {
  const [, id] = /^(?:lane|chain):(\d+)/.exec(queue) ?? []
  return id === undefined ? null : Number(id)
}

/** The queue of events to be numbered. Readers of the feed listen too. */
export const eventsQueue = "events"

/** The queue of events to be delivered to webhook endpoints. */
export const webhooksQueue = "webhooks"

/** The queue of replays whose events are to be queued for webhook endpoints. */
export const replaysQueue = "replays"
