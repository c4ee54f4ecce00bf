import { and, eq, gte, lt } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { transactions } from "../../db/schema.ts"
import { firstFees } from "../chain/fees.ts"
import { useUpNonce } from "../jobs/job.ts"
import { emptyGas } from "./broadcast.ts"
import { type Findings, nothing } from "./findings.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { nowhere } from "./nonces.ts"
import { allocateFiller, updateTransaction, type WatchedTransaction } from "./transactions.ts"
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
  const { missing, revived } = await holesIn(lane.context.db.read, lane_id, {
    from: lane.used_nonces,
    below: Math.min(lowest.nonce, lane.used_nonces + maxInFlight),
  })
  if (missing.length + revived.length === 0) return nothing
  const gas = await emptyGas(lane)
  const fees = firstFees(gas, await lane.market(), lane.limits)
  const { address } = lane.signer
  await inLane(lane, async (turn) => {
    for (const nonce of missing)
      await allocateFiller(turn, lane.lease, { nonce, chain_id, address, gas, fees })
    for (const { id } of revived)
      await updateTransaction(turn, lane.lease, id, { status: "signed", ...nowhere })
  })
  const nonces = [...missing, ...revived.map(({ nonce }) => nonce)]
  const why = `no block takes what has nonce ${nonces.join(", ")} of ${address}, of which nothing is known here: used up by nothing`
  lane.context.log.warn({ lane_id, nonces }, why)
  return { ...nothing, notices: [why] }
}

/**
 * Nonces that no transaction of the lane has, and those whose empty transaction came too late for one that a
 * reorganization has undone since.
 */
async function holesIn(
  queries: Queries,
  laneId: string,
  { from, below }: { from: number; below: number },
): Promise<{ missing: number[]; revived: { id: string; nonce: number }[] }> {
  const { id, nonce, kind, status, block_hash } = transactions
  const rows = await queries
    .select({ id, nonce, kind, status, block_hash })
    .from(transactions)
    .where(
      and(eq(transactions.lane_id, laneId), gte(transactions.nonce, from), lt(transactions.nonce, below)),
    )
  const known = new Set(rows.map(({ nonce }) => nonce))
  const all = Array.from({ length: below - from }, (_, index) => from + index)
  const isTooLate = (row: (typeof rows)[number]) =>
    row.kind === useUpNonce && row.status === "final" && row.block_hash === null
  return { missing: all.filter((each) => !known.has(each)), revived: rows.filter(isTooLate) }
}
