import { and, eq, isNotNull, isNull, ne, sql } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type LaneRow, lanes } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import type { Signer } from "../chain/signers.ts"

/** How long a holder keeps its lane without renewing the lease. */
export const leaseMilliseconds = 10_000

/** The right to send for a lane, until it expires or is taken over. */
export type Lease = {
  readonly lane_id: string
  readonly owner: string
  readonly epoch: number
  readonly milliseconds: number
}

/** A process that wants a lane. */
export type Claimant = { readonly owner: string; readonly lease_milliseconds: number }

/** The holder's lease as a claimant last saw it, and since when, by the claimant's monotonic clock. */
export type Rival = { readonly mark: string; readonly since_milliseconds: number }

/** Creates the lane of a signer, or updates the purpose of the one that exists. */
export async function ensureLane(turn: Turn, chainId: number, signer: Signer): Promise<void> {
  const { lane_id: id, address, purpose } = signer
  await insertLane(turn.tx, { id, chain_id: chainId, address, purpose, created_at: turn.at })
}

type NewLane = Pick<LaneRow, "id" | "chain_id" | "address" | "purpose" | "created_at">

const insertLane = query((db, lane: Given<NewLane>) =>
  db
    .insert(lanes)
    .values({ ...lane, status: "open", lease_epoch: 0 })
    .onConflictDoUpdate({ target: lanes.id, set: { purpose: lane.purpose } }),
)

/**
 * Takes or renews a lane's lease. Returns null while another process holds it. A holder loses it when it expires, or
 * when the claimant has seen it unrenewed for as long, because the clocks of machines differ.
 */
export async function takeLease(
  turn: Turn,
  laneId: string,
  claimant: Claimant,
  rival?: Rival,
): Promise<LeasedLane | null> {
  const [lane] = await laneOfId(turn.tx, { id: laneId })
  if (!lane || isHeldByOther(lane, claimant, turn.at, rival)) return null
  const { owner, lease_milliseconds: milliseconds } = claimant
  const epoch = lane.lease_owner === owner ? lane.lease_epoch : lane.lease_epoch + 1
  const leased_until = new Date(turn.at.getTime() + milliseconds)
  const wanted = { id: laneId, seen_epoch: lane.lease_epoch, owner, epoch, leased_until }
  const [row] = await changeHolder(turn.tx, wanted)
  return row ? { lease: { lane_id: laneId, owner, epoch, milliseconds }, row } : null
}

const laneOfId = query((db, { id }: Given<{ id: string }>) => db.select().from(lanes).where(eq(lanes.id, id)))

type Change = { id: string; seen_epoch: number; owner: string; epoch: number; leased_until: Date }

const changeHolder = query((db, { id, seen_epoch, owner, epoch, leased_until }: Given<Change>) =>
  db
    .update(lanes)
    .set({ lease_owner: owner, lease_epoch: epoch, leased_until })
    .where(and(eq(lanes.id, id), eq(lanes.lease_epoch, seen_epoch)))
    .returning(),
)

/**
 * Reads who holds a lane, without a database transaction. `mine`: the claimant's own lease, while young. `rival`:
 * another's valid lease, as first seen unrenewed. If both are null, the lease must be taken or renewed.
 */
export async function sightLane(
  queries: Queries,
  laneId: string,
  claimant: Claimant,
  at: Date,
  known?: Rival,
): Promise<{ mine: LeasedLane | null; rival: Rival | null }> {
  const [lane] = await laneOfId(queries, { id: laneId })
  if (!lane) return { mine: null, rival: null }
  if (isHeldByOther(lane, claimant, at, known)) {
    const mark = markOf(lane)
    const rival = known?.mark === mark ? known : { mark, since_milliseconds: performance.now() }
    return { mine: null, rival }
  }
  const { owner, lease_milliseconds: milliseconds } = claimant
  const isMine = lane.lease_owner === owner && isYoung(lane, at, milliseconds)
  const lease = { lane_id: laneId, owner, epoch: lane.lease_epoch, milliseconds }
  return { mine: isMine ? { lease, row: lane } : null, rival: null }
}

function isHeldByOther(
  lane: LaneRow,
  { owner, lease_milliseconds }: Claimant,
  at: Date,
  rival: Rival | undefined,
): boolean {
  return lane.lease_owner !== owner && !isOver(lane, at) && !isSilent(lane, rival, lease_milliseconds)
}

function isOver({ leased_until }: LaneRow, at: Date): boolean {
  return leased_until === null || leased_until < at
}

/**
 * Returns whether a round that starts now would renew the lease in time. False for a lease from
 * before the clock was set back.
 */
function isYoung({ leased_until }: LaneRow, at: Date, milliseconds: number): boolean {
  const left = (leased_until?.getTime() ?? 0) - at.getTime()
  return left > (milliseconds * 2) / 3 && left <= milliseconds
}

function isSilent(lane: LaneRow, rival: Rival | undefined, milliseconds: number): boolean {
  return rival?.mark === markOf(lane) && performance.now() - rival.since_milliseconds > milliseconds
}

/** Returns a value that changes with each renewal. */
function markOf({ lease_epoch, leased_until }: LaneRow): string {
  return `${lease_epoch} ${leased_until?.getTime()}`
}

/** A lease, with the lane's row at the time when it was taken. */
export type LeasedLane = { lease: Lease; row: LaneRow }

/** Releases a lease, so that the next holder need not wait. */
export async function releaseLease(turn: Turn, { lane_id, owner, epoch }: Lease): Promise<void> {
  await dropLease(turn.tx, { lane_id, owner, epoch })
}

const dropLease = query((db, held: Given<Held>) =>
  db.update(lanes).set({ lease_owner: null, leased_until: null }).where(heldBy(held)),
)

/** Returns the condition under which a holder may write for its lane. */
function heldBy(lease: Held | Given<Held>) {
  return and(
    eq(lanes.id, lease.lane_id),
    eq(lanes.lease_owner, lease.owner),
    eq(lanes.lease_epoch, lease.epoch),
  )
}

/** Renews the lease. Throws `LeaseLost`, which rolls back everything else in this database transaction. */
export async function assertLease(turn: Turn, lease: Lease): Promise<void> {
  const leased_until = new Date(turn.at.getTime() + lease.milliseconds)
  const { lane_id, owner, epoch } = lease
  const [held] = await renewLease(turn.tx, { lane_id, owner, epoch, leased_until })
  if (!held) throw new LeaseLost(`the lease of lane ${lease.lane_id} is held by another process`)
}

type Held = Pick<Lease, "lane_id" | "owner" | "epoch">

const renewLease = query((db, { leased_until, ...held }: Given<Held & { leased_until: Date }>) =>
  db.update(lanes).set({ leased_until }).where(heldBy(held)).returning({ id: lanes.id }),
)

export class LeaseLost extends Error {
  override name = "LeaseLost"
}

/**
 * Sets the next nonce of a lane that has none: a new lane, or one that must take its nonces from the chain again.
 * Returns false if it has one, or if a back-up was restored since the given instant, after which nonces are skipped.
 */
export async function adoptNonce(
  turn: Turn,
  lease: Lease,
  { nonce, restored_at }: { nonce: number; restored_at: Date | null },
): Promise<boolean> {
  await assertLease(turn, lease)
  const isAsRead = restored_at === null ? isNull(lanes.restored_at) : eq(lanes.restored_at, restored_at)
  const adopted = await turn.tx
    .update(lanes)
    .set({ next_nonce: nonce })
    .where(and(heldBy(lease), isNull(lanes.next_nonce), isAsRead))
    .returning({ id: lanes.id })
  return adopted.length > 0
}

/**
 * Records that nothing forgotten by a restored back-up can be mined any more, unless another
 * back-up was restored in the meantime.
 */
export async function noteOutlived(turn: Turn, lease: Lease, nextNonce: number): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx
    .update(lanes)
    .set({ restored_at: null })
    .where(and(heldBy(lease), eq(lanes.next_nonce, nextNonce)))
}

/** Makes a lane with this next nonce take its nonces from the chain again. */
export async function adoptAgain(turn: Turn, lease: Lease, nextNonce: number): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx
    .update(lanes)
    .set({ next_nonce: null })
    .where(and(heldBy(lease), eq(lanes.next_nonce, nextNonce)))
}

/** Stores the newest block at the finality depth, which no reorganization may replace. */
export async function noteFinalBlock(turn: Turn, lease: Lease, { number, hash }: FinalBlock): Promise<void> {
  await assertLease(turn, lease)
  const { lane_id, owner, epoch } = lease
  await setFinalBlock(turn.tx, { lane_id, owner, epoch, number, hash })
}

type FinalBlock = { number: number; hash: string }

const setFinalBlock = query((db, { number, hash, ...held }: Given<Held & FinalBlock>) =>
  db.update(lanes).set({ final_block_number: number, final_block_hash: hash }).where(heldBy(held)),
)

/** Takes the lane's next nonce, which is never assigned again once something was signed for it. */
export async function takeNonce(turn: Turn, lease: Lease): Promise<number> {
  await assertLease(turn, lease)
  const { lane_id, owner, epoch } = lease
  const [lane] = await advanceNonce(turn.tx, { lane_id, owner, epoch })
  if (!lane || lane.next_nonce === null) throw new LeaseLost(`lane ${lease.lane_id} has no nonce yet`)
  return lane.next_nonce - 1
}

const advanceNonce = query((db, held: Given<Held>) =>
  db
    .update(lanes)
    .set({ next_nonce: sql`${lanes.next_nonce} + 1` })
    .where(and(heldBy(held), isNotNull(lanes.next_nonce)))
    .returning({ next_nonce: lanes.next_nonce }),
)

/** Halts a lane until an operator has looked at it; `reason` says what to do. */
export async function haltLane(turn: Turn, lease: Lease, reason: string): Promise<void> {
  await assertLease(turn, lease)
  await turn.tx.update(lanes).set({ status: "halted", reason }).where(heldBy(lease))
}

/** Stores why a lane is held up, or that it is not. A halted lane stays halted. */
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
