import { and, eq, inArray } from "drizzle-orm"
import type { Address } from "viem"
import { foundOwners, foundSerials } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { type CollectionRow, collections, units } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { noteOwner } from "../../src/engine/actors/owners.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import { someAtATime } from "../../src/engine/chain/answers.ts"
import { type ConnectedChain, ownerIn } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { newestConfirmed } from "../../src/engine/chain/headers.ts"
import { chipIdOf } from "../../src/engine/chain/issue-call.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { searchCollectionLogs } from "../../src/engine/chain/logs.ts"
import { ChainUnreachable, reach } from "../../src/engine/chain/rpc.ts"
import { type FoundSerial, ownIssuances } from "../../src/engine/found-serials.ts"
import type { Effect, Wait, Write } from "../../src/engine/jobs/job.ts"
import { isContractLost } from "./lost-contract.ts"

/** The most serials that are taken up at once. */
const maxSerials = 100
/** How many of them are read at the same time. */
const serialsAtOnce = 20

/**
 * Takes up serials that the chain has issued and the database does not have, as after a restored back-up, with the
 * chips that they are bound to: each goes to the unit that has its chip, so that no unit is issued twice; `taken` are
 * those that wait. Returns null if there are none. Waits while they are above the confirmation depth, or not final if
 * nothing would issue them again, and while the chain has lost the contract. No transaction of the collection may be
 * open.
 */
export async function takeUpSerials(
  chain: ConnectedChain,
  queries: Queries,
  collection: CollectionRow,
  waiting: Effect<"issueUnit">[],
): Promise<Write<"issueUnit"> | Wait<"issueUnit"> | null> {
  const { id: collection_id, next_serial: first } = collection
  const address = collection.address as Address
  if ((await issuedOn(chain, address)) < first)
    return (await isContractLost(chain, address, waiting)) ? { do: "wait", effects: waiting } : null
  const block = await newestConfirmed(chain, 0n)
  const confirmed = block < 0n ? 0 : await issuedOn(chain, address, block)
  if (confirmed < first) return { do: "wait", effects: waiting }

  const last = Math.min(confirmed, first + maxSerials - 1)
  const issued = Array.from({ length: last - first + 1 }, (_, index) => first + index)
  const held = await heldSerials(queries, collection_id, issued)
  const lost = issued.filter((serial) => !held.has(serial))
  const issuances = await issuancesOf(chain, collection, lost, block)
  const recent = await recentOf(chain, issuances)
  if (!(await areOwn(queries, [...recent.values()]))) return { do: "wait", effects: waiting }
  const found = await readSerials(chain, collection, issuances, block)
  const taken = waiting.filter(({ input }) => found.some(({ chip_id }) => chip_id === input.chip_id))
  if (!areGiven(found, recent, taken)) return { do: "wait", effects: waiting }
  const about = { collection_id, serials: found.length, first_serial: first, last_serial: last }
  return {
    do: "write",
    taken,
    write: (turn) => storeSerials(turn, collection, found, last),
    warning:
      found.length === 0
        ? null
        : [
            about,
            "the chain has serials that the database had lost: each goes to the unit that its chip is paired to",
          ],
  }
}

/** Gives units that just got their serials the owners that the chain already had for these. */
export async function takeFoundOwners(
  turn: Turn,
  collectionId: string,
  issued: { unit_id: string; serial: number }[],
): Promise<void> {
  const serials = issued.map(({ serial }) => serial)
  const rows = await ownersOf(turn.tx, { collection_id: collectionId, serials })
  for (const { serial, address, holder, block_number } of rows) {
    const id = issued.find((each) => each.serial === serial)?.unit_id
    if (id === undefined) continue
    const owner = ownerIn(address as Address, holder as Address)
    if (owner !== null) await sendEvent(turn, id, { type: "CLAIMED" })
    await noteOwner(turn, { id, owner: null, owner_block: null }, { owner, block_number })
  }
}

const ownersOf = query(
  (db, { collection_id, serials }: Given<{ collection_id: string; serials: number[] }>) =>
    db
      .select({
        serial: foundOwners.serial,
        holder: foundOwners.owner,
        block_number: foundOwners.block_number,
        address: collections.address,
      })
      .from(foundOwners)
      .innerJoin(collections, eq(collections.id, foundOwners.collection_id))
      .where(and(eq(foundOwners.collection_id, collection_id), inArray(foundOwners.serial, serials))),
)

/** Returns which of these serials of a collection units have. */
export async function heldSerials(
  queries: Queries,
  collectionId: string,
  serials: number[],
): Promise<Set<number>> {
  const held = await unitsWith(queries, { collection_id: collectionId, serials })
  return new Set(held.map(({ serial }) => serial as number))
}

const unitsWith = query(
  (db, { collection_id, serials }: Given<{ collection_id: string; serials: number[] }>) =>
    db
      .select({ serial: units.serial })
      .from(units)
      .where(and(inArray(units.serial, serials), eq(units.collection_id, collection_id))),
)

/** Returns those issuances that are not final, by serial. */
async function recentOf(
  chain: ConnectedChain,
  issuances: Map<number, Issuance>,
): Promise<Map<number, Issuance>> {
  const final = await chain.headers.finalHeight()
  return new Map([...issuances].filter(([, { block_number }]) => block_number > final))
}

/**
 * Returns whether issuances are the lanes' own. Those of others would not be repeated if undone, and whatever was issued
 * after them would wait for them.
 */
async function areOwn(queries: Queries, issuances: Issuance[]): Promise<boolean> {
  const hashes = [...new Set(issuances.map(({ transaction_hash }) => transaction_hash))]
  if (hashes.length === 0) return true
  const own = await ownIssuances(queries, hashes)
  return own.size === hashes.length
}

/** Returns whether all recent serials go to units now: lanes repeat their own issuances only for the units of these. */
function areGiven(
  found: FoundSerial[],
  recent: Map<number, Issuance>,
  taken: Effect<"issueUnit">[],
): boolean {
  const given = new Set(taken.map(({ input }) => input.chip_id))
  return found.every(({ serial, chip_id }) => !recent.has(serial) || given.has(chip_id))
}

async function readSerials(
  chain: ConnectedChain,
  collection: CollectionRow,
  issuances: Map<number, Issuance>,
  block: bigint,
): Promise<FoundSerial[]> {
  return await someAtATime([...issuances], serialsAtOnce, async ([serial, { transaction_hash }]) => {
    const chip_id = await chipOf(chain, collection, serial, block)
    return { serial, chip_id, transaction_hash }
  })
}

/** Returns the chip that a serial is bound to now, which may not be the one it was issued with. */
async function chipOf(
  { rpc }: ConnectedChain,
  { address }: CollectionRow,
  serial: number,
  blockNumber: bigint,
): Promise<string> {
  const token = { address: address as Address, abi: collectionAbi, args: [BigInt(serial)] } as const
  const chip = await reach(() => rpc.readContract({ ...token, functionName: "chipOf", blockNumber }))
  return chipIdOf(chip)
}

type Issuance = { transaction_hash: string; block_number: bigint }

/** Returns how each of these serials was issued. */
async function issuancesOf(
  chain: ConnectedChain,
  collection: CollectionRow,
  serials: number[],
  newest_block: bigint,
): Promise<Map<number, Issuance>> {
  if (serials.length === 0) return new Map()
  const known = await issuancesSince(chain, collection, Math.min(...serials), newest_block)
  return new Map(
    serials.map((serial) => {
      const issuance = known.get(serial)
      if (!issuance)
        throw new Error(
          `no log says which transaction issued serial ${serial} of collection ${collection.id}: put a provider that has all logs first in rpc_urls of chain ${chain.chain_id} in CHAINS`,
        )
      return [serial, issuance]
    }),
  )
}

/** Returns how the serials from `lowest` on, and maybe others, were issued. */
async function issuancesSince(
  chain: ConnectedChain,
  { id, address, deployed_block }: CollectionRow,
  lowest: number,
  newest_block: bigint,
): Promise<Map<number, Issuance>> {
  const search = { address: address as Address, deployed_block, newest_block, event_name: "Issued" } as const
  try {
    const logs = await searchCollectionLogs(chain, search, (found) =>
      found.some(({ args }) => Number(args.first) <= lowest),
    )
    return new Map(
      logs.flatMap(({ args: { first = 0n, chips = "0x" }, transactionHash, blockNumber }) => {
        const issuance = { transaction_hash: transactionHash, block_number: blockNumber }
        return Array.from({ length: (chips.length - 2) / 10 }, (_, index): [number, Issuance] => [
          Number(first) + index,
          issuance,
        ])
      }),
    )
  } catch (error) {
    // Providers that refuse a range must not hold up the lane's other collections.
    if (!(error instanceof ChainUnreachable)) throw error
    throw new Error(
      `the logs of collection ${id} cannot be read (${error.message}): if a provider refuses the range of blocks, lower log_range_blocks of chain ${chain.chain_id} in CHAINS`,
    )
  }
}

async function storeSerials(
  { tx, at }: Turn,
  { id, next_serial }: CollectionRow,
  found: FoundSerial[],
  last: number,
): Promise<void> {
  const moved = await tx
    .update(collections)
    .set({ next_serial: last + 1 })
    .where(and(eq(collections.id, id), eq(collections.next_serial, next_serial)))
    .returning({ id: collections.id })
  if (moved.length === 0) throw new Error(`serial ${next_serial} of collection ${id} was reserved meanwhile`)
  if (found.length === 0) return
  await tx
    .insert(foundSerials)
    .values(found.map((each) => ({ ...each, collection_id: id, found_at: at })))
    .onConflictDoNothing()
}
