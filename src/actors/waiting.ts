import { asc, eq, inArray } from "drizzle-orm"
import type { WatchAuthorizationInput } from "../../machines/authorization.ts"
import type { Queries } from "../db/database.ts"
import { actors, type effects, lanes, transactionAttempts, transactions } from "../db/schema.ts"

export type ActorRow = typeof actors.$inferSelect
export type EffectRow = typeof effects.$inferSelect
export type LaneRow = typeof lanes.$inferSelect
export type TransactionRow = typeof transactions.$inferSelect
export type AttemptRow = typeof transactionAttempts.$inferSelect

/** An effect with what it hangs on: its lane, its transaction and what was sent for it, oldest first. */
export type Work = {
  effect: EffectRow
  lane: LaneRow | null
  transaction: TransactionRow | null
  attempts: AttemptRow[]
}

/** Finds what effects hang on. */
export async function workOf(queries: Queries, rows: EffectRow[]): Promise<Work[]> {
  const transactionIds = rows.flatMap(({ transaction_id }) => transaction_id ?? [])
  const [laneRows, transactionRows, attemptRows] = [
    await queries.select().from(lanes),
    transactionIds.length === 0
      ? []
      : await queries.select().from(transactions).where(inArray(transactions.id, transactionIds)),
    transactionIds.length === 0
      ? []
      : await queries
          .select()
          .from(transactionAttempts)
          .where(inArray(transactionAttempts.transaction_id, transactionIds))
          .orderBy(asc(transactionAttempts.created_at)),
  ]
  return rows.map((effect) => ({
    effect,
    lane: laneRows.find(({ id }) => effect.queue === `lane:${id}`) ?? null,
    transaction: transactionRows.find(({ id }) => id === effect.transaction_id) ?? null,
    attempts: attemptRows.filter(({ transaction_id }) => transaction_id === effect.transaction_id),
  }))
}

/** In a sentence, what an open effect waits for. */
export function reasonOf({ effect, lane, transaction, attempts }: Work, now: Date): string {
  const said = effect.last_error ?? attempts.at(-1)?.last_error
  const because = said ? `; last answer: ${said}` : ""
  if (transaction?.status === "mined")
    return `transaction ${transaction.hash} is in block ${transaction.block_number} and not deep enough yet`
  if (lane && lane.status !== "open")
    return `lane ${lane.id} is ${lane.status}: ${lane.reason ?? "no reason is noted"}`
  if (transaction?.cancel_requested_at)
    return `nonce ${transaction.nonce} is given up, and what uses it up is not mined yet${because}`
  if (transaction)
    return `transaction ${attempts.at(-1)?.hash ?? transaction.id} with nonce ${transaction.nonce} is ${transaction.status} and not mined${because}`
  if (effect.src === "watchAuthorization") {
    const { chain_id, deadline_at } = effect.input as WatchAuthorizationInput
    return `somebody's wallet may submit it until ${deadline_at}; chain ${chain_id} has not settled it${because}`
  }
  if (lane && (lane.leased_until === null || lane.leased_until < now))
    return `no worker holds lane ${lane.id}: is one running, with its key in SIGNER_KEYS?${because}`
  return said ?? `it waits for its turn in ${effect.queue}`
}

/** Why the actor's last work failed, when it did. */
export function failureIn(actor: ActorRow): string | null {
  const { context } = actor.snapshot as { context?: { failure?: { code: string; message: string } | null } }
  return context?.failure ? `${context.failure.code}: ${context.failure.message}` : null
}

export async function findActor(queries: Queries, id: string): Promise<ActorRow | null> {
  const [actor] = await queries.select().from(actors).where(eq(actors.id, id))
  return actor ?? null
}
