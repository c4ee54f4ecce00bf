import { and, eq, isNull, ne, or } from "drizzle-orm"
import { effects, lanes } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { findActor, sendEvent } from "../../engine/actors/runtime.ts"
import { counted } from "../../platform/counted.ts"
import { parseId } from "../../platform/ids.ts"
import { laneQueue } from "../../platform/queues.ts"
import { openTransactionOf } from "./cancel.ts"
import { OperatorRefusal } from "./refusal.ts"

/** What was retried, what happens now, in a sentence, and the queues in which it waits. */
type Retried = { id: string; done: string; queues: string[] }

/**
 * Retries what stopped: reopens a lane, sends RETRY to an actor, or makes open work due at once. Throws
 * `OperatorRefusal`.
 */
export async function retryById(turn: Turn, text: string): Promise<Retried> {
  const lane = await reopenLane(turn, text)
  if (lane) return lane
  const id = parseId(text)
  if (id === null) throw unknownId(text)
  const actor = await findActor(turn.tx, id)
  if (actor) {
    const { accepted, state } = await sendEvent(turn, id, { type: "RETRY" })
    const done = `${actor.machine} ${id} is being retried: ${state}`
    if (accepted) return { id, done, queues: await openQueues(turn, id) }
  }
  const queues = await makeDue(turn, id)
  if (queues.length > 0) return { id, done: await dueIn(turn, queues), queues }
  const transactionId = await openTransactionOf(turn.tx, id)
  if (transactionId)
    throw new OperatorRefusal(
      "transaction.on_its_way",
      `Transaction ${transactionId} is in progress for ${id}, and its lane sends it again by itself: see explain ${id}; cancel ${id} gives up its nonce.`,
    )
  if (!actor) throw unknownId(text)
  throw new OperatorRefusal(
    "not_found.resource",
    `${actor.machine} ${id} is ${actor.state}, so there is nothing to retry: see explain ${id}.`,
  )
}

function unknownId(text: string): OperatorRefusal {
  return new OperatorRefusal(
    "not_found.resource",
    `Nothing has the id ${text}: stuck shows what can be retried.`,
  )
}

async function openQueues({ tx }: Turn, actorId: string): Promise<string[]> {
  const isOpen = and(eq(effects.actor_id, actorId), eq(effects.status, "open"))
  const rows = await tx.select({ queue: effects.queue }).from(effects).where(isOpen)
  return rows.map(({ queue }) => queue)
}

/** Due for so long, an authorization is asked about without waiting for its use. */
const longMilliseconds = 60_000

/** Says how many effects are due, and which of their lanes must be retried before anything happens. */
async function dueIn({ tx }: Turn, queues: string[]): Promise<string> {
  const rows = await tx.select().from(lanes).where(ne(lanes.status, "open"))
  const stopped = rows.filter((lane) => queues.includes(laneQueue(lane.id)))
  const due = `${counted(queues.length, "open effect is", "open effects are")} due now`
  const waits = stopped.map(
    ({ id, status }) => `, but lane ${id} is ${status}: see chain status, and retry ${id}`,
  )
  return [due, ...waits].join("")
}

/**
 * Makes an actor's open effects, or the one with this id, due at once, unless they have a transaction. Returns the queue
 * of each.
 */
async function makeDue(turn: Turn, id: string): Promise<string[]> {
  const isIts = and(
    or(eq(effects.id, id), eq(effects.actor_id, id)),
    eq(effects.status, "open"),
    isNull(effects.transaction_id),
  )
  const rows = await turn.tx
    .update(effects)
    .set({ due_at: turn.at })
    .where(isIts)
    .returning({ queue: effects.queue })
  // Backdated, so that an authorization is asked about at once, as one that has been open for long.
  await turn.tx
    .update(effects)
    .set({ attempts: 0, due_at: new Date(turn.at.getTime() - longMilliseconds) })
    .where(and(isIts, eq(effects.src, "watchAuthorization")))
  const queues = rows.map(({ queue }) => queue)
  for (const queue of queues) turn.wake(queue)
  return queues
}

/**
 * Reopens a paused or halted lane. It reads its nonces and what is final from the chain again, as it must after
 * somebody else has used its key: work that lost its nonce gets another one, and lost transactions are sent again.
 */
async function reopenLane(turn: Turn, laneId: string): Promise<Retried | null> {
  const [lane] = await turn.tx.select().from(lanes).where(eq(lanes.id, laneId))
  if (!lane) return null
  const [reopened] = await turn.tx
    .update(lanes)
    .set({ status: "open", reason: null, next_nonce: null, final_block_number: null, final_block_hash: null })
    .where(and(eq(lanes.id, laneId), ne(lanes.status, "open")))
    .returning()
  if (!reopened)
    throw new OperatorRefusal("lane.is_open", `Lane ${laneId} is open: there is nothing to retry.`)
  turn.wake(laneQueue(laneId))
  return { id: laneId, done: `lane ${laneId} is open again`, queues: [laneQueue(laneId)] }
}
