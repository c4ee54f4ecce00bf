import type { TransactionRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { type Effect, type Jobs, jobFor } from "../jobs/job.ts"
import type { Lease } from "./leases.ts"
import { releaseEffect, updateTransaction } from "./transactions.ts"

/** Whether all that a transaction was to do is planned anew, rather than sent as it is with another nonce. */
export function isPlannedAnew(jobs: Jobs, kind: string, members: Effect[]): boolean {
  return jobFor(jobs, kind).plansAnew === true && members.every(({ status }) => status === "open")
}

/** Ends a transaction that did nothing, whose effects wait for another one. */
export async function planAnew(
  turn: Turn,
  lease: Lease,
  { id }: Pick<TransactionRow, "id">,
  members: Effect[],
  ended: Partial<TransactionRow>,
): Promise<void> {
  for (const effect of members) await releaseEffect(turn, effect)
  await updateTransaction(turn, lease, id, ended)
}
