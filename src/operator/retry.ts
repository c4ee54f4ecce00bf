import { and, eq, ne, or } from "drizzle-orm"
import { sendEvent } from "../actors/runtime.ts"
import { findActor } from "../actors/waiting.ts"
import { inTurn } from "../context.ts"
import { effects, lanes } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError } from "../errors.ts"
import { parseId } from "../ids.ts"
import type { Command } from "./command.ts"

export const retry: Command = {
  name: "retry",
  takes: "ID  (of a unit, a collection, a claim, a transfer, a chip replacement, an effect or a lane)",
  argument: "ID",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context }) => {
      const done = await inTurn(context, null, (turn) => retryById(turn, argument))
      return { document: done, text: done.done }
    },
}

type Retried = { id: string; done: string }

export async function retryById(turn: Turn, text: string): Promise<Retried> {
  const lane = await reopenLane(turn, text)
  if (lane) return lane
  const id = parseId(text)
  const actor = id && (await findActor(turn.tx, id))
  if (actor) {
    const { accepted, state } = await sendEvent(turn, actor.id, { type: "RETRY" })
    if (accepted) return { id: actor.id, done: `${actor.machine} ${actor.id} is tried again: ${state}` }
  }
  const due = id ? await makeDue(turn, id) : 0
  if (id && due > 0) return { id, done: `${due} open ${due === 1 ? "effect is" : "effects are"} due now` }
  if (actor)
    throw new ApiError(
      "not_found.resource",
      `${actor.machine} ${actor.id} is ${actor.state}, where there is nothing to retry: see explain ${actor.id}.`,
    )
  throw new ApiError("not_found.resource", `Nothing has the id ${text}: stuck shows what can be retried.`)
}

/** Open effects of an actor, or the one with this id, are taken up at once. */
async function makeDue(turn: Turn, id: string): Promise<number> {
  const rows = await turn.tx
    .update(effects)
    .set({ due_at: turn.at })
    .where(and(or(eq(effects.id, id), eq(effects.actor_id, id)), eq(effects.status, "open")))
    .returning({ queue: effects.queue })
  for (const { queue } of rows) turn.wake(queue)
  return rows.length
}

/**
 * Lets a paused or halted lane go on. It takes its nonces, and what is final, from the chain again, which is what it
 * must do after somebody else has used its key: what lost its nonce is sent with a new one, what the chain lost is
 * sent again.
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
    throw new ApiError("not_found.resource", `Lane ${laneId} is open: there is nothing to retry.`)
  turn.wake(`lane:${laneId}`)
  return { id: laneId, done: `lane ${laneId} is open again` }
}
