import { and, desc, eq, isNull, or } from "drizzle-orm"
import { type Address, isAddressEqual } from "viem"
import type { Queries } from "../../db/database.ts"
import { collections } from "../../db/schema.ts"
import { within } from "../../platform/deadline.ts"
import type { ConnectedChain } from "./chains.ts"
import { collectionAddress, collectionSalt } from "./collection-address.ts"
import { ChainUnreachable } from "./rpc.ts"

/**
 * Reads the generation of each chain's factory before collection addresses are computed. If a factory does not respond,
 * its newest collection decides until a later request succeeds.
 */
export async function learnGenerations(queries: Queries, chains: Iterable<ConnectedChain>): Promise<void> {
  const unreachable = () => new ChainUnreachable("the chain did not answer in time")
  const asked = [...chains].map(async (chain) => {
    const { generations, config } = chain
    const answer = generations.ofFactory(config.factory_address)
    await within(answer, patienceMilliseconds, unreachable).catch(async (error) => {
      if (!(error instanceof ChainUnreachable)) throw error
      if (await hasDeployedAsFirst(queries, chain)) generations.presume(1)
    })
  })
  await Promise.all(asked)
}

const patienceMilliseconds = 3_000

/**
 * Returns whether the newest collection that may be the factory's is at the address that a
 * first-generation factory would give.
 */
async function hasDeployedAsFirst(queries: Queries, { config }: ConnectedChain): Promise<boolean> {
  const factory = config.factory_address
  const [newest] = await queries
    .select()
    .from(collections)
    .where(
      and(
        eq(collections.chain_id, config.chain_id),
        eq(collections.status, "active"),
        or(eq(collections.factory_address, factory), isNull(collections.factory_address)),
      ),
    )
    .orderBy(desc(collections.created_at))
    .limit(1)
  if (!newest) return false
  const { id, name, symbol, address } = newest
  const asFirst = collectionAddress(1, { factory, salt: collectionSalt(id), name, symbol })
  return isAddressEqual(asFirst, address as Address)
}
