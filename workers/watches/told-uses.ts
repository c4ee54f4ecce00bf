import { and, eq, inArray } from "drizzle-orm"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { claims, collections, transfers, units } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { partsOf } from "../../src/platform/parts.ts"

/** A claim or transfer that was reported to have used its authorization, and the transaction that was reported. */
export type ToldUse = {
  id: string
  contract_address: string
  serial: number
  authorization_digest: string
  transaction_hash: string
}

/**
 * Returns the claims and transfers that were reported to have used one of these authorizations; blocks may have the
 * use in another transaction now.
 */
export async function toldUses(
  queries: Queries,
  { chain_id }: ConnectedChain,
  digests: readonly string[],
): Promise<ToldUse[]> {
  const told: ToldUse[] = []
  for (const part of partsOf(digests, atOnce)) {
    const asked = { chain_id, digests: part }
    const some = await Promise.all([claimsTold(queries, asked), transfersTold(queries, asked)])
    // All of these are set once an authorization was used.
    told.push(...(some.flat() as ToldUse[]))
  }
  return told
}

const atOnce = 500

const claimsTold = queryTold(claims, "claimed")
const transfersTold = queryTold(transfers, "confirmed")

function queryTold(table: typeof claims | typeof transfers, status: "claimed" | "confirmed") {
  return query((db, { chain_id, digests }: Given<{ chain_id: number; digests: string[] }>) =>
    db
      .select({
        id: table.id,
        contract_address: collections.address,
        serial: units.serial,
        authorization_digest: table.authorization_digest,
        transaction_hash: table.transaction_hash,
      })
      .from(table)
      .innerJoin(units, eq(units.id, table.unit_id))
      .innerJoin(collections, eq(collections.id, units.collection_id))
      .where(
        and(
          inArray(table.authorization_digest, digests),
          eq(table.status, status),
          eq(collections.chain_id, chain_id),
        ),
      ),
  )
}

/** Records another transaction for a use. The outcome stays. */
export async function restateUse({ tx, at }: Turn, id: string, transaction_hash: string): Promise<void> {
  const change = { transaction_hash, updated_at: at }
  await tx.update(claims).set(change).where(eq(claims.id, id))
  await tx.update(transfers).set(change).where(eq(transfers.id, id))
}
