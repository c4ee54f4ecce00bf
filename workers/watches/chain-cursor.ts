import { and, asc, eq, isNotNull, isNull } from "drizzle-orm"
import { chainCursors } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { collections } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { least, most } from "../../src/engine/chain/extremes.ts"
import { type Header, mostBehind, surelyHeld } from "../../src/engine/chain/headers.ts"
import { lowestBlock } from "../../src/engine/chain/logs.ts"
import { requireOwnChain } from "../../src/engine/chain/own-chain.ts"
import type { Context } from "../../src/platform/context.ts"
import { isNewestMarkThere, markStretch, newestMark } from "./chain-marks.ts"

/** How far any worker has read a chain; null if none has. */
export type Cursor = typeof chainCursors.$inferSelect | null

/** The block up to which a chain was read; its hash is null if unknown. `is_lost`: those above it are no longer part of it. */
export type LastRead = { number: bigint; hash: string | null; is_lost: boolean }

/**
 * Returns the last block that was read and is still part of the chain; if it was replaced, the newest mark that is. For
 * a chain that was never read, returns the last block before its oldest collection. Returns null while the provider
 * lacks the last block that was read, or the one at which owners were asked for, because it is behind.
 */
export async function lastRead(
  { db, log }: Context,
  chain: ConnectedChain,
  cursor: Cursor,
  deepest: bigint,
): Promise<LastRead | null> {
  if (!cursor) return { number: await beforeCollections(db.read, chain, deepest), hash: null, is_lost: false }
  const { owners_block_number, owners_block_hash } = cursor
  // An earlier release, which did not follow owners, has read this far; its last results may be just below.
  if (owners_block_number === null)
    return {
      number: most(BigInt(cursor.block_number) - BigInt(chain.config.finality_depth), -1n),
      hash: null,
      is_lost: false,
    }
  const read = BigInt(owners_block_number)
  const newest = most(read, BigInt(cursor.asked_block_number ?? -1))
  if (newest > deepest && (await isBehind(db.read, chain, newest, deepest))) return null
  const isThere = read <= deepest && (await chain.headers.at(read)).hash === owners_block_hash
  const gone = await goneAsked(chain, cursor, { read, deepest })
  if (isThere && (gone === null || gone > read))
    return { number: read, hash: owners_block_hash, is_lost: gone !== null }
  // Another chain at the same URL has none of the blocks, but has not replaced any.
  await requireOwnChain(chain)
  const highest = gone === null ? least(read, deepest) : least(gone - 1n, least(read, deepest))
  const mark = await newestMark(db.read, chain, highest)
  const number = mark?.number ?? (await beforeCollections(db.read, chain, deepest))
  log.warn(
    { chain_id: chain.chain_id, from_block: Number(number) },
    "blocks that were already read have been replaced; the chain is read again from an earlier block",
  )
  return { number, hash: mark?.hash ?? null, is_lost: true }
}

/**
 * Returns whether the provider is merely behind. However far that is, it is no sign of a reorganization: a provider
 * that synchronizes again, or from an older copy, has the older blocks, and the others will follow.
 */
async function isBehind(
  queries: Queries,
  chain: ConnectedChain,
  newest: bigint,
  deepest: bigint,
): Promise<boolean> {
  const isFar = newest - deepest >= surelyHeld(chain.config)
  if (isFar && !(await isNewestMarkThere(queries, chain, deepest))) return false
  // Ranks the providers to find out which one lags: without other requests to this chain, nothing else does.
  chain.providers.rankWhenDue()
  return true
}

/**
 * Returns the block at which owners were last asked for if it is no longer part of the chain; null if it is, if they
 * never were, or if the chain was read so far since that the block is not replaced any more.
 */
async function goneAsked(
  chain: ConnectedChain,
  cursor: NonNullable<Cursor>,
  { read, deepest }: { read: bigint; deepest: bigint },
): Promise<bigint | null> {
  if (cursor.asked_block_number === null) return null
  const asked = BigInt(cursor.asked_block_number)
  if (read >= asked + BigInt(chain.config.finality_depth)) return null
  return (await askedBlock(chain, cursor, deepest)) ? null : asked
}

/**
 * Returns the block at which owners were last asked for; null if they never were, or if it is not part of the chain up to
 * `deepest`.
 */
async function askedBlock(
  { headers }: ConnectedChain,
  cursor: Cursor,
  deepest: bigint,
): Promise<Header | null> {
  const number = cursor?.asked_block_number ?? null
  if (number === null || number > deepest) return null
  const block = await headers.at(BigInt(number))
  return block.hash === cursor?.asked_block_hash ? block : null
}

/**
 * Returns the block at which to ask for the owners from lost blocks: as long as it is there and not old, the one for
 * which that is noted, so that workers side by side ask at the same block; otherwise `deepest`.
 */
export async function blockToAskAt(chain: ConnectedChain, cursor: Cursor, deepest: Header): Promise<Header> {
  if (cursor?.owners_block_hash !== null) return deepest
  const asked = await askedBlock(chain, cursor, deepest.number)
  const isOld = asked && deepest.number - asked.number > mostBehind(chain.config)
  return asked && !isOld ? asked : deepest
}

/**
 * Returns whether owners were asked for at another block than `deepest` that is still to be read: those at a second
 * one would outlive the first.
 */
export function isAskedAhead(cursor: Cursor, { hash }: Place): boolean {
  if (!cursor || cursor.asked_block_hash === hash) return false
  return (cursor.asked_block_number ?? -1) > (cursor.owners_block_number ?? -1)
}

/**
 * Another worker has read the chain in the meantime, so what was found may be from blocks that are gone. `unread`: the
 * block above which to read again; null if nothing found would be missed.
 */
export class ReadByAnother extends Error {
  constructor(readonly unread: bigint | null) {
    super("another worker has read the chain meanwhile")
  }
}

/** The columns for how far a chain was read. */
export const readUpTo = ["owners_block_number", "owners_block_hash"] as const

/** The columns for the block at which owners were last asked for, or were found before it was read. */
export const askedBy = ["asked_block_number", "asked_block_hash"] as const

/** The columns of a cursor that must be unchanged. */
type Held = readonly (typeof readUpTo | typeof askedBy)[number][]

/**
 * Throws `ReadByAnother` unless these columns of a chain's cursor are unchanged, and locks the cursor until
 * the database transaction ends.
 */
export async function holdCursor(
  { tx }: Turn,
  { chain_id }: ConnectedChain,
  cursor: Cursor,
  what: Held,
  unread: bigint | null,
): Promise<void> {
  const [now] = await takeCursor(tx, { chain_id })
  if (what.some((each) => now?.[each] !== cursor?.[each])) throw new ReadByAnother(unread)
}

/** Reads the cursor of a chain. */
export async function readCursor(queries: Queries, chainId: number): Promise<Cursor> {
  const [cursor] = await cursorOf(queries, { chain_id: chainId })
  return cursor ?? null
}

/**
 * Stores the block at which owners are about to be asked for, or were found before it was read. Returns the new cursor.
 */
export async function noteOwnersAsked(turn: Turn, chain: ConnectedChain, block: Place): Promise<Cursor> {
  return await changeCursor(turn, chain, askedAt(block))
}

/**
 * Stores that blocks above `safe` were lost, until the chain is read from there again: whatever fork its provider
 * follows next, owners are asked for again before that. `asked`: the block at which they are about to be. Returns the
 * new cursor.
 */
export async function noteLost(
  turn: Turn,
  chain: ConnectedChain,
  safe: bigint,
  asked: Place,
): Promise<Cursor> {
  // A worker of the release before asks for this block: there is none before the first.
  const lost = { owners_block_number: Number(most(safe, 0n)), owners_block_hash: null }
  return await changeCursor(turn, chain, { ...lost, ...askedAt(asked) })
}

type Place = { number: bigint; hash: string }

function askedAt({ number, hash }: Place): Partial<NonNullable<Cursor>> {
  return { asked_block_number: Number(number), asked_block_hash: hash }
}

async function changeCursor(
  { tx }: Turn,
  { chain_id }: ConnectedChain,
  change: Partial<NonNullable<Cursor>>,
): Promise<Cursor> {
  const [changed] = await tx
    .update(chainCursors)
    .set(change)
    .where(eq(chainCursors.chain_id, chain_id))
    .returning()
  return changed ?? null
}

/**
 * Stores that a chain was read from after block `from` up to another block, in the database transaction that stores
 * what was found there. Returns the new cursor.
 */
export async function moveCursor(
  turn: Turn,
  chain: ConnectedChain,
  from: bigint,
  { number, hash }: Place,
): Promise<Cursor> {
  const position = { chain_id: chain.chain_id, number: Number(number), hash, at: turn.at }
  const [moved] = await setCursor(turn.tx, position)
  await markStretch(turn, chain, { from, number, hash })
  return moved ?? null
}

/**
 * Returns the last block before anything can have happened to a collection's tokens. Needed if no read has ever
 * succeeded, or after restoring a back-up from that time.
 */
async function beforeCollections(queries: Queries, chain: ConnectedChain, deepest: bigint): Promise<bigint> {
  const { chain_id } = chain
  const [deployed] = await firstDeployed(queries, { chain_id })
  const [promised] = await firstPromised(queries, { chain_id })
  const before = [deepest - 1n]
  if (deployed) before.push(lowestBlock(chain, deployed) - 1n)
  if (promised) {
    const since = Math.floor(promised.created_at.getTime() / 1_000) - mostClockSeconds
    before.push(await lastBefore(chain, BigInt(since), deepest))
  }
  return before.reduce(least)
}

/** How far the clocks of a chain and of a collection's creator may differ. */
const mostClockSeconds = 600

/** Returns the last block below a height that is older than a time in Unix seconds; -1 if there is none. */
async function lastBefore({ headers }: ConnectedChain, since: bigint, height: bigint): Promise<bigint> {
  const isOlder = async (block: bigint) => block < 0n || (await headers.at(block)).timestamp < since
  // Doubling steps first, so that no block much older than needed is read.
  let step = 1n
  while (!(await isOlder(height - step))) step *= 2n
  let [older, newer] = [height - step, height - step / 2n]
  while (newer - older > 1n) {
    const middle = (older + newer) / 2n
    if (await isOlder(middle)) older = middle
    else newer = middle
  }
  return most(older, -1n)
}

const firstDeployed = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db
    .select({ deployed_block: collections.deployed_block })
    .from(collections)
    .where(and(eq(collections.chain_id, chain_id), isNotNull(collections.deployed_block)))
    .orderBy(asc(collections.deployed_block))
    .limit(1),
)

/** Selects the first collection whose deployment is not known here, although the chain may have it, and tokens. */
const firstPromised = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db
    .select({ created_at: collections.created_at })
    .from(collections)
    .where(and(eq(collections.chain_id, chain_id), isNull(collections.deployed_block)))
    .orderBy(asc(collections.created_at))
    .limit(1),
)

const cursorOf = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db.select().from(chainCursors).where(eq(chainCursors.chain_id, chain_id)),
)

/**
 * Selects the cursor by an update that changes nothing, to lock the row: Postgres does
 * not lock rows that are only read.
 */
const takeCursor = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db.update(chainCursors).set({ chain_id }).where(eq(chainCursors.chain_id, chain_id)).returning(),
)

type Position = { chain_id: number; number: number; hash: string; at: Date }

const setCursor = query((db, { chain_id, number, hash, at }: Given<Position>) => {
  const position = {
    block_number: number,
    block_hash: hash,
    owners_block_number: number,
    owners_block_hash: hash,
    updated_at: at,
  }
  return db
    .insert(chainCursors)
    .values({ chain_id, ...position })
    .onConflictDoUpdate({ target: chainCursors.chain_id, set: position })
    .returning()
})
