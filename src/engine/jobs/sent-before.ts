import { and, eq, inArray, like, or } from "drizzle-orm"
import type { Hex } from "viem"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { transactions } from "../../db/schema.ts"
import { runSelector, singleCallsIn } from "../chain/desk.ts"

/**
 * Whether bytes that make a call, or one of those in it, are in a block that is not final, whatever they achieved there: a
 * reorganization may put them where they do. They may be another lane's, from which the call has moved here.
 */
export async function isSentBefore(
  queries: Queries,
  chain_id: number,
  call: { to: string; data: Hex },
): Promise<boolean> {
  for (const { to, data } of singleCallsIn(call)) {
    const sent = await settledCalls(queries, { chain_id, to })
    const words = data.slice(10).match(/.{1,64}/g) ?? []
    const isIn = (before: (typeof sent)[number]) =>
      // Whatever makes the call has each word of it: to take the others apart takes long.
      words.every((word) => before.call.includes(word)) &&
      singleCallsIn({ to: before.to, data: before.call }).some((each) => each.to === to && each.data === data)
    if (sent.some(isIn)) return true
  }
  return false
}

/** Of those whose results were given and that are not final. */
const settledCalls = query((db, { chain_id, to }: Given<{ chain_id: number; to: string }>) =>
  db
    .select({ to: transactions.to, call: transactions.call })
    .from(transactions)
    .where(
      and(
        eq(transactions.chain_id, chain_id),
        inArray(transactions.status, ["confirmed", "reverted"]),
        or(eq(transactions.to, to), like(transactions.call, `${runSelector}%`)),
      ),
    ),
)
