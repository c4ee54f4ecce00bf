import { and, asc, count, eq, inArray, isNull, notExists } from "drizzle-orm"
import type { Address } from "viem"
import { foundSerials } from "../../db/chain-schema.ts"
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
import { someAtATime } from "../../engine/chain/answers.ts"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { newestConfirmed } from "../../engine/chain/headers.ts"
import { chipIdOf } from "../../engine/chain/issue-call.ts"
import { issuedOn } from "../../engine/chain/issued.ts"
import { searchCollectionLogs } from "../../engine/chain/logs.ts"
import { tokenAt } from "../../engine/chain/token-at.ts"
import { parseId } from "../../platform/ids.ts"
import { partsOf } from "../../platform/parts.ts"
import { OperatorRefusal } from "./refusal.ts"

/** The active collections, oldest first; only the named one, if any. Throws `OperatorRefusal`. */
export async function comparableCollections(queries: Queries, name: string | null): Promise<CollectionRow[]> {
  const isActive = eq(collections.status, "active")
  if (name === null)
    return await queries.select().from(collections).where(isActive).orderBy(asc(collections.id))
  const id = parseId(name)
  const rows = id
    ? await queries
        .select()
        .from(collections)
        .where(and(isActive, eq(collections.id, id)))
    : []
  if (rows.length === 0)
    throw new OperatorRefusal("not_found.resource", `There is no active collection ${name}.`)
  return rows
}

/**
 * What a collection's contract has at the confirmation depth that nobody asked for here: because of a stolen signer
 * key, a restored back-up or a reorganization. Throws `ChainUnreachable`.
 */
export async function compareWithChain(
  queries: Queries,
  chain: ConnectedChain,
  collection: Pick<CollectionRow, "id" | "address" | "deployed_block">,
) {
  const address = collection.address as Address
  // Read before the chain, which does not have later replacements yet.
  const replaced = await replacedSerials(queries, collection.id)
  const newest_block = await newestConfirmed(chain, 0n)
  const [issued, swapped] = await Promise.all([
    issuedOn(chain, address, newest_block),
    swappedChips(chain, collection, newest_block),
  ])
  const unswapped = replaced.filter((serial) => serial <= issued && !swapped.has(serial))
  const locked = await lockedChips(chain, address, unswapped, newest_block)
  // Read after the chain, so that what was asked for meanwhile counts as asked for.
  return {
    collection_id: collection.id,
    unasked_serials: await unaskedOf(queries, collection.id, issued),
    other_chips: await otherChips(queries, collection.id, new Map([...swapped, ...locked])),
    unasked_claims: await unaskedClaims(queries, collection.id),
  }
}

export type Comparison = Awaited<ReturnType<typeof compareWithChain>>

/** Serials whose chip was replaced here; the chain may have lost that. */
async function replacedSerials(queries: Queries, collectionId: string): Promise<number[]> {
  const rows = await queries
    .selectDistinct({ serial: units.serial })
    .from(chipReplacements)
    .innerJoin(units, eq(units.id, chipReplacements.unit_id))
    .where(and(eq(units.collection_id, collectionId), eq(chipReplacements.status, "confirmed")))
  return rows.flatMap(({ serial }) => serial ?? [])
}

/** The chip of the newest replacement on chain, by serial. */
async function swappedChips(
  chain: ConnectedChain,
  { address, deployed_block }: Pick<CollectionRow, "address" | "deployed_block">,
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

/** The chips of claimed serials: no lane can redo a replacement that was undone before the claim. */
async function lockedChips(
  chain: ConnectedChain,
  contract: Address,
  serials: readonly number[],
  block: bigint,
): Promise<Map<number, string>> {
  const read = async (serial: number): Promise<[number, string][]> => {
    const { chip_id, owner } = await tokenAt(chain, { contract, serial: BigInt(serial) }, block)
    return owner === null ? [] : [[serial, chip_id]]
  }
  return new Map((await someAtATime(serials, serialsAtOnce, read)).flat())
}

/** How many are read from the chain at once. */
const serialsAtOnce = 20

/** Serials beyond the next one to issue, and those skipped and left without a unit. */
async function unaskedOf(queries: Queries, id: string, issued: number): Promise<number> {
  const { collection_id, serial } = foundSerials
  // Read before the next serial, which moves past them.
  const [passed] = await queries
    .select({ serials: count() })
    .from(foundSerials)
    .leftJoin(units, and(eq(units.collection_id, collection_id), eq(units.serial, serial)))
    .where(and(eq(collection_id, id), isNull(units.id)))
  const [row] = await queries
    .select({ next_serial: collections.next_serial })
    .from(collections)
    .where(eq(collections.id, id))
  return Math.max(0, issued - (row?.next_serial ?? 1) + 1) + Number(passed?.serials ?? 0)
}

type OtherChip = { unit_id: string; serial: number; chip_id: string | null; chip_id_on_chain: string }

/** Units with another chip on chain that no replacement of theirs explains. */
async function otherChips(
  queries: Queries,
  collectionId: string,
  bound: ReadonlyMap<number, string>,
): Promise<OtherChip[]> {
  const others: OtherChip[] = []
  const serials = [...bound.keys()].sort((one, other) => one - other)
  for (const part of partsOf(serials, rowsAtOnce))
    others.push(...(await otherChipsOf(queries, collectionId, bound, part)))
  return others
}

const rowsAtOnce = 500

async function otherChipsOf(
  queries: Queries,
  collectionId: string,
  bound: ReadonlyMap<number, string>,
  serials: number[],
): Promise<OtherChip[]> {
  const isUnderWay = and(
    eq(chipReplacements.unit_id, units.id),
    inArray(chipReplacements.status, ["prepared", "submitted"]),
  )
  const rows = await queries
    .select({
      unit_id: units.id,
      serial: units.serial,
      chip_id: chips.chip_id,
      next_chip_id: chipReplacements.chip_id,
    })
    .from(units)
    .leftJoin(chips, eq(chips.unit_id, units.id))
    .leftJoin(chipReplacements, isUnderWay)
    .where(and(inArray(units.serial, serials), eq(units.collection_id, collectionId)))
    .orderBy(asc(units.serial))
  return rows.flatMap(({ unit_id, serial, chip_id, next_chip_id }) => {
    const onChain = serial === null ? undefined : bound.get(serial)
    if (serial === null || onChain === undefined || [chip_id, next_chip_id].includes(onChain)) return []
    return [{ unit_id, serial, chip_id, chip_id_on_chain: onChain }]
  })
}

/** Units that somebody has without a claim made here. */
async function unaskedClaims(
  queries: Queries,
  collectionId: string,
): Promise<{ unit_id: string; serial: number | null; owner: UnitRow["owner"] }[]> {
  const ownClaim = queries
    .select({ id: claims.id })
    .from(claims)
    .where(and(eq(claims.unit_id, units.id), eq(claims.status, "claimed")))
  return await queries
    .select({ unit_id: units.id, serial: units.serial, owner: units.owner })
    .from(units)
    .where(and(eq(units.collection_id, collectionId), eq(units.claimed, true), notExists(ownClaim)))
    .orderBy(asc(units.serial))
}
