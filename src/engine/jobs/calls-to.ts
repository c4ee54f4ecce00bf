import { eq, like, or, type SQL } from "drizzle-orm"
import { transactions } from "../../db/schema.ts"
import { runSelector } from "../chain/desk.ts"

/** Matches transactions that call a contract, or the desk, which may call it: `callsIn` tells. */
export function mayCall(contract: SQL) {
  return or(eq(transactions.to, contract), like(transactions.call, `${runSelector}%`))
}
