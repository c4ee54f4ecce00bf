import { and, asc, eq, exists, gte, inArray, isNotNull, isNull, max, ne, type SQL } from "drizzle-orm"
import type { Address, Hex } from "viem"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import {
  type AttemptRow,
  type EffectRow,
  effects,
  type TransactionRow,
  transactionAttempts,
  transactions,
} from "../../db/schema.ts"
import { openTransactionStatuses } from "../../db/statuses.ts"
import type { Turn } from "../../db/turn.ts"
import { newId } from "../../platform/ids.ts"
import type { Fees } from "../chain/fees.ts"
import type { SendVerdict } from "../chain/send-errors.ts"
import { type Effect, effectsIn, useUpNonce } from "../jobs/job.ts"
import { type AttemptKind, byNumber, dearest, feeColumns, kindColumns } from "./attempts.ts"
import { assertLease, type Lease, takeNonce } from "./leases.ts"

/** A transaction with every attempt ever signed for its nonce, in order of signing. */
export type WatchedTransaction = TransactionRow & { attempts: AttemptRow[] }

type NewTransaction = {
  chain_id: number
  kind: string
  to: Address
  data: Hex
  gas: bigint
  fees: Fees
  /** The open effects that this transaction performs, in order. */
  effect_ids: string[]
}

/**
 * Freezes a transaction's content together with the lane's next nonce, and binds the effects to it. Throws `LeaseLost`,
 * or an error if one of the effects is no longer open and unbound.
 */
export async function allocateTransaction(turn: Turn, lease: Lease, wanted: NewTransaction): Promise<string> {
  const { kind, chain_id, to, data: call } = wanted
  const content = { kind, chain_id, to, call, ...priceOf(wanted) }
  const id = await insertAllocated(turn, lease, await takeNonce(turn, lease), content)
  const bound = await bindEffects(turn.tx, { ids: wanted.effect_ids, transaction_id: id })
  if (bound.length !== wanted.effect_ids.length)
    throw new Error("an effect was closed or bound while its transaction was being planned")
  return id
}

const bindEffects = query((db, { ids, transaction_id }: Given<{ ids: string[]; transaction_id: string }>) =>
  db
    .update(effects)
    .set({ transaction_id })
    .where(and(inArray(effects.id, ids), eq(effects.status, "open"), isNull(effects.transaction_id)))
    .returning({ id: effects.id }),
)

/**
 * Allocates an empty transaction for a nonce that this lane never assigned, or in place of a transaction that lost its
 * nonce to someone else and whose effects have moved on; its older bytes are still watched. Throws `LeaseLost`.
 */
export async function allocateFiller(
  turn: Turn,
  lease: Lease,
  wanted: { nonce: number; chain_id: number; address: Address; gas: bigint; fees: Fees },
): Promise<void> {
  await assertLease(turn, lease)
  const { nonce, chain_id, address } = wanted
  const content = { kind: useUpNonce, chain_id, to: address, call: "0x", ...priceOf(wanted) }
  const set = { ...content, status: "allocated", cancel_requested_at: null, updated_at: turn.at } as const
  await turn.tx
    .insert(transactions)
    .values(allocated(turn, lease, nonce, content))
    .onConflictDoUpdate({ target: [transactions.lane_id, transactions.nonce], set })
}

type Content = Pick<
  TransactionRow,
  "kind" | "chain_id" | "to" | "call" | "gas" | "max_fee_per_gas" | "max_priority_fee_per_gas"
>

/** Stores what is to be signed for a nonce. Returns its id. */
async function insertAllocated(turn: Turn, lease: Lease, nonce: number, content: Content): Promise<string> {
  const row = allocated(turn, lease, nonce, content)
  await insertTransaction(turn.tx, row)
  return row.id
}

const insertTransaction = query((db, row: Given<ReturnType<typeof allocated>>) =>
  db.insert(transactions).values(row),
)

function allocated({ at }: Turn, { lane_id }: Lease, nonce: number, content: Content) {
  const status = "allocated" as const
  return { ...content, id: newId(), lane_id, nonce, status, created_at: at, updated_at: at }
}

function priceOf({ gas, fees }: Pick<NewTransaction, "gas" | "fees">) {
  return { gas: Number(gas), ...feeColumns(fees) }
}

/** Stores the signed bytes and their hash, before every broadcast. Returns the stored row, which is what is sent. */
export async function storeAttempt(
  turn: Turn,
  lease: Lease,
  transaction: WatchedTransaction,
  attempt: { hash: Hex; raw: Hex; kind: AttemptKind; fees: Fees },
): Promise<AttemptRow> {
  await assertLease(turn, lease)
  const { hash, raw, kind, fees } = attempt
  await insertAttempt(turn.tx, {
    hash,
    transaction_id: transaction.id,
    ...kindColumns(kind),
    number: transaction.attempts.length + 1,
    raw,
    ...feeColumns(fees),
    send_count: 0,
    created_at: turn.at,
  })
  await noteSigned(turn.tx, { id: transaction.id, updated_at: turn.at })
  const [stored] = await attemptOfHash(turn.tx, { hash })
  if (!stored) throw new Error(`attempt ${hash} was stored but cannot be found`)
  return stored
}

const insertAttempt = query((db, row: Given<typeof transactionAttempts.$inferInsert>) =>
  db.insert(transactionAttempts).values(row).onConflictDoNothing(),
)

const noteSigned = query((db, { id, updated_at }: Given<{ id: string; updated_at: Date }>) =>
  db
    .update(transactions)
    .set({ status: "signed", updated_at })
    .where(and(eq(transactions.id, id), eq(transactions.status, "allocated"))),
)

const attemptOfHash = query((db, { hash }: Given<{ hash: string }>) =>
  db.select().from(transactionAttempts).where(eq(transactionAttempts.hash, hash)),
)

/** Returns the transactions of a lane whose results are not known yet, by nonce, with their attempts. */
export async function openTransactions(queries: Queries, laneId: string): Promise<WatchedTransaction[]> {
  return await withAttempts(queries, await openOfLane(queries, { lane_id: laneId }))
}

const openOfLane = query((db, { lane_id }: Given<{ lane_id: string }>) =>
  db
    .select()
    .from(transactions)
    .where(and(isWatched(lane_id), inArray(transactions.status, openTransactionStatuses)))
    .orderBy(asc(transactions.nonce)),
)

/** Phrased like the index `transactions_watched`; otherwise SQLite would read everything that a lane has ever sent. */
function isWatched(laneId: SQL) {
  return and(eq(transactions.lane_id, laneId), ne(transactions.status, "final"))
}

/** Where a transaction was when its results were applied. */
export type SettledTransaction = Pick<TransactionRow, "id" | "nonce" | "block_number" | "block_hash">

/** Returns the transactions of a lane whose results were applied and that are not final, by nonce. */
export async function settledTransactions(queries: Queries, laneId: string): Promise<SettledTransaction[]> {
  return await settledOfLane(queries, { lane_id: laneId })
}

const settledOfLane = query((db, { lane_id }: Given<{ lane_id: string }>) => {
  const { id, nonce, block_number, block_hash } = transactions
  return db
    .select({ id, nonce, block_number, block_hash })
    .from(transactions)
    .where(and(isWatched(lane_id), inArray(transactions.status, ["confirmed", "reverted"])))
    .orderBy(asc(nonce))
})

/** Stops watching transactions by making them final. Throws `LeaseLost`. */
export async function finalizeTransactions(turn: Turn, lease: Lease, ids: string[]): Promise<void> {
  await assertLease(turn, lease)
  await noteFinal(turn.tx, { ids, updated_at: turn.at })
}

const noteFinal = query((db, { ids, updated_at }: Given<{ ids: string[]; updated_at: Date }>) =>
  db.update(transactions).set({ status: "final", updated_at }).where(inArray(transactions.id, ids)),
)

/** Returns a transaction with its attempts. Throws if there is none: callers have the id from another row. */
export async function findTransaction(queries: Queries, id: string): Promise<WatchedTransaction> {
  const [transaction] = await withAttempts(queries, await transactionOfId(queries, { id }))
  if (!transaction) throw new Error(`there is no transaction ${id}`)
  return transaction
}

const transactionOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(transactions).where(eq(transactions.id, id)),
)

async function withAttempts(queries: Queries, rows: TransactionRow[]): Promise<WatchedTransaction[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const attempts = await attemptsOf(queries, { transaction_ids: ids })
  return rows.map((row) => ({
    ...row,
    attempts: attempts.filter(({ transaction_id }) => transaction_id === row.id).sort(byNumber),
  }))
}

const attemptsOf = query((db, { transaction_ids }: Given<{ transaction_ids: string[] }>) =>
  db.select().from(transactionAttempts).where(inArray(transactionAttempts.transaction_id, transaction_ids)),
)

/** Returns whether a transaction is not mined yet and so takes up room in the pool. */
export function isInFlight({ status }: TransactionRow): boolean {
  return status === "allocated" || status === "signed" || status === "sent"
}

/** Returns the most that transactions may still cost, by the most expensive attempt of each. */
export function reservedWei(inFlight: WatchedTransaction[]): bigint {
  return inFlight.reduce((sum, { gas, max_fee_per_gas, attempts }) => {
    const highest = dearest(attempts)?.max_fee_per_gas ?? max_fee_per_gas
    return sum + BigInt(gas) * BigInt(highest)
  }, 0n)
}

/** Returns the effects of a transaction, in the order in which they were requested. */
export async function effectsOf(queries: Queries, transactionId: string): Promise<Effect[]> {
  return effectsIn(await effectsOfTransaction(queries, { transaction_id: transactionId }))
}

const effectsOfTransaction = query((db, { transaction_id }: Given<{ transaction_id: string }>) =>
  db.select().from(effects).where(eq(effects.transaction_id, transaction_id)).orderBy(asc(effects.id)),
)

/** Unbinds an effect, so that it waits for another transaction. */
export async function releaseEffect(
  turn: Turn,
  { id, attempts }: Pick<EffectRow, "id" | "attempts">,
): Promise<void> {
  await turn.tx
    .update(effects)
    .set({ transaction_id: null, attempts: attempts + 1, due_at: turn.at })
    .where(and(eq(effects.id, id), eq(effects.status, "open")))
}

/** Updates a transaction's row. Throws `LeaseLost`. */
export async function updateTransaction(
  turn: Turn,
  lease: Lease,
  transactionId: string,
  change: Partial<TransactionRow>,
): Promise<void> {
  await assertLease(turn, lease)
  await changeTransaction(turn.tx, { ...change, id: transactionId, updated_at: turn.at })
}

const changeTransaction = query(
  (db, { id, ...change }: Given<Partial<TransactionRow> & Pick<TransactionRow, "id" | "updated_at">>) =>
    db.update(transactions).set(change).where(eq(transactions.id, id)),
)

/**
 * Moves a transaction's content and effects to the lane's next nonce. Should the old bytes ever come back,
 * the contracts make them harmless.
 */
export async function displaceTransaction(
  turn: Turn,
  lease: Lease,
  transaction: TransactionRow,
  old: Partial<TransactionRow>,
): Promise<void> {
  const { kind, chain_id, to, call, gas, max_fee_per_gas, max_priority_fee_per_gas } = transaction
  const content = { kind, chain_id, to, call, gas, max_fee_per_gas, max_priority_fee_per_gas }
  const id = await insertAllocated(turn, lease, await takeNonce(turn, lease), content)
  await turn.tx.update(effects).set({ transaction_id: id }).where(eq(effects.transaction_id, transaction.id))
  await updateTransaction(turn, lease, transaction.id, old)
}

/** Returns final transactions from a nonce on: none, unless the chain lost what it never should. */
export async function finalFrom(queries: Queries, laneId: string, nonce: number): Promise<TransactionRow[]> {
  return await finalOfLane(queries, { lane_id: laneId, nonce })
}

const finalOfLane = query((db, { lane_id, nonce }: Given<{ lane_id: string; nonce: number }>) =>
  db
    .select()
    .from(transactions)
    .where(
      and(
        eq(transactions.lane_id, lane_id),
        eq(transactions.status, "final"),
        gte(transactions.nonce, nonce),
        isNotNull(transactions.hash),
      ),
    )
    .orderBy(asc(transactions.nonce)),
)

/** Returns the nonce after the highest one that a lane ever assigned; 0 if there is none. */
export async function nonceAfterLast(queries: Queries, laneId: string): Promise<number> {
  const [last] = await queries
    .select({ nonce: max(transactions.nonce) })
    .from(transactions)
    .where(eq(transactions.lane_id, laneId))
  return last?.nonce == null ? 0 : last.nonce + 1
}

/** Stores what the pools said about an attempt, and the block at which a pool first had it. */
export async function noteSend(
  turn: Turn,
  lease: Lease,
  attempt: AttemptRow,
  { outcome, said }: SendVerdict,
  head: number,
): Promise<void> {
  await assertLease(turn, lease)
  await changeAttempt(turn.tx, {
    hash: attempt.hash,
    first_sent_block: attempt.first_sent_block ?? (outcome === "known" ? head : null),
    send_count: attempt.send_count + 1,
    last_error: said,
    last_outcome: outcome,
  })
}

type Sent = Pick<AttemptRow, "hash" | "first_sent_block" | "send_count" | "last_error" | "last_outcome">

const changeAttempt = query((db, { hash, ...sent }: Given<Sent>) =>
  db.update(transactionAttempts).set(sent).where(eq(transactionAttempts.hash, hash)),
)

/** Returns whether an operator gave up a transaction's nonce. Results that were applied stand in spite of that. */
export function isGivenUp({ cancel_requested_at, status }: TransactionRow): boolean {
  return cancel_requested_at !== null && status !== "confirmed"
}

/** Returns whether the transaction's cancel is the one with this hash, so that its work is still to be done. */
export function isCancelled({ kind, attempts }: WatchedTransaction, hash: string): boolean {
  return kind !== useUpNonce && attempts.some((attempt) => attempt.hash === hash && attempt.is_cancel)
}

/**
 * Asks the lane to use up a transaction's nonce with an empty transaction; the chain decides which of the two is mined.
 * Returns null unless bytes were signed, no block has them, and an effect waits for the results.
 */
export async function requestCancel(turn: Turn, transactionId: string): Promise<TransactionRow | null> {
  const open = turn.tx
    .select({ id: effects.id })
    .from(effects)
    .where(and(eq(effects.transaction_id, transactionId), eq(effects.status, "open")))
  const [given] = await turn.tx
    .update(transactions)
    .set({ cancel_requested_at: turn.at, updated_at: turn.at })
    .where(
      and(eq(transactions.id, transactionId), inArray(transactions.status, ["signed", "sent"]), exists(open)),
    )
    .returning()
  return given ?? null
}
