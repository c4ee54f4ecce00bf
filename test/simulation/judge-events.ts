import { eq } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type EventRow, events, webhookEndpoints, webhookQueue } from "../../src/db/event-schema.ts"
import type { Asking } from "./asking.ts"
import type { Fault } from "./faults.ts"
import type { Receiver } from "./receiver.ts"

type Told = {
  faults: readonly Fault[]
  asking: Asking
  receiver: Receiver
  /** The restored back-up, which lacks some events. */
  restoration: { events: string[] } | null
}

/** Reports what is wrong in the feed of events and in the deliveries to a webhook endpoint. */
export async function findFaultsInEvents(read: Queries, told: Told): Promise<string[]> {
  const all = await read.select().from(events)
  const unnumbered = all.filter(({ position }) => position === null)
  const numbered = all.filter(({ position }) => position !== null).sort(byPosition)
  const [endpoint] = await read
    .select()
    .from(webhookEndpoints)
    .where(eq(webhookEndpoints.url, told.receiver.url))
  const own = numbered.filter(({ organization_id }) => organization_id === endpoint?.organization_id)
  const queued = await read.select({ event_id: webhookQueue.event_id }).from(webhookQueue)
  const forgotten = told.restoration?.events ?? []
  return [
    ...unnumbered.map(({ id, type }) => `the event ${id} of ${type} has no place in the feed`),
    ...numbered.flatMap(({ position }, index) =>
      position === index + 1 ? [] : [`the event number ${index + 1} has position ${position}`],
    ),
    ...asRead(
      own,
      told.asking.feed.filter((id) => !forgotten.includes(id)),
    ),
    ...asSent(own, endpoint?.created_at ?? null, new Set(queued.map(({ event_id }) => event_id)), told),
  ]
}

function byPosition(one: EventRow, other: EventRow): number {
  return (one.position ?? 0) - (other.position ?? 0)
}

/** Reading the feed from its beginning yields each event once, in order. */
function asRead(own: EventRow[], feed: readonly string[]): string[] {
  const wanted = own.map(({ id }) => id)
  if (feed.join() === wanted.join()) return []
  return [`a reader of the feed met ${feed.length} events, which are not the ${wanted.length} that there are`]
}

function asSent(
  own: EventRow[],
  since: Date | null,
  queued: ReadonlySet<string>,
  { faults, receiver, restoration }: Told,
): string[] {
  const mayFail = faults.some(({ kind }) => kind === "receiver")
  const first = new Map<string, number>()
  for (const [index, id] of receiver.taken.entries()) if (!first.has(id)) first.set(id, index)
  const found = receiver.unsigned.map((text) => `a webhook is not signed: ${text.slice(0, 60)}`)
  const strange = [...first.keys()].filter(
    (id) => !own.some((event) => event.id === id) && !restoration?.events.includes(id),
  )
  found.push(
    ...strange.map((id) => `a webhook endpoint was sent ${id}, which is no event of its organization`),
  )
  if (since === null) return found
  const newest = new Map<string, number>()
  for (const { id, type, created_at, unit_id, collection_id } of own) {
    const place = first.get(id)
    if (place === undefined) {
      const isDue = created_at > since && !(queued.has(id) && mayFail)
      if (isDue) found.push(`the event ${id} of ${type} was never sent to the webhook endpoint`)
      continue
    }
    const line = unit_id ?? collection_id ?? id
    if ((newest.get(line) ?? -1) > place)
      found.push(`the event ${id} of ${type} was sent before an earlier one`)
    newest.set(line, Math.max(newest.get(line) ?? -1, place))
  }
  if (faults.length === 0 && first.size < receiver.taken.length)
    found.push("an event was sent twice, where nothing went wrong")
  return found
}
