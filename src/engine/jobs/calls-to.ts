import { and, eq, like, or, type SQL, sql } from "drizzle-orm"
import { transactions } from "../../db/schema.ts"
import { runSelector } from "../chain/desk.ts"

/** Matches transactions that call a contract, or the desk with the contract's address: `callsIn` tells what they call. */
export function mayCall(contract: SQL) {
  const isDesk = like(transactions.call, `${runSelector}%`)
  return or(eq(transactions.to, contract), and(isDesk, like(transactions.call, inside(contract))))
}

/** A pattern of calls that contain an address, which is in lower case there. */
function inside(address: SQL): SQL {
  return sql`'%' || lower(substr(${address}, 3)) || '%'`
}
