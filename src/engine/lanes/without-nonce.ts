import type { TransactionRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { jobFor } from "../jobs/job.ts"
import type { HeldLane } from "./held-lane.ts"
import { displaceTransaction, effectsOf, releaseEffect, updateTransaction } from "./transactions.ts"

/**
 * Continues the work of a transaction whose nonce was used without effect: moves its content to the lane's next nonce,
 * or releases its effects if their job plans them again. `ended`: the changes to the transaction itself.
 */
export async function goOnWithoutNonce(
  turn: Turn,
  { jobs, lease }: Pick<HeldLane, "jobs" | "lease">,
  transaction: TransactionRow,
  ended: Partial<TransactionRow>,
): Promise<void> {
  const members = await effectsOf(turn.tx, transaction.id)
  const isPlannedAnew =
    jobFor(jobs, transaction.kind).plansAnew === true && members.every(({ status }) => status === "open")
  if (!isPlannedAnew) return await displaceTransaction(turn, lease, transaction, ended)
  for (const effect of members) await releaseEffect(turn, effect)
  await updateTransaction(turn, lease, transaction.id, ended)
}
