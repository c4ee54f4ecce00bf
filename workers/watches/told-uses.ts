import { and, eq, gte, isNotNull } from "drizzle-orm"
import { type Given, query } from "../../src/db/query.ts"
import { claims, collections, transfers, units } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { authorizationSeconds } from "../../src/engine/chain/authorizer.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import type { Header } from "../../src/engine/chain/headers.ts"
import type { Context } from "../../src/platform/context.ts"
import { lowestIdAt } from "../../src/platform/ids.ts"

/** A claim or transfer that was told to have used its authorization, and the transaction it was told of. */
export type ToldUse = {
  id: string
  contract_address: string
  serial: number
  authorization_digest: string
  transaction_hash: string
}

/**
 * Those whose use a reorganization may have put into another transaction in the blocks from one on: no block later than
 * an authorization lasts can have it, however long ago the chain was read.
 */
export async function toldUses(
  { db, clock }: Context,
  { chain_id, config }: ConnectedChain,
  { timestamp }: Pick<Header, "timestamp">,
): Promise<ToldUse[]> {
  const since = Math.min(Number(timestamp) * 1_000, clock().getTime()) - restatedMilliseconds(config)
  const asked = { chain_id, lowest_id: lowestIdAt(new Date(Math.max(since, 0))) }
  const told = await Promise.all([claimsTold(db.read, asked), transfersTold(db.read, asked)])
  // All of them are set where an authorization was used.
  return told.flat() as ToldUse[]
}

const claimsTold = queryTold(claims, "claimed")
const transfersTold = queryTold(transfers, "confirmed")

function queryTold(table: typeof claims | typeof transfers, status: "claimed" | "confirmed") {
  return query((db, { chain_id, lowest_id }: Given<{ chain_id: number; lowest_id: string }>) =>
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
          gte(table.id, lowest_id),
          eq(table.status, status),
          isNotNull(table.authorization_digest),
          eq(collections.chain_id, chain_id),
        ),
      ),
  )
}

/** As long as an authorization lasts, and until the last block that can have it is final, however late that is told. */
function restatedMilliseconds({ finality_depth, block_time_seconds }: ConnectedChain["config"]): number {
  return (authorizationSeconds + 2 * finality_depth * block_time_seconds) * 1_000
}

/** What was told stays so, but of another transaction. */
export async function restateUse({ tx, at }: Turn, id: string, transaction_hash: string): Promise<void> {
  const change = { transaction_hash, updated_at: at }
  await tx.update(claims).set(change).where(eq(claims.id, id))
  await tx.update(transfers).set(change).where(eq(transfers.id, id))
}
