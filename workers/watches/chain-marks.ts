import { and, desc, eq, gt, lt, lte, or } from "drizzle-orm"
import { chainMarks } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import type { Turn } from "../../src/db/turn.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"

/** Blocks that were read: after `from` up to `number`, which has this hash. */
type Stretch = { from: bigint; number: bigint; hash: string }

/**
 * Returns the newest mark at or below `highest` that is still part of the chain; null if there is
 * none. Throws `ChainUnreachable`.
 */
export async function newestMark(
  queries: Queries,
  { chain_id, headers }: ConnectedChain,
  highest: bigint,
): Promise<{ number: bigint; hash: string } | null> {
  for (const { block_number, block_hash } of await marksUpTo(queries, {
    chain_id,
    highest: Number(highest),
  })) {
    const number = BigInt(block_number)
    const { hash } = await headers.at(number)
    if (hash === block_hash) return { number, hash }
  }
  return null
}

/**
 * Returns whether the newest mark at or below a block is still part of the chain; true if there is
 * none. Throws `ChainUnreachable`.
 */
export async function isNewestMarkThere(
  queries: Queries,
  { chain_id, headers }: ConnectedChain,
  highest: bigint,
): Promise<boolean> {
  const [newest] = await marksUpTo(queries, { chain_id, highest: Number(highest) })
  return !newest || (await headers.at(BigInt(newest.block_number))).hash === newest.block_hash
}

/**
 * Marks the end of a stretch that passes a multiple of the finality depth. Every second multiple is kept twice as long,
 * every fourth four times, and so on: however far back a fork begins, there is a mark not much further back.
 */
export async function markStretch(
  { tx }: Turn,
  { chain_id, config }: ConnectedChain,
  { from, number, hash }: Stretch,
): Promise<void> {
  const at = Number(number)
  await dropMarks(tx, { chain_id, number: at, from: Number(from) })
  const passed = highestPassed(Number(from), at, config.finality_depth)
  if (passed === 0) return
  await addMark(tx, { chain_id, number: at, hash, kept_until: at + 4 * passed })
}

/** Returns the largest `unit * 2 ** n` that has a multiple above `from` and not above `to`; 0 if none has. */
function highestPassed(from: number, to: number, unit: number): number {
  const differing = Math.floor(Math.max(from, 0) / unit) ^ Math.floor(to / unit)
  return differing === 0 ? 0 : unit * 2 ** (31 - Math.clz32(differing))
}

const marksUpTo = query((db, { chain_id, highest }: Given<{ chain_id: number; highest: number }>) =>
  db
    .select({ block_number: chainMarks.block_number, block_hash: chainMarks.block_hash })
    .from(chainMarks)
    .where(and(eq(chainMarks.chain_id, chain_id), lte(chainMarks.block_number, highest)))
    .orderBy(desc(chainMarks.block_number)),
)

/** Deletes marks that are too old, and marks of blocks that are read again. */
const dropMarks = query(
  (db, { chain_id, number, from }: Given<{ chain_id: number; number: number; from: number }>) =>
    db
      .delete(chainMarks)
      .where(
        and(
          eq(chainMarks.chain_id, chain_id),
          or(gt(chainMarks.block_number, from), lt(chainMarks.kept_until, number)),
        ),
      ),
)

type Mark = { chain_id: number; number: number; hash: string; kept_until: number }

const addMark = query((db, { chain_id, number, hash, kept_until }: Given<Mark>) =>
  db.insert(chainMarks).values({ chain_id, block_number: number, block_hash: hash, kept_until }),
)
