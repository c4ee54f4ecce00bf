import { and, eq, ne } from "drizzle-orm"
import { alias } from "drizzle-orm/pg-core"
import type { WatchAuthorizationOutput } from "../../machines/authorization.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { claims, transfers } from "../../src/db/schema.ts"

/**
 * Returns the outcome that a claim or transfer gets. Two requested at the same moment may hold the same authorization,
 * which the contract accepts once: the first to be settled has used it, the other is superseded.
 */
export async function singleUse(
  queries: Queries,
  actor_id: string,
  output: WatchAuthorizationOutput,
): Promise<WatchAuthorizationOutput> {
  if (output.outcome !== "used") return output
  const [claimed, confirmed] = await Promise.all([
    claimedBySame(queries, { id: actor_id }),
    confirmedBySame(queries, { id: actor_id }),
  ])
  return claimed.length + confirmed.length === 0 ? output : { ...output, outcome: "superseded" }
}

const claimedBySame = queryUse(claims, "claimed")
const confirmedBySame = queryUse(transfers, "confirmed")

function queryUse(table: typeof claims | typeof transfers, status: "claimed" | "confirmed") {
  const other = alias(table, "other")
  return query((db, { id }: Given<{ id: string }>) =>
    db
      .select({ id: other.id })
      .from(table)
      .innerJoin(
        other,
        and(
          eq(other.unit_id, table.unit_id),
          eq(other.authorization_digest, table.authorization_digest),
          ne(other.id, table.id),
        ),
      )
      .where(and(eq(table.id, id), eq(other.status, status))),
  )
}
