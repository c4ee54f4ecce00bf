import { and, asc, eq, gt, inArray, isNull } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { collections, effects, type LaneRow, lanes, transactions } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { laneQueue } from "../../platform/queues.ts"
import type { ConnectedChain } from "../chain/chains.ts"
import { hasKeyOf, type Signer } from "../chain/signers.ts"
import { type Effect, effectsIn, jobFor } from "../jobs/job.ts"
import { inLane, type Lane } from "./held-lane.ts"
import { assertLease, type Lease } from "./leases.ts"
import { createLaneOf, moveTo } from "./moves.ts"
import { effectsOf, openTransactions, releaseEffect, type WatchedTransaction } from "./transactions.ts"

/**
 * Returns the signers of lanes whose key left `SIGNER_KEYS`. Their transactions can be watched and sent
 * again, but nothing can be signed.
 */
export async function signersWithoutKey(queries: Queries, chain: ConnectedChain): Promise<Signer[]> {
  const rows = await lanesOf(queries, { chain_id: chain.chain_id })
  return rows.filter(({ id }) => !hasKeyOf(chain, id)).map(signerOf)
}

const lanesOf = query((db, { chain_id }: Given<{ chain_id: number }>) =>
  db.select().from(lanes).where(eq(lanes.chain_id, chain_id)),
)

function signerOf({ id, address, purpose }: LaneRow): Signer {
  return { lane_id: id, address: address as Signer["address"], purpose, account: null }
}

/**
 * Hands on what a lane without its key has not signed: its waiting effects and its collections go to lanes with keys.
 * Signed transactions stay until they are final.
 */
export async function handOn(lane: Lane, lease: Lease): Promise<void> {
  // A process without any key has no lane to hand it to.
  if (lane.signer.account !== null || lane.chain.signers.length === 0) return
  await takeBackUnsigned(lane, lease)
  await moveEffects(lane, lease)
  await moveCollections(lane, lease)
}

/** How many rows are moved at once; the rest follows in the next round. */
const rowsAtOnce = 1_000

async function moveEffects(lane: Lane, lease: Lease): Promise<void> {
  const { chain, context } = lane
  const rows = await waitingIn(context.db.read, { queue: laneQueue(lease.lane_id) })
  const byLane = Map.groupBy(effectsIn(rows), createLaneOf(chain))
  for (const [laneId, moved] of byLane) await moveTo(lane, lease, laneId, moved)
}

const waitingIn = query((db, { queue }: Given<{ queue: string }>) =>
  db
    .select()
    .from(effects)
    .where(and(eq(effects.queue, queue), eq(effects.status, "open"), isNull(effects.transaction_id)))
    .orderBy(asc(effects.id))
    .limit(rowsAtOnce),
)

async function moveCollections(lane: Lane, lease: Lease): Promise<void> {
  const rows = await collectionsOf(lane.context.db.read, { lane_id: lease.lane_id })
  const byLane = Map.groupBy(rows, ({ id }) => lane.chain.issuanceLaneId(id))
  for (const [lane_id, moved] of byLane) {
    const ids = moved.map(({ id }) => id)
    await inLane(lane, async (turn) => {
      await assertLease(turn, lease)
      await turn.tx
        .update(collections)
        .set({ lane_id })
        .where(and(eq(collections.lane_id, lease.lane_id), inArray(collections.id, ids)))
    })
  }
}

const collectionsOf = query((db, { lane_id }: Given<{ lane_id: string }>) =>
  db
    .select({ id: collections.id })
    .from(collections)
    .where(eq(collections.lane_id, lane_id))
    .limit(rowsAtOnce),
)

/** Takes back nonces for which nothing was signed, so that no one can know of them, and releases what they reserved. */
async function takeBackUnsigned(lane: Lane, lease: Lease): Promise<void> {
  const open = await openTransactions(lane.context.db.read, lease.lane_id)
  const lastSigned = Math.max(-1, ...open.filter(isSigned).map(({ nonce }) => nonce))
  // Last first, so that stopping anywhere leaves no gap.
  for (const transaction of open.toReversed()) {
    if (transaction.nonce <= lastSigned) return
    const members = await effectsOf(lane.context.db.read, transaction.id)
    // What was done once and must be done again needs exactly this content.
    if (members.some(({ status }) => status === "done")) return
    await inLane(lane, (turn) => takeBack(lane, turn, lease, transaction, members))
  }
}

function isSigned({ status, attempts }: WatchedTransaction): boolean {
  return status !== "allocated" || attempts.length > 0
}

async function takeBack(
  { jobs }: Lane,
  turn: Turn,
  lease: Lease,
  transaction: WatchedTransaction,
  members: Effect[],
): Promise<void> {
  await assertLease(turn, lease)
  const { id, nonce, kind } = transaction
  for (const effect of members) await releaseEffect(turn, effect)
  await jobFor(jobs, kind).release?.(turn, { transaction, effects: members })
  await turn.tx.update(effects).set({ transaction_id: null }).where(eq(effects.transaction_id, id))
  await turn.tx.delete(transactions).where(eq(transactions.id, id))
  // After a restored back-up, what is forgotten may use any nonce below the next one.
  const isSurelyFree = and(isNull(lanes.restored_at), gt(lanes.next_nonce, nonce))
  await turn.tx
    .update(lanes)
    .set({ next_nonce: nonce })
    .where(and(eq(lanes.id, lease.lane_id), isSurelyFree))
}
