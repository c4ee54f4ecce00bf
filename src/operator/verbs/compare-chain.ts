import { and, asc, eq, inArray, isNotNull, notExists } from "drizzle-orm"
import type { Address } from "viem"
import type { Queries } from "../../db/database.ts"
import {
  type CollectionRow,
  chipReplacements,
  chips,
  claims,
  collections,
  type UnitRow,
  units,
} from "../../db/schema.ts"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { collectionAbi } from "../../engine/chain/contracts.generated.ts"
import { newestConfirmed } from "../../engine/chain/headers.ts"
import { searchCollectionLogs } from "../../engine/chain/logs.ts"
import { reach } from "../../engine/chain/rpc.ts"

/** Collections that have a contract, the oldest first; only the one, where one is named. */
export async function comparableCollections(queries: Queries, id: string | null): Promise<CollectionRow[]> {
  const isActive = eq(collections.status, "active")
  return await queries
    .select()
    .from(collections)
    .where(id === null ? isActive : and(isActive, eq(collections.id, id)))
    .orderBy(asc(collections.id))
}

/**
 * What a collection's contract has at the confirmation depth and nobody asked for here: the work of whoever else has a
 * signer's key, or what a restored back-up has forgotten. Throws `ChainUnreachable`.
 */
export async function compareWithChain(queries: Queries, chain: ConnectedChain, collection: CollectionRow) {
  const newest_block = await newestConfirmed(chain, 0n)
  const [issued, swapped] = await Promise.all([
    issuedAt(chain, collection, newest_block),
    swappedChips(chain, collection, newest_block),
  ])
  return {
    collection_id: collection.id,
    unasked_serials: Math.max(0, issued - (collection.next_serial - 1)),
    other_chips: await otherChips(queries, collection, swapped),
    unasked_claims: await unaskedClaims(queries, collection),
  }
}

export type Comparison = Awaited<ReturnType<typeof compareWithChain>>

async function issuedAt({ rpc }: ConnectedChain, { address }: CollectionRow, blockNumber: bigint) {
  const question = { address: address as Address, abi: collectionAbi, functionName: "issued" } as const
  return Number(await reach(() => rpc.readContract({ ...question, blockNumber })))
}

/** By serial, the chip that the newest replacement on chain gave it. */
async function swappedChips(
  chain: ConnectedChain,
  { address, deployed_block }: CollectionRow,
  newest_block: bigint,
): Promise<Map<number, string>> {
  const logs = await searchCollectionLogs(
    chain,
    { address: address as Address, deployed_block, newest_block, event_name: "ChipReplaced" },
    () => false,
  )
  const oldestFirst = logs.toReversed()
  return new Map(oldestFirst.map(({ args }) => [Number(args.serial), chipIdOf(args.chip ?? 0)]))
}

function chipIdOf(chip: number): string {
  return chip.toString(16).toUpperCase().padStart(10, "0")
}

/** Units whose chip is another one on chain, and not on its way there by a replacement of their own. */
async function otherChips(
  queries: Queries,
  { id }: CollectionRow,
  swapped: ReadonlyMap<number, string>,
): Promise<{ unit_id: string; serial: number; chip_id: string | null; chip_id_on_chain: string }[]> {
  if (swapped.size === 0) return []
  const rows = await queries
    .select({ unit_id: units.id, serial: units.serial, chip_id: chips.chip_id })
    .from(units)
    .leftJoin(chips, eq(chips.unit_id, units.id))
    .where(and(eq(units.collection_id, id), isNotNull(units.serial)))
    .orderBy(asc(units.serial))
  const underWay = await queries
    .select({ unit_id: chipReplacements.unit_id, chip_id: chipReplacements.chip_id })
    .from(chipReplacements)
    .innerJoin(units, eq(units.id, chipReplacements.unit_id))
    .where(and(eq(units.collection_id, id), inArray(chipReplacements.status, ["prepared", "submitted"])))
  return rows.flatMap(({ unit_id, serial, chip_id }) => {
    const onChain = swapped.get(serial ?? 0)
    if (onChain === undefined || onChain === chip_id) return []
    const isItsOwn = underWay.some((swap) => swap.unit_id === unit_id && swap.chip_id === onChain)
    return isItsOwn ? [] : [{ unit_id, serial: Number(serial), chip_id, chip_id_on_chain: onChain }]
  })
}

/** Units that somebody has by no claim that was made here. */
async function unaskedClaims(
  queries: Queries,
  { id }: CollectionRow,
): Promise<{ unit_id: string; serial: number | null; owner: UnitRow["owner"] }[]> {
  const ownClaim = queries
    .select({ id: claims.id })
    .from(claims)
    .where(and(eq(claims.unit_id, units.id), eq(claims.status, "claimed")))
  return await queries
    .select({ unit_id: units.id, serial: units.serial, owner: units.owner })
    .from(units)
    .where(and(eq(units.collection_id, id), eq(units.claimed, true), notExists(ownClaim)))
    .orderBy(asc(units.serial))
}
