import { and, eq, isNull, lt, ne, or } from "drizzle-orm"
import { lanes } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import type { Signer } from "./signers.ts"

/** How long a holder that went silent keeps its lane. */
export const leaseMilliseconds = 10_000

/** The right to send for a lane, until it runs out or somebody else takes it over. */
export type Lease = { lane_id: string; owner: string; epoch: number }

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

/** Takes or renews a lane's lease; null while somebody else holds it. */
export async function takeLease(turn: Turn, laneId: string, owner: string): Promise<LeasedLane | null> {
  const [lane] = await turn.tx.select().from(lanes).where(eq(lanes.id, laneId))
  if (!lane) return null
  const epoch = lane.lease_owner === owner ? lane.lease_epoch : lane.lease_epoch + 1
  const [taken] = await turn.tx
    .update(lanes)
    .set({
      lease_owner: owner,
      lease_epoch: epoch,
      leased_until: new Date(turn.at.getTime() + leaseMilliseconds),
    })
    .where(
      and(
        eq(lanes.id, laneId),
        eq(lanes.lease_epoch, lane.lease_epoch),
        or(eq(lanes.lease_owner, owner), isNull(lanes.leased_until), lt(lanes.leased_until, turn.at)),
      ),
    )
    .returning()
  return taken ? { lease: { lane_id: laneId, owner, epoch }, lane: taken } : null
}

export type LeasedLane = { lease: Lease; lane: typeof lanes.$inferSelect }

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

/** Throws when the lease was lost: whatever else this database transaction did is rolled back. */
export async function assertLease(turn: Turn, lease: Lease): Promise<void> {
  const [held] = await turn.tx.select({ id: lanes.id }).from(lanes).where(heldBy(lease))
  if (!held) throw new LeaseLost(`the lease of lane ${lease.lane_id} is held by somebody else`)
}

export class LeaseLost extends Error {
  override name = "LeaseLost"
}

/** Sets the first nonce of a lane that never sent anything. */
export async function adoptNonce(turn: Turn, lease: Lease, nonce: number): Promise<void> {
  await turn.tx
    .update(lanes)
    .set({ next_nonce: nonce })
    .where(and(heldBy(lease), isNull(lanes.next_nonce)))
}

/** Stops a lane until a person has looked at it; `reason` says what to do next. */
export async function haltLane(turn: Turn, lease: Lease, reason: string): Promise<void> {
  await turn.tx.update(lanes).set({ status: "halted", reason }).where(heldBy(lease))
}

/** Says why a lane does not get on, or that it does; a halted lane stays halted. */
export async function setLaneStatus(
  turn: Turn,
  lease: Lease,
  status: "open" | "paused",
  reason: string | null,
): Promise<void> {
  await turn.tx
    .update(lanes)
    .set({ status, reason })
    .where(and(heldBy(lease), ne(lanes.status, "halted")))
}
