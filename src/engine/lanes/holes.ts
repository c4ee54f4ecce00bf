import { and, eq, gte, isNotNull, lt, ne, or } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { transactions } from "../../db/schema.ts"
import { firstFees } from "../chain/fees.ts"
import { emptyGas } from "./broadcast.ts"
import { type Findings, nothing, noticed } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { allocateFiller, type WatchedTransaction } from "./transactions.ts"
import { maxInFlight } from "./turns.ts"

/**
 * Fills unused nonces below `lowest`, the first transaction that the lane waits for: nothing after them can be
 * mined. They were skipped because pools held unknown transactions that then disappeared or are too cheap, as
 * after a restored back-up; or a reorganization undid what someone else used them for. The next round sends the
 * empty transactions like any others.
 */
export async function fillHoles(
  lane: HeldLane,
  lowest: Pick<WatchedTransaction, "nonce" | "created_at">,
): Promise<Findings> {
  if (lowest.nonce <= lane.used_nonces) return nothing
  const { config, chain_id } = lane.chain
  const patience = config.bump_after_blocks * config.block_time_seconds * 1_000
  if (lane.context.clock().getTime() - lowest.created_at.getTime() < patience) return nothing
  const { lane_id } = lane.lease
  const nonces = await holesIn(lane.context.db.read, lane_id, {
    from: lane.used_nonces,
    below: Math.min(lowest.nonce, lane.used_nonces + maxInFlight),
  })
  if (nonces.length === 0) return nothing
  const { address, account } = lane.signer
  const found = `no transaction with nonce ${nonces.join(", ")} of ${address} is mined, and this service knows of none`
  if (!account)
    return noticed(
      `${found}, and its key is no longer in SIGNER_KEYS: add it until the lane has nothing open`,
    )
  const gas = await emptyGas(lane)
  const fees = firstFees(gas, await lane.market(), lane.limits)
  await inLane(lane, async (turn) => {
    for (const nonce of nonces)
      await allocateFiller(turn, lane.lease, { nonce, chain_id, address, gas, fees })
  })
  const why = `${found}: empty transactions are sent instead`
  lane.context.log.warn({ lane_id, nonces }, why)
  return noticed(why)
}

/** Returns the nonces without a transaction of the lane, counting those that it lost to an unknown transaction. */
async function holesIn(
  queries: Queries,
  laneId: string,
  { from, below }: { from: number; below: number },
): Promise<number[]> {
  const { lane_id, nonce, status, block_hash } = transactions
  const isOwn = or(ne(status, "final"), isNotNull(block_hash))
  const rows = await queries
    .select({ nonce })
    .from(transactions)
    .where(and(eq(lane_id, laneId), gte(nonce, from), lt(nonce, below), isOwn))
  const known = new Set(rows.map((row) => row.nonce))
  return Array.from({ length: below - from }, (_, index) => from + index).filter((each) => !known.has(each))
}
