import { and, asc, eq, isNull } from "drizzle-orm"
import { settleEffect } from "../src/actors/runtime.ts"
import { assertLease, LeaseLost } from "../src/chain/lanes.ts"
import { CallReverted, ChainUnreachable, reach } from "../src/chain/rpc.ts"
import {
  allocateTransaction,
  type Fees,
  findTransaction,
  isInFlight,
  openTransactions,
  reservedWei,
  type WatchedTransaction,
} from "../src/chain/transactions.ts"
import { DatabaseUnavailable } from "../src/db/database.ts"
import { effects } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { loggable } from "../src/log.ts"
import { feesNow, signAndSend } from "./broadcast.ts"
import type { Call, Effect, Job, Written } from "./job.ts"
import { jobFor } from "./jobs.ts"
import { type HeldLane, inLane } from "./lane.ts"
import { noteStep } from "./note-step.ts"
import { tryCall } from "./try-call.ts"

/** Sixteen transactions of one sender are what public pools promise to hold. */
const maxInFlight = 16
/** As many effects as fill that window with the largest batches. */
const planningDepth = 1_600

/** Turns waiting effects into transactions, oldest first, as long as the pool holds them and the money lasts. */
export async function sendWaitingEffects(lane: HeldLane): Promise<void> {
  const open = await openTransactions(lane.context.db.read, lane.lease.lane_id)
  const inFlight = open.filter(isInFlight)
  let room = maxInFlight - inFlight.length
  if (room <= 0 || lane.pause !== null) return
  let waiting = await waitingEffects(lane)
  if (waiting.length === 0) return

  const busy = new Set(inFlight.map(({ to }) => to))
  const fees = await feesNow(lane)
  const { address } = lane.signer
  let funds = (await reach(() => lane.chain.rpc.getBalance({ address }))) - reservedWei(inFlight)
  while (room > 0 && waiting.length > 0) {
    const planned = await planNext(lane, waiting as [Effect, ...Effect[]], busy)
    waiting = waiting.filter(({ id }) => !planned.taken.has(id))
    if (planned.pause) lane.pause = planned.pause
    if (lane.pause !== null) return
    if (!planned.call) continue
    funds -= planned.call.gas * fees.max_fee_per_gas
    if (funds < 0n) {
      lane.pause = `${address} lacks ${-funds} wei for its next transaction: send it at least that, it goes on by itself`
      return
    }
    busy.add(planned.call.to)
    room -= 1
    await signAndSend(lane, await allocate(lane, planned.job, planned.call, fees))
  }
}

/** Oldest first; where order matters, what follows an effect that is put off waits behind it. */
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
  const blocked = new Set<string>()
  return open.filter((effect) => {
    const line = jobFor(effect.src).lineOf?.(effect)
    if (line !== undefined && blocked.has(line)) return false
    if (isDue(lane, effect)) return true
    if (line !== undefined) blocked.add(line)
    return false
  })
}

/** A clock that was set back must not put work off for longer than anything ever is. */
function isDue(lane: HeldLane, { attempts, due_at }: Effect): boolean {
  const now = lane.context.clock().getTime()
  return attempts === 0 || due_at.getTime() <= now || due_at.getTime() > now + maxDelayMilliseconds
}

const maxDelayMilliseconds = 10 * 60_000

type Planned = { taken: Set<string>; job: Job; call: Call | null; pause: string | null }

/** What comes next; an effect that cannot be planned is put off, so that it stops nobody else. */
async function planNext(lane: HeldLane, waiting: [Effect, ...Effect[]], busy: Set<string>): Promise<Planned> {
  const [first] = waiting
  const job = jobFor(first.src)
  const sameKind = waiting.filter(({ src }) => src === first.src) as [Effect, ...Effect[]]
  const none = { taken: idsOf(sameLine(job, sameKind)), job, call: null, pause: null }
  try {
    const call = await job.plan(lane.chain, lane.context.db.read, sameKind)
    if ("later" in call) return { ...none, taken: idsOf(call.later) }
    if ("write" in call) {
      const written = await writeDown(lane, call)
      // Where more is to be written before a call can be planned, the round goes on without the line.
      return written.length === 0 ? none : { ...none, taken: idsOf(written) }
    }
    const verdict = await simulate(lane, call, busy)
    if (typeof verdict === "bigint")
      return { ...none, taken: idsOf(call.members), call: { ...call, gas: verdict } }
    if (verdict.reason === "NotOperator") return { ...none, pause: notOperator(lane) }
    await putOffReverted(lane, job, call, verdict)
    return { ...none, taken: idsOf([...call.members, ...sameLine(job, sameKind)]) }
  } catch (error) {
    if ([LeaseLost, ChainUnreachable, DatabaseUnavailable].some((kind) => error instanceof kind)) throw error
    await putOffBroken(lane, first, error)
    return none
  }
}

/** The first effect with those that keep their order behind it. */
function sameLine(job: Job, waiting: [Effect, ...Effect[]]): Effect[] {
  const [first] = waiting
  const line = job.lineOf?.(first)
  return line === undefined ? [first] : waiting.filter((effect) => job.lineOf?.(effect) === line)
}

async function writeDown(lane: HeldLane, { taken, write, warning }: Written): Promise<Effect[]> {
  await inLane(lane, async (turn) => {
    await assertLease(turn, lane.lease)
    await write(turn)
  })
  if (warning) lane.context.log.warn(...warning)
  return taken
}

function idsOf(members: Effect[]): Set<string> {
  return new Set(members.map(({ id }) => id))
}

function notOperator({ signer, chain }: HeldLane): string {
  return `${signer.address} is not an operator of factory ${chain.config.factory_address}: the factory's admin must call setOperator for it`
}

/** Tries the call before it takes a nonce: the gas it needs, or how it reverts. */
async function simulate(lane: HeldLane, call: Call, busy: Set<string>): Promise<bigint | CallReverted> {
  // The outcome of a call to the same contract that is on its way is not known yet.
  if (busy.has(call.to)) return call.gas
  const estimate = await tryCall(lane.chain, lane.signer.address, call)
  if (estimate instanceof CallReverted) return estimate
  const withMargin = (estimate * 5n) / 4n
  return withMargin > call.gas ? withMargin : call.gas
}

/**
 * A call that reverts is tried again. When it still does after as many blocks as confirm one, and waiting cannot mend
 * it, its effects fail; everything else waits, and is seen in `stuck`.
 */
async function putOffReverted(lane: HeldLane, job: Job, call: Call, error: CallReverted): Promise<void> {
  const { confirmation_depth, block_time_seconds } = lane.chain.config
  const refusal = job.refusal(error.reason)
  await inLane(lane, async (turn) => {
    await assertLease(turn, lane.lease)
    for (const effect of call.members) {
      if (refusal && effect.attempts >= confirmation_depth) {
        await settleEffect(turn, effect.id, { error: refusal })
        continue
      }
      const blocks = Math.min(effect.attempts + 1, maxDelayBlocks)
      await putOff(turn, effect, error.message, blocks * block_time_seconds * 1_000)
    }
  })
}

const maxDelayBlocks = 10

async function putOff(turn: Turn, effect: Effect, because: string, milliseconds: number): Promise<void> {
  await turn.tx
    .update(effects)
    .set({
      attempts: effect.attempts + 1,
      last_error: because,
      due_at: new Date(turn.at.getTime() + milliseconds),
    })
    .where(eq(effects.id, effect.id))
}

/** Something is wrong with the effect itself, or with our code: it waits longer and longer, and is seen in `stuck`. */
async function putOffBroken(lane: HeldLane, effect: Effect, error: unknown): Promise<void> {
  const { error: failure } = loggable(error)
  lane.context.log.error({ effect_id: effect.id, src: effect.src, error: failure }, "it cannot be planned")
  const delay = Math.min(1_000 * 2 ** effect.attempts, maxDelayMilliseconds)
  await inLane(lane, async (turn) => {
    await assertLease(turn, lane.lease)
    await putOff(turn, effect, failure, delay)
  })
}

async function allocate(lane: HeldLane, job: Job, call: Call, fees: Fees): Promise<WatchedTransaction> {
  const since = performance.now()
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
  lane.checkpoint("allocate", job.src)
  const transaction = await findTransaction(lane.context.db.read, id)
  noteStep(lane.context, { name: "allocate", since, outcome: "allocated" }, transaction, call.members)
  return transaction
}
