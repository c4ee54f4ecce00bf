import { and, asc, eq, isNull } from "drizzle-orm"
import { settleEffect } from "../src/actors/runtime.ts"
import { setLaneStatus } from "../src/chain/lanes.ts"
import { CallReverted, reach } from "../src/chain/rpc.ts"
import {
  allocateTransaction,
  findTransaction,
  isInFlight,
  reservedWei,
  type WatchedTransaction,
  watchedTransactions,
} from "../src/chain/transactions.ts"
import { effects } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { feesNow, signAndSend } from "./broadcast.ts"
import type { Call, Effect, Job } from "./job.ts"
import { jobFor } from "./jobs.ts"
import { type HeldLane, inLane } from "./lane.ts"

/** Sixteen transactions of one sender are what public pools promise to hold. */
const maxInFlight = 16
const planningDepth = 500

/** Turns waiting effects into transactions, oldest first, as long as the pool holds them and the money lasts. */
export async function sendWaitingEffects(lane: HeldLane): Promise<void> {
  let waiting = await waitingEffects(lane)
  if (waiting.length === 0) return
  const open = await watchedTransactions(lane.context.db.read, lane.lease.lane_id)
  const inFlight = open.filter(isInFlight)
  const busy = new Set(inFlight.map(({ to }) => to))
  let funds = await reach(() => lane.chain.rpc.getBalance({ address: lane.signer.address }))
  funds -= reservedWei(inFlight)

  for (let room = maxInFlight - inFlight.length; room > 0 && waiting.length > 0; room--) {
    const [first] = waiting as [Effect, ...Effect[]]
    const job = jobFor(first.src)
    const sameKind = waiting.filter(({ src }) => src === first.src) as [Effect, ...Effect[]]
    const call = await job.plan(lane.chain, lane.context.db.read, sameKind)
    const planned = new Set(call.members.map(({ id }) => id))
    waiting = waiting.filter(({ id }) => !planned.has(id))
    const gas = await gasFor(lane, call, busy)
    if (gas === "reverts") continue
    const fees = await feesNow(lane)
    funds -= gas * fees.max_fee_per_gas
    if (funds < 0n) return await pause(lane, -funds)
    busy.add(call.to)
    await signAndSend(lane, await allocate(lane, job, { ...call, gas }, fees))
  }
  await inLane(lane, (turn) => setLaneStatus(turn, lane.lease, "open", null))
}

async function waitingEffects(lane: HeldLane): Promise<Effect[]> {
  const open = await lane.context.db.read
    .select()
    .from(effects)
    .where(
      and(
        eq(effects.queue, `lane:${lane.signer.lane_id}`),
        eq(effects.status, "open"),
        isNull(effects.transaction_id),
      ),
    )
    .orderBy(asc(effects.id))
    .limit(planningDepth)
  const now = lane.context.clock()
  return open.filter(({ due_at }) => due_at <= now)
}

/**
 * Simulates the call before it takes a nonce. A call that reverts is put off and tried again; once it has reverted
 * for as long as a block takes to be confirmed, its effects fail.
 */
async function gasFor(lane: HeldLane, call: Call, busy: Set<string>): Promise<bigint | "reverts"> {
  if (busy.has(call.to)) return call.gas
  try {
    const account = lane.signer.address
    const estimate = await reach(() => lane.chain.rpc.estimateGas({ account, to: call.to, data: call.data }))
    const withMargin = (estimate * 5n) / 4n
    return withMargin > call.gas ? withMargin : call.gas
  } catch (error) {
    if (!(error instanceof CallReverted)) throw error
    await inLane(lane, (turn) => putOff(turn, lane, call, error))
    return "reverts"
  }
}

async function putOff(turn: Turn, lane: HeldLane, call: Call, error: CallReverted): Promise<void> {
  const { confirmation_depth, block_time_seconds } = lane.chain.config
  for (const effect of call.members) {
    if (effect.attempts >= confirmation_depth) {
      await settleEffect(turn, effect.id, {
        error: { code: `${effect.src}.reverted`, message: error.message },
      })
      continue
    }
    await turn.tx
      .update(effects)
      .set({
        attempts: effect.attempts + 1,
        last_error: error.message,
        due_at: new Date(turn.at.getTime() + block_time_seconds * 1000),
      })
      .where(eq(effects.id, effect.id))
  }
}

/** Too little money is said before anything is sent; the next round looks again. */
async function pause(lane: HeldLane, missingWei: bigint): Promise<void> {
  const reason = `${lane.signer.address} lacks ${missingWei} wei for the next transaction: send it at least that`
  lane.context.log.error({ lane_id: lane.lease.lane_id, reason }, "the lane is paused")
  await inLane(lane, (turn) => setLaneStatus(turn, lane.lease, "paused", reason))
}

async function allocate(
  lane: HeldLane,
  job: Job,
  call: Call,
  fees: { max_fee_per_gas: bigint; max_priority_fee_per_gas: bigint },
): Promise<WatchedTransaction> {
  const id = await inLane(lane, async (turn) => {
    await call.reserve?.(turn)
    return await allocateTransaction(turn, lane.lease, {
      chain_id: lane.chain.chain_id,
      kind: job.src,
      to: call.to,
      data: call.data,
      gas: call.gas,
      fees,
      effect_ids: call.members.map((member) => member.id),
    })
  })
  return await findTransaction(lane.context.db.read, id)
}
