import { and, asc, eq } from "drizzle-orm"
import type { Address } from "viem"
import type { WatchAuthorizationInput, WatchAuthorizationOutput } from "../../machines/authorization.ts"
import { type Given, query } from "../../src/db/query.ts"
import { effects, transfers } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { openEffectIn } from "../../src/engine/actors/rows.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import { someAtATime } from "../../src/engine/chain/answers.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { least } from "../../src/engine/chain/extremes.ts"
import { type Header, surelyHeld } from "../../src/engine/chain/headers.ts"
import { isAgreedOn } from "../../src/engine/chain/providers.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { noteSettled } from "../../src/engine/lanes/note-step.ts"
import type { Checkpoint } from "../../src/engine/lanes/step.ts"
import { maxDelayMilliseconds } from "../../src/engine/lanes/turns.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { chainQueue } from "../../src/platform/queues.ts"
import {
  type Asker,
  judgeAuthorization,
  type SeenInBlocks,
  type Verdict,
  type Watch,
} from "./authorization-outcome.ts"
import {
  askedBy,
  blockToAskAt,
  type Cursor,
  holdCursor,
  isAskedAhead,
  type LastRead,
  lastRead,
  moveCursor,
  noteLost,
  noteOwnersAsked,
  ReadByAnother,
  readCursor,
  readUpTo,
} from "./chain-cursor.ts"
import {
  askOwnersAnew,
  type Contracts,
  contractsOn,
  followMoves,
  type Move,
  ownerAt,
} from "./follow-owners.ts"
import { findLostOwners } from "./lost-owners.ts"
import { byToken, type Changes, changesOf, readOwnershipChanges, type Span } from "./ownership-changes.ts"
import { singleUse } from "./single-use.ts"
import { restateUse, type ToldUse, toldUses } from "./told-uses.ts"

/**
 * How many blocks that may still be replaced are read together: those of this many seconds,
 * but at least the number below.
 */
const secondsTogether = 2
const leastTogether = 4

/**
 * Runs one round of a chain: reads the blocks that have become deep enough, follows owners, and settles authorizations
 * that were used, expired or superseded, by contract, serial and digest, never by what a client reports. Records the
 * new transaction of a use that a deep reorganization moved. Workers run side by side: the slower one checks again what
 * it found. Returns "idle" if nothing is open and there was nothing to read.
 */
export async function watchAuthorizations(
  context: Context,
  chain: ConnectedChain,
  checkpoint: Checkpoint,
): Promise<"idle" | "at work"> {
  let unread: bigint | null = null
  for (let attempt = 1; ; attempt++)
    try {
      return await readOn(context, chain, checkpoint, unread)
    } catch (error) {
      if (!(error instanceof ReadByAnother)) throw error
      unread = error.unread
      if (unread !== null && attempt < mostAttempts) continue
      context.log.debug({ chain_id: chain.chain_id, attempt }, error.message)
      return "at work"
    }
}

/** No worker is overtaken more often: another one reads once per block. */
const mostAttempts = 4

/** `unread`: the block above which to read again; null if the cursor decides. */
async function readOn(
  context: Context,
  chain: ConnectedChain,
  checkpoint: Checkpoint,
  unread: bigint | null,
): Promise<"idle" | "at work"> {
  const { headers } = chain
  const [open] = await openEffectIn(context.db.read, { queue: chainQueue(chain.chain_id) })
  const isIdle = open === undefined
  const { number: head } = await (isIdle ? headers.followIdly() : headers.follow())
  const height = head - BigInt(chain.config.confirmation_depth) + 1n
  if (height < 0n) return "at work"
  let cursor = await readCursor(context.db.read, chain.chain_id)
  const read = await lastRead(context, chain, cursor, height)
  if (read === null) return isIdle ? "idle" : "at work"
  // After a loss, all is judged anew.
  const since = unread === null || read.is_lost ? read.number : least(read.number, unread)
  if (since === height) return isIdle ? "idle" : "at work"
  const deepest = await headers.at(height)
  let agreement: Promise<boolean> | undefined
  const isAgreed = () => {
    agreement ??= isAgreedOn(chain, deepest)
    return agreement
  }
  const asker = { context, chain, deepest, isAgreed }
  if (read.is_lost) cursor = await replaceLostOwners(asker, cursor, read.number)
  const watched = await openWatches(context, chain)
  const contracts = await contractsOn(context.db.read, chain.chain_id)
  // Without a contract, nothing earlier matters.
  const from = contracts.size === 0 ? height : since + 1n

  const round = { ...asker, checkpoint, contracts, highest: read.is_lost ? null : read }
  let first = from
  let before = first === read.number + 1n ? read.hash : null
  while (first <= height) {
    const is_doubtful = first === from && read.is_lost
    const span = { ...blocksFrom(first, chain, { head, height, highest: read.number }), before, is_doubtful }
    const reached = await readBlocks({ ...round, cursor }, watched, span)
    if (reached === null) continue
    first = span.last + 1n
    before = reached.hash
    cursor = reached.cursor
  }
  await findLostOwners(asker, cursor)
  return "at work"
}

/**
 * Returns the blocks to read next. Only blocks that every node has are read by range: a node that is behind leaves out
 * what it lacks. Other blocks that are read again are read in one piece up to the `highest`, which shows that they are
 * still the same.
 */
function blocksFrom(
  first: bigint,
  chain: ConnectedChain,
  { head, height, highest }: { head: bigint; height: bigint; highest: bigint },
): Omit<Span, "before" | "is_doubtful"> {
  const final = head - surelyHeld(chain.config) + 1n
  if (first <= final) {
    const last = least(first + chain.log_ranges.size() - 1n, final)
    return { first, last: least(last, height), is_final: true }
  }
  if (first <= highest) return { first, last: highest, is_final: false }
  const { block_time_seconds } = chain.config
  const together = BigInt(Math.max(Math.ceil(secondsTogether / block_time_seconds), leastTogether))
  return { first, last: least(first + together - 1n, height), is_final: false }
}

/** Asks again for the owners that were read from lost blocks above `safe`. Returns the new cursor. */
async function replaceLostOwners(
  { context, chain, deepest, isAgreed }: Asker,
  cursor: Cursor,
  safe: bigint,
): Promise<Cursor> {
  // Without agreement, owners would be asked for at a block that most of the network may not have.
  if (!(await isAgreed()))
    throw new ChainUnreachable(
      `not all providers of chain ${chain.chain_id} agree on block ${deepest.number}: owners are read again once they do, or once the wrong one is removed from CHAINS`,
    )
  const asked = await blockToAskAt(chain, cursor, deepest)
  const noted = await inTurn(context, null, async (turn) => {
    await holdCursor(turn, chain, cursor, [...readUpTo, ...askedBy], safe)
    return await noteLost(turn, chain, safe, asked)
  })
  await askOwnersAnew(context, chain, noted, { safe, asked })
  return noted
}

/** A round of one chain. */
type Round = Asker & {
  checkpoint: Checkpoint
  contracts: Contracts
  cursor: Cursor
  /** The highest block read before, where the cursor stays until it is passed; null if that block was lost. */
  highest: LastRead | null
}

/** Reads one span. Returns its last block's hash and the new cursor; null if it has more than providers return at once. */
async function readBlocks(
  round: Round,
  watched: Watch[],
  span: Span,
): Promise<{ hash: string; cursor: Cursor } | null> {
  const { context, checkpoint } = round
  const since = performance.now()
  const found = await findIn(round, watched, span)
  if (found === null) return null
  const { outcomes, notes } = found
  if (outcomes.length > 0) checkpoint("watch.read", "watchAuthorization")
  const { ends, moved } = await inTurn(context, null, (turn) => writeDown(turn, round, span, found))
  if (outcomes.length > 0) checkpoint("watch.settle", "watchAuthorization")
  for (const { watch, outcome } of ends) noteSettled(context, since, watch, outcome)
  for (const { watch, note } of notes) {
    tellNote(context, watch, note)
    Object.assign(watch, note)
  }
  const settled = new Set(outcomes.map(({ watch }) => watch))
  watched.splice(0, watched.length, ...watched.filter((watch) => !settled.has(watch)))
  return { hash: found.block.hash, cursor: moved }
}

/** What a span of blocks contains. */
type Found = {
  /** The last block of the span. */
  block: Header
  moves: Move[]
  outcomes: { watch: Watch; output: WatchAuthorizationOutput }[]
  notes: { watch: Watch; note: Note }[]
  restated: { id: string; transaction_hash: string }[]
  /** Whether moves are as of the deepest block, although blocks before it are still to be read. */
  is_ahead: boolean
}

/** Returns null if the blocks contain more than providers return at once. */
async function findIn(round: Round, watched: readonly Watch[], span: Span): Promise<Found | null> {
  const { context, chain, deepest, contracts, cursor, highest } = round
  const block = await chain.headers.at(span.last)
  const lastHash = (span.last === highest?.number ? highest.hash : null) ?? block.hash
  const addresses = [...contracts.values()].map(({ address }) => address)
  const all = await readOwnershipChanges(chain, addresses, span, lastHash)
  if (all === null) return null
  const changes = byToken(all)
  const used = all.flatMap(({ digest }) => digest ?? [])
  const told = await toldUses(context.db.read, chain, used)
  const { timestamp } = block
  const is_asked_ahead = isAskedAhead(cursor, deepest)
  const seen = { changes, timestamp, is_doubtful: span.is_doubtful, is_asked_ahead }
  const judged = await judgeAll(round, watched, seen)
  const ended = judged.flatMap(({ watch, verdict }) => (verdict.is === "ended" ? { watch, ...verdict } : []))
  const notes = judged.flatMap(({ watch, verdict }) => {
    const note = noteOf(watch, verdict, context.clock())
    return note ? { watch, note } : []
  })
  const searched = ended.flatMap(({ newest }) => newest ?? [])
  const is_ahead = searched.length > 0 && block.hash !== deepest.hash
  const moved = is_ahead ? await atDeepest(round, searched) : searched
  return {
    block,
    moves: [...all.flatMap(({ move }) => move ?? []), ...moved],
    outcomes: ended,
    notes,
    restated: usedAnew(told, changes),
    is_ahead,
  }
}

/** Moves the tokens to where they are at the deepest block. */
async function atDeepest({ chain, deepest }: Asker, moves: Move[]): Promise<Move[]> {
  return await someAtATime(moves, watchesAtOnce, async (move) => {
    const to = (await ownerAt(chain, move.address, Number(move.serial), deepest)) ?? move.address
    return { ...move, to: to as Address, block_number: deepest.number }
  })
}

/** Stores what was found. Returns how the authorizations ended, and the new cursor. Throws `ReadByAnother`. */
async function writeDown(
  turn: Turn,
  { chain, deepest, contracts, cursor, highest }: Round,
  { first, last }: Span,
  { block, moves, outcomes, notes, restated, is_ahead }: Found,
): Promise<{ ends: { watch: Watch; outcome: string }[]; moved: Cursor }> {
  const isFound = outcomes.length > 0 || moves.length > 0
  await holdCursor(turn, chain, cursor, [...readUpTo, ...askedBy], isFound ? first - 1n : null)
  const ends: { watch: Watch; outcome: string }[] = []
  for (const { watch, output: seen } of outcomes) {
    const output = await singleUse(turn.tx, watch.actor_id, seen)
    await settleEffect(turn, watch.effect_id, { output })
    ends.push({ watch, outcome: output.outcome })
  }
  for (const { watch, note } of notes) await noteAsked(turn.tx, { effect_id: watch.effect_id, ...note })
  for (const { id, transaction_hash } of restated) await restateUse(turn, id, transaction_hash)
  // After the results, so that what the blocks say wins.
  await followMoves(turn, contracts, moves)
  let moved = cursor
  const isNew = highest === null || last > highest.number
  if (isNew) moved = await moveCursor(turn, chain, first - 1n, block)
  // Only this shows later that a block with moves, which is still to be read, was replaced.
  if (is_ahead) moved = await noteOwnersAsked(turn, chain, deepest)
  return { ends, moved }
}

type Judged = { watch: Watch; verdict: Verdict }

/** Judges all; leaves out those without a verdict. */
async function judgeAll(asker: Asker, watched: readonly Watch[], seen: SeenInBlocks): Promise<Judged[]> {
  const judge = async (watch: Watch) => ({ watch, verdict: await judgeAuthorization(asker, watch, seen) })
  const judged = await someAtATime(watched, watchesAtOnce, judge)
  return judged.flatMap(({ watch, verdict }) => (verdict ? { watch, verdict } : []))
}

/** How many are judged at the same time, so as not to flood a provider. */
const watchesAtOnce = 20

/** Returns the reported uses that are in another transaction now. */
function usedAnew(told: readonly ToldUse[], changes: Changes) {
  return told.flatMap((use) => {
    const found = changesOf(changes, use).find(({ digest }) => digest === use.authorization_digest)
    if (!found || found.transaction_hash === use.transaction_hash) return []
    return [{ id: use.id, transaction_hash: found.transaction_hash }]
  })
}

type Note = Pick<Watch, "attempts" | "last_error" | "due_at">

/** Returns what the next round must know about an open authorization; null if nothing changed. */
function noteOf({ attempts, last_error, due_at }: Watch, verdict: Verdict, now: Date): Note | null {
  if (verdict.is === "ended") return null
  if (verdict.is === "open")
    return attempts > 0 && last_error === null ? null : { attempts: 1, last_error: null, due_at }
  const pause = Math.min(1_000 * 2 ** attempts, maxDelayMilliseconds)
  return { attempts: attempts + 1, last_error: verdict.because, due_at: new Date(now.getTime() + pause) }
}

const noteAsked = query(
  (db, { effect_id, attempts, last_error, due_at }: Given<Note & { effect_id: string }>) =>
    db
      .update(effects)
      .set({ attempts, last_error, due_at })
      .where(and(eq(effects.id, effect_id), eq(effects.status, "open"))),
)

function tellNote({ log }: Context, watch: Watch, note: Note): void {
  const { chain_id, contract_address, serial } = watch.input
  if (note.last_error !== null && note.last_error !== watch.last_error)
    log.warn({ chain_id, contract_address, serial }, note.last_error)
}

async function openWatches(context: Context, chain: ConnectedChain): Promise<Watch[]> {
  const rows = await openIn(context.db.read, { queue: chainQueue(chain.chain_id) })
  return rows.map((row) => ({ ...row, input: row.input as WatchAuthorizationInput }))
}

const openIn = query((db, { queue }: Given<{ queue: string }>) =>
  db
    .select({
      effect_id: effects.id,
      actor_id: effects.actor_id,
      request_id: effects.request_id,
      input: effects.input,
      attempts: effects.attempts,
      last_error: effects.last_error,
      due_at: effects.due_at,
      holder: transfers.sender,
    })
    .from(effects)
    .leftJoin(transfers, eq(transfers.id, effects.actor_id))
    .where(and(eq(effects.queue, queue), eq(effects.status, "open")))
    .orderBy(asc(effects.id)),
)
