import { and, eq, gte, lt } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { transactions } from "../../db/schema.ts"
import { firstFees } from "../chain/fees.ts"
import { emptyGas } from "./broadcast.ts"
import { type Findings, nothing } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { allocateFiller, type WatchedTransaction } from "./transactions.ts"
import { maxInFlight } from "./turns.ts"

/**
 * Uses up nonces that were left out for what the pools had of this signer, as after a back-up was restored, and that no
 * block took: it fell out of them since, or is too cheap, and nothing after it can be mined. `lowest` is the first that
 * this lane waits for. The empty transactions are sent like any others, from the next round on.
 */
export async function fillHoles(
  lane: HeldLane,
  lowest: Pick<WatchedTransaction, "nonce" | "created_at">,
): Promise<Findings> {
  if (lowest.nonce <= lane.used_nonces || !lane.signer.account) return nothing
  const { config, chain_id } = lane.chain
  const patience = config.bump_after_blocks * config.block_time_seconds * 1_000
  if (lane.context.clock().getTime() - lowest.created_at.getTime() < patience) return nothing
  const { lane_id } = lane.lease
  const missing = await missingNonces(lane.context.db.read, lane_id, {
    from: lane.used_nonces,
    below: Math.min(lowest.nonce, lane.used_nonces + maxInFlight),
  })
  if (missing.length === 0) return nothing
  const gas = await emptyGas(lane)
  const fees = firstFees(gas, await lane.market(), lane.limits)
  const { address } = lane.signer
  await inLane(lane, async (turn) => {
    for (const nonce of missing)
      await allocateFiller(turn, lane.lease, { nonce, chain_id, address, gas, fees })
  })
  const why = `no block takes what has nonce ${missing.join(", ")} of ${address}, of which nothing is known here: used up by nothing`
  lane.context.log.warn({ lane_id, nonces: missing }, why)
  return { ...nothing, notices: [why] }
}

/** Those that no transaction of the lane has. */
async function missingNonces(
  queries: Queries,
  laneId: string,
  { from, below }: { from: number; below: number },
): Promise<number[]> {
  const rows = await queries
    .select({ nonce: transactions.nonce })
    .from(transactions)
    .where(
      and(eq(transactions.lane_id, laneId), gte(transactions.nonce, from), lt(transactions.nonce, below)),
    )
  const known = new Set(rows.map(({ nonce }) => nonce))
  return Array.from({ length: below - from }, (_, index) => from + index).filter((nonce) => !known.has(nonce))
}
