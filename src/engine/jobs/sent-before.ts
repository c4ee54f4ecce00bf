import { and, eq, ne } from "drizzle-orm"
import type { Hex } from "viem"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { transactions } from "../../db/schema.ts"
import { singleCallsIn } from "../chain/desk.ts"
import { mayCall } from "./calls-to.ts"

/**
 * Returns whether bytes that are in no final block make a call, or one of the calls in it, whatever their outcome: a
 * reorganization may move them to where they succeed. They may be from another lane, if the work moved here, and may be
 * on their way again for other work.
 */
export async function isSentBefore(
  queries: Queries,
  chain_id: number,
  call: { to: string; data: Hex },
): Promise<boolean> {
  for (const { to, data } of singleCallsIn(call)) {
    const sent = await watchedCalls(queries, { chain_id, to })
    const words = data.slice(10).match(/.{1,64}/g) ?? []
    const isIn = (before: (typeof sent)[number]) =>
      // Bytes that make the call contain each of its words; decoding all the others would take too long.
      words.every((word) => before.call.includes(word)) &&
      singleCallsIn({ to: before.to, data: before.call }).some((each) => each.to === to && each.data === data)
    if (sent.some(isIn)) return true
  }
  return false
}

/** Transactions that are not final. */
const watchedCalls = query((db, { chain_id, to }: Given<{ chain_id: number; to: string }>) =>
  db
    .select({ to: transactions.to, call: transactions.call })
    .from(transactions)
    .where(and(eq(transactions.chain_id, chain_id), ne(transactions.status, "final"), mayCall(to))),
)
