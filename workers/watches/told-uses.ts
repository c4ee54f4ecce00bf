import { and, eq, gte, isNotNull } from "drizzle-orm"
import { type Given, query } from "../../src/db/query.ts"
import { claims, collections, transfers, units } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
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
 * Those whose use a reorganization may still put into another transaction: an authorization lasts half an hour, so
 * no block later than that can have it.
 */
export async function toldUses({ db, clock }: Context, chainId: number): Promise<ToldUse[]> {
  const asked = {
    chain_id: chainId,
    lowest_id: lowestIdAt(new Date(clock().getTime() - restatedMilliseconds)),
  }
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

/** An authorization's half hour, and as much again until the last block that can have it is final. */
const restatedMilliseconds = 60 * 60_000

/** What was told stays so, but of another transaction. */
export async function restateUse({ tx, at }: Turn, id: string, transaction_hash: string): Promise<void> {
  const change = { transaction_hash, updated_at: at }
  await tx.update(claims).set(change).where(eq(claims.id, id))
  await tx.update(transfers).set(change).where(eq(transfers.id, id))
}
