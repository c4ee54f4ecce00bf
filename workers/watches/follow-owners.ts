import { and, eq, gt, isNull } from "drizzle-orm"
import { type Address, isAddressEqual, zeroAddress } from "viem"
import { foundOwners } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { claims, collections, type UnitRow, units } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { isOutdated, noteOwner, type SeenOwner } from "../../src/engine/actors/owners.ts"
import { sendEvent } from "../../src/engine/actors/runtime.ts"
import { type ConnectedChain, ownerIn } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Header } from "../../src/engine/chain/headers.ts"
import { hasNoContract } from "../../src/engine/chain/issued.ts"
import { ChainUnreachable, unlessReverted } from "../../src/engine/chain/rpc.ts"
import { type BlockPlace, stateAt } from "../../src/engine/chain/state-at.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { partsOf } from "../../src/platform/parts.ts"
import { askedBy, type Cursor, holdCursor, readUpTo } from "./chain-cursor.ts"

/** The collections of a chain, by lower-case contract address. */
export type Contracts = ReadonlyMap<string, { collection_id: string; address: Address }>

/** A token's transfer from one address to another. */
export type Move = { address: Address; serial: bigint; from: Address; to: Address; block_number: bigint }

/**
 * Returns all collections of a chain, even if their deployment is open or failed: after a restored back-up, the blocks
 * in which their tokens moved are read before the deployment is found.
 */
export async function contractsOn(queries: Queries, chainId: number): Promise<Contracts> {
  const rows = await contractsWithTokens(queries, { chain_id: chainId })
  return new Map(
    rows.map(({ id, address }) => [lower(address), { collection_id: id, address: address as Address }]),
  )
}

const contractsWithTokens = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db
    .select({ id: collections.id, address: collections.address })
    .from(collections)
    .where(eq(collections.chain_id, chain_id)),
)

/** Records the new owners of moved tokens, in the order of the chain. */
export async function followMoves(turn: Turn, contracts: Contracts, moves: readonly Move[]): Promise<void> {
  const ownersAfter = new Map(moves.map((move) => [blockKey(move), ownerIn(move.address, move.to)]))
  const told = new Map<string, boolean>()
  for (const move of moves) {
    const { address, serial, from, to, block_number } = move
    const contract = contracts.get(lower(address))
    // An issuance puts the token into custody, which its own results report.
    if (!contract || isAddressEqual(from, zeroAddress)) continue
    const seen = { owner: ownerIn(address, to), block_number: Number(block_number) }
    const token = { ...contract, serial: Number(serial) }
    const [unit] = await unitOfToken(turn.tx, token)
    // A worker that was overtaken reads blocks again: a token's earlier moves in a block are not told after its last.
    const block = blockKey(move)
    const isTold =
      told.get(block) ?? (unit?.owner_block === seen.block_number && unit.owner === ownersAfter.get(block))
    told.set(block, isTold)
    if (isTold && unit?.owner !== seen.owner) continue
    if (unit) await noteSeenOwner(turn, unit, seen)
    else await noteFoundOwner(turn, token, seen)
  }
}

/** Identifies a token on its chain, in whatever case its contract is written. */
export function tokenKey(contract: string, serial: number | bigint): string {
  return `${lower(contract)} ${serial}`
}

/** Identifies a token's moves in one block. */
function blockKey({ address, serial, block_number }: Move): string {
  return `${tokenKey(address, serial)} ${block_number}`
}

/**
 * Records a unit's owner. A unit out of custody is claimed, in whatever way: its chip is locked. A unit back in
 * custody is returned if the chain lost a claim that the database does not have, as after a restored back-up: no
 * lane and no wallet brings it back.
 */
export async function noteSeenOwner(turn: Turn, unit: FollowedUnit, seen: SeenOwner): Promise<void> {
  if (isOutdated(seen, unit)) return
  if (seen.owner !== null && !unit.claimed) await sendEvent(turn, unit.id, { type: "CLAIMED" })
  if (seen.owner === null && unit.claimed && !(await hasClaimThatStands(turn.tx, unit.id)))
    await sendEvent(turn, unit.id, { type: "RETURNED" })
  await noteOwner(turn, unit, seen)
}

async function hasClaimThatStands(queries: Queries, unitId: string): Promise<boolean> {
  const standing = await queries
    .select({ id: claims.id })
    .from(claims)
    .where(and(eq(claims.unit_id, unitId), eq(claims.status, "claimed")))
    .limit(1)
  return standing.length > 0
}

type FollowedUnit = Pick<UnitRow, "id" | "claimed" | "owner" | "owner_block">

const unitOfToken = query((db, { collection_id, serial }: Given<Token>) =>
  db
    .select({ id: units.id, claimed: units.claimed, owner: units.owner, owner_block: units.owner_block })
    .from(units)
    .where(and(eq(units.collection_id, collection_id), eq(units.serial, serial))),
)

type Token = { collection_id: string; serial: number }

/**
 * Records the owner of a serial that no unit has yet, as after a restored back-up. Custody is recorded, too, so that
 * the owner is asked for again if its block is replaced. `told_by`: the block whose result no longer counts.
 */
async function noteFoundOwner(
  { tx, at }: Turn,
  token: Token & { address: Address },
  seen: SeenOwner,
  told_by: number | null = null,
): Promise<void> {
  const { collection_id, address, serial } = token
  const [known] = await foundOwnerOf(tx, { collection_id, serial })
  if (isOutdated(seen, { owner_block: unlessGone(known?.block_number, told_by) })) return
  const found = { owner: seen.owner ?? address, block_number: seen.block_number, found_at: at }
  await tx
    .insert(foundOwners)
    .values({ collection_id, serial, ...found })
    .onConflictDoUpdate({ target: [foundOwners.collection_id, foundOwners.serial], set: found })
}

const foundOwnerOf = query((db, { collection_id, serial }: Given<Token>) =>
  db
    .select({ block_number: foundOwners.block_number })
    .from(foundOwners)
    .where(and(eq(foundOwners.collection_id, collection_id), eq(foundOwners.serial, serial))),
)

/**
 * Asks for the owners that were read from blocks above `safe`, at the block `asked`, after a reorganization: no log reports
 * a move that was undone. Throws `ReadByAnother` and `ChainUnreachable`.
 */
export async function askOwnersAnew(
  context: Context,
  chain: ConnectedChain,
  cursor: Cursor,
  { safe, asked }: { safe: bigint; asked: Header },
): Promise<void> {
  const doubtful = await doubtfulTokens(context.db.read, chain.chain_id, safe)
  for (const some of partsOf(doubtful, atOnce)) {
    const owners = await Promise.all(
      some.map(({ address, serial }) => ownerAt(chain, address, serial, asked)),
    )
    await inTurn(context, null, async (turn) => {
      await holdCursor(turn, chain, cursor, [...readUpTo, ...askedBy], safe)
      for (const [index, { told_by, ...token }] of some.entries()) {
        const [unit] = await unitOfToken(turn.tx, token)
        const seen = { owner: owners[index] ?? null, block_number: Number(asked.number) }
        const owner_block = unlessGone(unit?.owner_block, told_by)
        if (unit) await noteSeenOwner(turn, { ...unit, owner_block }, seen)
        else await noteFoundOwner(turn, token, seen, told_by)
      }
    })
  }
}

/**
 * Returns the block, or null if it is the replaced one: whatever its height, what it reported
 * yields to anything read since.
 */
function unlessGone(block: number | null | undefined, gone: number | null): number | null {
  return block == null || block === gone ? null : block
}

type DoubtfulToken = Token & { address: Address; told_by: number }

/** Returns tokens whose owners were read from blocks above `safe`, whether or not a unit has their serial. */
async function doubtfulTokens(queries: Queries, chainId: number, safe: bigint): Promise<DoubtfulToken[]> {
  const token = { collection_id: collections.id, address: collections.address }
  const isOnChain = eq(collections.chain_id, chainId)
  const ofUnits = await queries
    .select({ ...token, serial: units.serial, told_by: units.owner_block })
    .from(units)
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .where(and(gt(units.owner_block, Number(safe)), isOnChain))
  const { collection_id, serial, block_number } = foundOwners
  const found = await queries
    .select({ ...token, serial, told_by: block_number })
    .from(foundOwners)
    .innerJoin(collections, eq(collections.id, collection_id))
    .leftJoin(units, and(eq(units.collection_id, collection_id), eq(units.serial, serial)))
    .where(and(gt(block_number, Number(safe)), isOnChain, isNull(units.id)))
  return [...ofUnits, ...found] as DoubtfulToken[]
}

const atOnce = 20

/**
 * Reads a token's owner; null in custody, and while a reorganization has undone the issuance, or the deployment of the
 * contract. Throws `ChainUnreachable`.
 */
export async function ownerAt(
  chain: ConnectedChain,
  address: Address,
  serial: number,
  block: Header,
): Promise<string | null> {
  const token = { address, abi: collectionAbi, functionName: "ownerOf", args: [BigInt(serial)] } as const
  try {
    const read = (place: BlockPlace) => chain.rpc.readContract({ ...token, ...place })
    const owner = await unlessReverted(() => stateAt(chain.rpc, block, read), null)
    return owner && ownerIn(address, owner)
  } catch (error) {
    // If there is no contract, reading the token looks as if the provider were behind.
    if (error instanceof ChainUnreachable && (await hasNoContract(chain, address, block))) return null
    throw error
  }
}

function lower(address: string): string {
  return address.toLowerCase()
}
