import { and, asc, eq, isNotNull, isNull } from "drizzle-orm"
import { chainCursors } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { collections } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { least, most } from "../../src/engine/chain/extremes.ts"
import { surelyHeld } from "../../src/engine/chain/headers.ts"
import { lowestBlock } from "../../src/engine/chain/logs.ts"
import { requireOwnChain } from "../../src/engine/chain/own-chain.ts"
import type { Context } from "../../src/platform/context.ts"
import { isNewestMarkThere, markStretch, newestMark } from "./chain-marks.ts"

/** How far any worker has read a chain; null if none has. */
export type Cursor = typeof chainCursors.$inferSelect | null

/** How far a chain was read. `is_lost`: blocks above that are no longer part of it. */
type LastRead = { block: bigint; is_lost: boolean }

/**
 * Returns the last block that was read and is still part of the chain; if it was replaced, the newest mark that is, but
 * none at or above a replaced block at which owners were asked for. For a chain that was never read, returns the last block before its oldest collection.
 */
export async function lastRead(
  { db, log }: Context,
  chain: ConnectedChain,
  cursor: Cursor,
  deepest: bigint,
): Promise<LastRead> {
  if (!cursor) return { block: await beforeCollections(db.read, chain, deepest), is_lost: false }
  const { owners_block_number, owners_block_hash } = cursor
  // An earlier release, which did not follow owners, has read this far; its last results may be just below.
  if (owners_block_number === null)
    return {
      block: most(BigInt(cursor.block_number) - BigInt(chain.config.finality_depth), -1n),
      is_lost: false,
    }
  const read = BigInt(owners_block_number)
  if (read <= deepest) {
    const block = await chain.headers.at(read)
    if (block.hash === owners_block_hash)
      return await readSinceAsked(db.read, chain, cursor, { read, deepest })
  }
  if (read > deepest && (await isBehind(db.read, chain, read, deepest)))
    return { block: deepest, is_lost: false }
  // Another chain at the same URL has none of the blocks, but has not replaced any.
  await requireOwnChain(chain)
  const mark = await newestMark(db.read, chain, least(read, deepest))
  const unlost = mark ?? (await beforeCollections(db.read, chain, deepest))
  const gone = await goneAsked(chain, cursor, { read, deepest })
  const block = gone === null ? unlost : least(unlost, gone - 1n)
  log.warn(
    { chain_id: chain.chain_id, from_block: Number(block) },
    "blocks that were already read have been replaced; the chain is read again from an earlier block",
  )
  return { block, is_lost: true }
}

/**
 * Returns whether the provider is merely behind. However far that is, it is no sign of a reorganization: a provider
 * that synchronizes again, or from an older copy, has the older blocks, and the others will follow.
 */
async function isBehind(
  queries: Queries,
  chain: ConnectedChain,
  read: bigint,
  deepest: bigint,
): Promise<boolean> {
  const isFar = read - deepest >= surelyHeld(chain.config)
  if (isFar && !(await isNewestMarkThere(queries, chain, deepest))) return false
  // Ranks the providers to find out which one lags: without other requests to this chain, nothing else does.
  chain.providers.rankWhenDue()
  return true
}

/**
 * Returns how far the chain was read. If the block at which owners were last asked for was
 * replaced, those owners are lost.
 */
async function readSinceAsked(
  queries: Queries,
  chain: ConnectedChain,
  cursor: NonNullable<Cursor>,
  { read, deepest }: { read: bigint; deepest: bigint },
): Promise<LastRead> {
  const gone = await goneAsked(chain, cursor, { read, deepest })
  if (gone === null) return { block: read, is_lost: false }
  if (gone > deepest && (await isBehind(queries, chain, gone, deepest)))
    return { block: read, is_lost: false }
  return { block: least(read, gone - 1n), is_lost: true }
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
  return (await isAskedThere(chain, cursor, deepest)) ? null : asked
}

/** Returns whether the block at which owners were last asked for is part of the chain; true if they never were. */
async function isAskedThere({ headers }: ConnectedChain, cursor: Cursor, deepest: bigint): Promise<boolean> {
  const number = cursor?.asked_block_number ?? null
  if (number === null) return true
  return number <= deepest && (await headers.at(BigInt(number))).hash === cursor?.asked_block_hash
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

/**
 * Returns whether owners were last asked for at a later block of the chain that has this one, as by another worker.
 */
export async function isAskedLater(
  chain: ConnectedChain,
  cursor: Cursor,
  { number, hash }: Place,
): Promise<boolean> {
  if (BigInt(cursor?.asked_block_number ?? -1) <= number) return false
  const { number: newest } = await chain.headers.follow()
  return (await isAskedThere(chain, cursor, newest)) && (await chain.headers.at(number)).hash === hash
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
 * follows next, owners are asked for again before that. `asked`: the block at which they are about to be; null to keep
 * the stored one. Returns the new cursor.
 */
export async function noteLost(
  turn: Turn,
  chain: ConnectedChain,
  safe: bigint,
  asked: Place | null,
): Promise<Cursor> {
  // A worker of the release before asks for this block: there is none before the first.
  const lost = { owners_block_number: Number(most(safe, 0n)), owners_block_hash: null }
  return await changeCursor(turn, chain, { ...lost, ...(asked && askedAt(asked)) })
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
