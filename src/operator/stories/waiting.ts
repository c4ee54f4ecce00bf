import { asc, inArray } from "drizzle-orm"
import type { WatchAuthorizationInput } from "../../../machines/authorization.ts"
import type { Queries } from "../../db/database.ts"
import {
  type ActorRow,
  type AttemptRow,
  type EffectRow,
  type LaneRow,
  lanes,
  type TransactionRow,
  transactionAttempts,
  transactions,
} from "../../db/schema.ts"
import { laneQueue } from "../../platform/queues.ts"

/** An effect with its lane, its transaction and the attempts at it, oldest first. */
export type Work = {
  effect: EffectRow
  lane: LaneRow | null
  transaction: TransactionRow | null
  attempts: AttemptRow[]
}

/** Finds what effects depend on. */
export async function workOf(queries: Queries, rows: EffectRow[]): Promise<Work[]> {
  const transactionIds = [...new Set(rows.flatMap(({ transaction_id }) => transaction_id ?? []))]
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
          .orderBy(asc(transactionAttempts.number), asc(transactionAttempts.created_at)),
  ]
  const laneByQueue = new Map(laneRows.map((lane) => [laneQueue(lane.id), lane]))
  const transactionById = new Map(transactionRows.map((transaction) => [transaction.id, transaction]))
  const attemptsAt = Map.groupBy(attemptRows, ({ transaction_id }) => transaction_id)
  return rows.map((effect) => ({
    effect,
    lane: laneByQueue.get(effect.queue) ?? null,
    transaction: transactionById.get(effect.transaction_id ?? "") ?? null,
    attempts: attemptsAt.get(effect.transaction_id ?? "") ?? [],
  }))
}

export function isOpen({ effect }: Work): boolean {
  return effect.status === "open"
}

/** What an open effect waits for, in a sentence. */
export function reasonOf({ effect, lane, transaction, attempts }: Work, now: Date): string {
  const said = effect.last_error ?? attempts.at(-1)?.last_error
  const because = said ? `; last error: ${said}` : ""
  const notice =
    lane?.status === "open" && lane.reason !== null ? `; lane ${lane.id} says: ${lane.reason}` : ""
  const stop = lane && stopOf(lane, now)
  if (transaction?.status === "mined")
    return `transaction ${transaction.hash} is in block ${transaction.block_number} and has too few confirmations yet${notice}${stop ? `; ${stop}` : ""}`
  if (lane && lane.status !== "open") return String(stop)
  if (transaction?.cancel_requested_at)
    return `nonce ${transaction.nonce} is given up, and the empty transaction for it is not mined yet${because}${notice}`
  if (transaction)
    return `transaction ${attempts.at(-1)?.hash ?? transaction.id} with nonce ${transaction.nonce} is ${transaction.status} and not mined yet${because}${notice}${stop ? `; ${stop}` : ""}`
  if (effect.src === "watchAuthorization") {
    const { chain_id, deadline_at } = effect.input as WatchAuthorizationInput
    return `somebody's wallet may submit it until ${deadline_at}; chain ${chain_id} has not settled it${because}`
  }
  if (stop) return `${stop}${because}`
  return `${said ?? `it waits for its turn in ${effect.queue}`}${notice}`
}

/** Why a lane does nothing at all; null if it is at work. */
export function stopOf({ id, status, reason, leased_until }: LaneRow, now: Date): string | null {
  if (status !== "open") return `lane ${id} is ${status}: ${reason ?? "no reason is recorded"}`
  if (leased_until !== null && leased_until >= now) return null
  return `no worker holds lane ${id}: is one running, with its chain in CHAINS and its key in SIGNER_KEYS?`
}

/** Why the actor's last work failed, if it did. */
export function failureIn(actor: ActorRow): string | null {
  const { context } = actor.snapshot as { context?: { failure?: { code: string; message: string } | null } }
  return context?.failure ? `${context.failure.code}: ${context.failure.message}` : null
}
