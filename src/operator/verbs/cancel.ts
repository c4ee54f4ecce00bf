import { and, eq, isNotNull, or } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { effects, transactions } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { requestCancel } from "../../engine/lanes/transactions.ts"
import { parseId } from "../../platform/ids.ts"
import { laneQueue } from "../../platform/queues.ts"
import { OperatorRefusal } from "./refusal.ts"

/**
 * Gives up a transaction's nonce, by the id of the transaction or of what it is for: an empty transaction uses it up,
 * and its work is sent with another nonce. Throws `OperatorRefusal`.
 */
export async function cancelById(turn: Turn, text: string) {
  const id = parseId(text)
  const transactionId = id && (await transactionFor(turn.tx, id))
  if (!transactionId)
    throw new OperatorRefusal(
      "not_found.resource",
      `Nothing with the id ${text} has a transaction in progress.`,
    )
  const given = await requestCancel(turn, transactionId)
  if (!given) throw await cannotGiveUp(turn.tx, transactionId, text)
  turn.wake(laneQueue(given.lane_id))
  return given
}

async function cannotGiveUp(queries: Queries, transactionId: string, text: string): Promise<OperatorRefusal> {
  const [transaction] = await queries
    .select({ status: transactions.status })
    .from(transactions)
    .where(eq(transactions.id, transactionId))
  if (transaction?.status === "allocated")
    return new OperatorRefusal(
      "transaction.on_its_way",
      `Transaction ${transactionId} is not signed yet, and can be given up only then: explain ${text} says what holds it up.`,
    )
  return new OperatorRefusal(
    "transaction.is_settled",
    `Transaction ${transactionId} is mined or finished: there is nothing to give up.`,
  )
}

async function transactionFor(queries: Queries, id: string): Promise<string | null> {
  const [transaction] = await queries
    .select({ id: transactions.id })
    .from(transactions)
    .where(eq(transactions.id, id))
  return transaction ? transaction.id : await openTransactionOf(queries, id)
}

/** The transaction that an open effect waits for, by its id or its actor's. */
export async function openTransactionOf(queries: Queries, id: string): Promise<string | null> {
  const [effect] = await queries
    .select({ transaction_id: effects.transaction_id })
    .from(effects)
    .where(
      and(
        or(eq(effects.id, id), eq(effects.actor_id, id)),
        eq(effects.status, "open"),
        isNotNull(effects.transaction_id),
      ),
    )
  return effect?.transaction_id ?? null
}
