import { and, eq, isNotNull, isNull, ne, sql } from "drizzle-orm"
import { lanes } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import type { Signer } from "./signers.ts"

/** How long a holder that went silent keeps its lane. */
export const leaseMilliseconds = 10_000

/** The right to send for a lane, until it runs out or somebody else takes it over. */
export type Lease = { lane_id: string; owner: string; epoch: number; milliseconds: number }

/** Who wants a lane, and what it last saw of the one who holds it. */
export type Claimant = {
  owner: string
  lease_milliseconds: number
  rival?: { mark: string; since_milliseconds: number }
}

/** Makes sure there is a lane for a signer. */
export async function ensureLane(turn: Turn, chainId: number, signer: Signer): Promise<void> {
  await turn.tx
    .insert(lanes)
    .values({
      id: signer.lane_id,
      chain_id: chainId,
      address: signer.address,
      purpose: signer.purpose,
      status: "open",
      lease_epoch: 0,
      created_at: turn.at,
    })
    .onConflictDoUpdate({ target: lanes.id, set: { purpose: signer.purpose } })
}

/**
 * Takes or renews a lane's lease; null while somebody else holds it. A holder's lease is over when its time has
 * passed, or when it was not renewed for that long by this process's own steady clock: clocks of machines differ.
 */
export async function takeLease(turn: Turn, laneId: string, claimant: Claimant): Promise<LeasedLane | null> {
  const { owner, lease_milliseconds: milliseconds } = claimant
  const [lane] = await turn.tx.select().from(lanes).where(eq(lanes.id, laneId))
  if (!lane) return null
  const isMine = lane.lease_owner === owner
  if (!isMine && isHeldByOther(turn, claimant, lane)) return null
  const epoch = isMine ? lane.lease_epoch : lane.lease_epoch + 1
  const [taken] = await turn.tx
    .update(lanes)
    .set({ lease_owner: owner, lease_epoch: epoch, leased_until: new Date(turn.at.getTime() + milliseconds) })
    .where(and(eq(lanes.id, laneId), eq(lanes.lease_epoch, lane.lease_epoch)))
    .returning()
  return taken ? { lease: { lane_id: laneId, owner, epoch, milliseconds }, lane: taken } : null
}

function isHeldByOther(turn: Turn, claimant: Claimant, lane: LaneRow): boolean {
  const { leased_until, lease_epoch } = lane
  if (leased_until === null || leased_until < turn.at) return false
  const mark = `${lease_epoch} ${leased_until.getTime()}`
  if (claimant.rival?.mark !== mark) claimant.rival = { mark, since_milliseconds: performance.now() }
  return performance.now() - claimant.rival.since_milliseconds <= claimant.lease_milliseconds
}

export type LaneRow = typeof lanes.$inferSelect

export type LeasedLane = { lease: Lease; lane: LaneRow }

/** Gives a lease back, so that the next holder need not wait. */
export async function releaseLease(turn: Turn, lease: Lease): Promise<void> {
  await turn.tx.update(lanes).set({ lease_owner: null, leased_until: null }).where(heldBy(lease))
}

/** The condition under which a holder may write for its lane. */
export function heldBy(lease: Lease) {
  return and(
    eq(lanes.id, lease.lane_id),
    eq(lanes.lease_owner, lease.owner),
    eq(lanes.lease_epoch, lease.epoch),
  )
}

/** Renews the lease, or throws `LeaseLost`: whatever else this database transaction did is then rolled back. */
export async function assertLease(turn: Turn, lease: Lease): Promise<void> {
  const [held] = await turn.tx
    .update(lanes)
    .set({ leased_until: new Date(turn.at.getTime() + lease.milliseconds) })
    .where(heldBy(lease))
    .returning({ id: lanes.id })
  if (!held) throw new LeaseLost(`the lease of lane ${lease.lane_id} is held by somebody else`)
}

export class LeaseLost extends Error {
  override name = "LeaseLost"
}

/** Sets the next nonce of a lane that has none: it never sent anything, or a person told it to ask the chain. */
export async function adoptNonce(turn: Turn, lease: Lease, nonce: number): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx
    .update(lanes)
    .set({ next_nonce: nonce })
    .where(and(heldBy(lease), isNull(lanes.next_nonce)))
}

/** Remembers the newest block at the finality depth, which no reorganization may replace any more. */
export async function noteFinalBlock(
  turn: Turn,
  lease: Lease,
  { number, hash }: { number: number; hash: string },
): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx.update(lanes).set({ final_block_number: number, final_block_hash: hash }).where(heldBy(lease))
}

/** Takes the lane's next nonce, which is never given out again. */
export async function takeNonce(turn: Turn, lease: Lease): Promise<number> {
  await assertLease(turn, lease)
  const [lane] = await turn.tx
    .update(lanes)
    .set({ next_nonce: sql`${lanes.next_nonce} + 1` })
    .where(and(heldBy(lease), isNotNull(lanes.next_nonce)))
    .returning({ next_nonce: lanes.next_nonce })
  if (!lane || lane.next_nonce === null) throw new LeaseLost(`lane ${lease.lane_id} has no nonce yet`)
  return lane.next_nonce - 1
}

/** Stops a lane until a person has looked at it; `reason` says what to do next. */
export async function haltLane(turn: Turn, lease: Lease, reason: string): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx.update(lanes).set({ status: "halted", reason }).where(heldBy(lease))
}

/** Says why a lane does not get on, or that it does; a halted lane stays halted. */
export async function setLaneStatus(
  turn: Turn,
  lease: Lease,
  status: "open" | "paused",
  reason: string | null,
): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx
    .update(lanes)
    .set({ status, reason })
    .where(and(heldBy(lease), ne(lanes.status, "halted")))
}
