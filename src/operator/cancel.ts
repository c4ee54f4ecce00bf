import { and, eq, isNotNull, or } from "drizzle-orm"
import { requestCancel } from "../chain/transactions.ts"
import { inTurn } from "../context.ts"
import type { Queries } from "../db/database.ts"
import { effects, transactions } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError } from "../errors.ts"
import { parseId } from "../ids.ts"
import type { Command } from "./command.ts"

export const cancel: Command = {
  name: "cancel",
  takes:
    "ID  (of a transaction, or of what it is for: its nonce is given up, and all it is for is sent with another one)",
  argument: "ID",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context }) => {
      const given = await inTurn(context, null, (turn) => cancelById(turn, argument))
      const { lane_id, nonce } = given
      const text = `lane ${lane_id} gives up nonce ${nonce}: an empty transaction is sent in its place, and all it was for is sent with another nonce once that one is mined`
      return { document: { id: given.id, lane_id, nonce, done: text }, text }
    },
}

async function cancelById(turn: Turn, text: string) {
  const id = parseId(text)
  const transactionId = id && (await transactionFor(turn.tx, id))
  if (!transactionId)
    throw new ApiError("not_found.resource", `Nothing with the id ${text} has a transaction on its way.`)
  const given = await requestCancel(turn, transactionId)
  if (!given)
    throw new ApiError(
      "not_found.resource",
      `Transaction ${transactionId} is in a block, or has given its results: there is nothing to give up.`,
    )
  turn.wake(`lane:${given.lane_id}`)
  return given
}

async function transactionFor(queries: Queries, id: string): Promise<string | null> {
  const [transaction] = await queries
    .select({ id: transactions.id })
    .from(transactions)
    .where(eq(transactions.id, id))
  if (transaction) return transaction.id
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
