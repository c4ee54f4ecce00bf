import { eq } from "drizzle-orm"
import { DatabaseUnavailable } from "../../db/database.ts"
import { effects } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { loggable } from "../../platform/log.ts"
import { laneQueue } from "../../platform/queues.ts"
import { sendEvent, settleEffect } from "../actors/runtime.ts"
import { inCoin } from "../chain/coin.ts"
import { callsIn } from "../chain/desk.ts"
import { most } from "../chain/extremes.ts"
import { batchSize, costOf, type Fees, firstFees, gasFor } from "../chain/fees.ts"
import { CallReverted, ChainUnreachable, reach } from "../chain/rpc.ts"
import { tryCall } from "../chain/try-call.ts"
import {
  type Call,
  type Effect,
  isOutput,
  type Job,
  type JobResult,
  jobFor,
  type Write,
} from "../jobs/job.ts"
import { sendFirst } from "./broadcast.ts"
import { isFinal } from "./final-block.ts"
import { attempt, type Findings, join, nothing, noticed } from "./findings.ts"
import { whyToWaitForForgotten } from "./forgotten.ts"
import { type HeldLane, inLane } from "./held-lane.ts"
import { assertLease, LeaseLost } from "./leases.ts"
import { keepOwn } from "./moves.ts"
import { noteStep } from "./note-step.ts"
import { isRefusedAtDepth } from "./refused.ts"
import {
  allocateTransaction,
  findTransaction,
  isInFlight,
  openTransactions,
  reservedWei,
  type WatchedTransaction,
} from "./transactions.ts"
import {
  addShare,
  busyElsewhere,
  contractsOf,
  maxDelayMilliseconds,
  maxInFlight,
  nextTurn,
  ofTheSameKind,
  sharesOf,
  spellMilliseconds,
  waitingWork,
} from "./turns.ts"

/**
 * Turns waiting effects into transactions, organizations taking turns, while the pool has room and the money lasts, for
 * about a quarter of a block time.
 */
export async function sendWaitingEffects(lane: HeldLane): Promise<Findings> {
  const found: Findings[] = []
  try {
    for await (const each of sendOneByOne(lane)) found.push(each)
  } catch (error) {
    if (!(error instanceof ChainUnreachable)) throw error
    // The earlier findings still count.
    const notice = `nothing new can be sent on chain ${lane.chain.chain_id}: ${error.message}`
    found.push({ ...noticed(notice), failure: error })
  }
  return join(...found)
}

/** Yields the findings of each transaction; the last may say why no more are sent. */
async function* sendOneByOne(lane: HeldLane): AsyncGenerator<Findings> {
  const open = await openTransactions(lane.context.db.read, lane.lease.lane_id)
  const inFlight = open.filter(isInFlight)
  if (inFlight.length >= maxInFlight) return
  // Then the next round starts, which applies the results of what was mined in the meantime.
  const deadline = performance.now() + spellMilliseconds(lane.chain.config)
  const passed = new Set<string>()
  const ownWork = async () => await keepOwn(lane, await waitingWork(lane))
  let waiting = await ownWork()
  if (waiting.length === 0) return
  const pause = await whyToWaitForForgotten(lane)
  if (pause !== null) return yield { ...nothing, pause }

  const shares = await sharesOf(lane, inFlight)
  const busy = { here: new Set(inFlight.flatMap(contractsOf)), elsewhere: await busyElsewhere(lane) }
  const { address } = lane.signer
  let funds = (await reach(() => lane.chain.rpc.getBalance({ address }))) - reservedWei(inFlight)
  for (let room = maxInFlight - inFlight.length; room > 0; ) {
    const next = nextTurn(waiting, shares)
    if (!next) return
    const { taken, call, lack } = await planNext(lane, ofTheSameKind(waiting, next), busy)
    for (const id of taken) passed.add(id)
    waiting = waiting.filter(({ id }) => !taken.has(id))
    if (lack !== null) yield noticed(lack)
    if (!call) continue
    const fees = firstFees(call.gas, await lane.market(), lane.limits)
    const cost = costOf(call.gas, fees)
    funds -= cost
    if (funds < 0n) return yield { ...nothing, pause: lackOf(lane, -funds, cost) }
    for (const { to } of callsIn(call)) busy.here.add(to)
    addShare(shares, next)
    room -= 1
    const transaction = await allocate(lane, next.src, call, fees)
    const sent = await attempt(lane, transaction, () => sendFirst(lane, transaction))
    yield sent
    if (sent.pause !== null || sent.failure) return
    if (performance.now() > deadline) return lane.context.wake(laneQueue(lane.lease.lane_id))
    if (room % lookUpAfter === 0) waiting = (await ownWork()).filter(({ id }) => !passed.has(id))
  }
}

/** New work is read after this many transactions, because planning and sending a whole window takes time. */
const lookUpAfter = 4

function lackOf({ signer, chain: { config } }: HeldLane, lack: bigint, cost: bigint): string {
  const transactions = 10n ** BigInt(config.coin_decimals) / most(cost, 1n)
  return `${signer.address} lacks ${inCoin(lack, config)} for its next transaction: send it at least that; the lane continues by itself; 1 ${config.coin_symbol} pays for about ${transactions} such transactions`
}

/** `lack`: the role that the key lacks for all work of this kind. */
type Planned = { taken: Set<string>; call: Call | null; lack: string | null }

/** The contracts that open transactions call, by this lane and by others. */
type Busy = { here: Set<string>; elsewhere: Set<string> }

/** Plans the next call. An effect that cannot be planned is put off, so that it stops no other. */
async function planNext(lane: HeldLane, sameKind: [Effect, ...Effect[]], busy: Busy): Promise<Planned> {
  const [first] = sameKind
  const job = jobFor(lane.jobs, first.src)
  const none = { taken: idsOf(sameLine(job, sameKind)), call: null, lack: null }
  try {
    const call = await planWithin(lane, job, sameKind)
    if (call.do === "wait") return { ...none, taken: idsOf(call.effects) }
    if (call.do === "write") {
      const written = await writeDown(lane, call)
      // A write that closed nothing may not make a call possible, so the round goes on without this line.
      return written.length === 0 ? none : { ...none, taken: idsOf(written) }
    }
    // Work that keeps an order uses one lane at a time.
    if (job.lineOf && callsIn(call).some(({ to }) => busy.elsewhere.has(to))) return none
    const verdict = await simulate(lane, call, busy.here)
    if (typeof verdict === "bigint")
      return { ...none, taken: idsOf(call.members), call: { ...call, gas: verdict } }
    const refused = await refusedKey(lane, call, verdict)
    // The key may have the roles for other work.
    if (refused?.is_by_ours) return { ...none, taken: idsOf(sameKind), lack: refused.because }
    await putOffReverted(lane, job, call, {
      reason: verdict.reason,
      message: refused?.because ?? verdict.message,
    })
    return { ...none, taken: idsOf([...call.members, ...sameLine(job, sameKind)]) }
  } catch (error) {
    if ([LeaseLost, ChainUnreachable, DatabaseUnavailable].some((kind) => error instanceof kind)) throw error
    await putOffBroken(lane, first, error)
    return none
  }
}

/** The gas of a batch call that does not depend on its members. */
const fixedGas = 50_000n

/**
 * Returns the next plan. A batch that would exceed the cost limit of one transaction is
 * planned again with fewer members.
 */
async function planWithin(lane: HeldLane, job: Job, waiting: [Effect, ...Effect[]]) {
  const { chain, context, limits } = lane
  const plan = await job.plan(chain, context.db.read, waiting)
  if (plan.do !== "call" || plan.members.length < 2) return plan
  const { members } = plan
  const each = most((plan.gas - fixedGas) / BigInt(members.length), 1n)
  // Zero gas lifts the cost limit: these are the fees it needs, whatever the whole batch would cost.
  const wanted = firstFees(0n, await lane.market(), limits)
  const size = batchSize(members.length, { fixed: fixedGas, each }, wanted, limits)
  if (size >= members.length) return plan
  const [first, ...others] = members.slice(0, Math.max(size, 1))
  return first ? await job.plan(chain, context.db.read, [first, ...others]) : plan
}

/** Returns the first effect and those that must stay in order behind it. */
function sameLine(job: Job, waiting: [Effect, ...Effect[]]): Effect[] {
  const [first] = waiting
  const line = job.lineOf?.(first)
  return line === undefined ? [first] : waiting.filter((effect) => job.lineOf?.(effect) === line)
}

async function writeDown(lane: HeldLane, { taken, write, warning }: Write): Promise<Effect[]> {
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

type RefusedKey = { because: string; is_by_ours: boolean }

/**
 * Returns why the key may not make the call; null if it may. A factory that CHAINS no longer names
 * holds up only its own collections.
 */
async function refusedKey(
  { chain, signer }: HeldLane,
  call: Call,
  { reason }: CallReverted,
): Promise<RefusedKey | null> {
  if (!["NotAllowed", "NotOperator"].includes(reason)) return null
  const [{ to } = call] = callsIn(call)
  const { factory } = await chain.generations.originOf(to)
  const is_by_ours = factory === chain.config.factory_address
  const mended = is_by_ours
    ? "for the call that the factory's admin must make, run: operator chain roles"
    : "the factory is no longer in CHAINS, but its admin can grant the role or resume it"
  return {
    because: `factory ${factory} does not let ${signer.address} do this, because its role is missing or paused: ${mended}`,
    is_by_ours,
  }
}

/** Simulates the call before it takes a nonce. Returns the gas limit, or how the call reverts. */
async function simulate(lane: HeldLane, call: Call, busy: Set<string>): Promise<bigint | CallReverted> {
  // The outcome of an open call to the same contract is not known yet. What was refused before may be again, for a fee.
  const isNew = call.members.every(({ attempts }) => attempts === 0)
  if (isNew && callsIn(call).some(({ to }) => busy.has(to))) return call.gas
  const estimate = await tryCall(lane.chain, lane.signer.address, call)
  return estimate instanceof CallReverted ? estimate : gasFor(estimate)
}

/**
 * Puts off a call that reverts. Its effects fail if it still reverts after as many attempts as the confirmation depth,
 * and neither waiting nor another node can help, unless an earlier transaction did the work, which counts once it is
 * final. Otherwise they wait, and show in `stuck`.
 */
async function putOffReverted(
  lane: HeldLane,
  job: Job,
  call: Call,
  error: Pick<CallReverted, "reason" | "message">,
): Promise<void> {
  const { confirmation_depth, block_time_seconds } = lane.chain.config
  const { read } = lane.context.db
  const results = new Map<Effect, Exclude<JobResult, "again">>()
  const untold = new Map<Effect, string>()
  const tried = call.members.filter(({ attempts }) => attempts >= confirmation_depth)
  const refusal = job.refusal(error.reason)
  if (refusal && tried.length > 0 && (await isRefusedAtDepth(lane, job, call))) {
    for (const effect of tried) {
      if (await job.mayPass?.(read, effect, error.reason)) continue
      try {
        const earlier = await job.earlier?.(lane.chain, read, effect)
        // No lane watches that transaction: if it were undone, nothing would do its work again.
        if (earlier && !(await isFinal(lane, earlier))) continue
        results.set(effect, earlier ?? { error: refusal })
      } catch (failure) {
        // Providers that do not return logs must not hold up the lane's other work.
        if (!(failure instanceof ChainUnreachable)) throw failure
        untold.set(effect, `${error.message}, and no provider tells who came first: ${failure.message}`)
      }
    }
  }
  await inLane(lane, async (turn) => {
    await assertLease(turn, lane.lease)
    for (const effect of call.members) {
      const result = results.get(effect)
      const blocks = Math.min(effect.attempts + 1, maxDelayBlocks)
      if (isOutput(result) && job.submittedEvent)
        await sendEvent(turn, effect.actor_id, { type: job.submittedEvent, ...result.output })
      if (result) await settleEffect(turn, effect.id, result)
      else
        await putOff(turn, effect, untold.get(effect) ?? error.message, blocks * block_time_seconds * 1_000)
    }
    if (results.size > 0) await job.afterRefusal?.(turn, [...results.keys()])
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

/** Puts off an effect that is broken, or hits a bug: it waits longer each time, and shows in `stuck`. */
async function putOffBroken(lane: HeldLane, effect: Effect, error: unknown): Promise<void> {
  const { error: failure } = loggable(error)
  lane.context.log.error(
    { effect_id: effect.id, src: effect.src, error: failure },
    "the effect could not be planned and is tried again",
  )
  const delay = Math.min(1_000 * 2 ** effect.attempts, maxDelayMilliseconds)
  await inLane(lane, async (turn) => {
    await assertLease(turn, lane.lease)
    await putOff(turn, effect, failure, delay)
  })
}

async function allocate(lane: HeldLane, kind: string, call: Call, fees: Fees): Promise<WatchedTransaction> {
  const since = performance.now()
  const id = await inLane(lane, async (turn) => {
    await call.reserve?.(turn)
    return await allocateTransaction(turn, lane.lease, {
      chain_id: lane.chain.chain_id,
      kind,
      to: call.to,
      data: call.data,
      gas: call.gas,
      fees,
      effect_ids: call.members.map((member) => member.id),
    })
  })
  lane.checkpoint("allocate", kind)
  const transaction = await findTransaction(lane.context.db.read, id)
  noteStep(lane.context, { name: "allocate", since, outcome: "allocated" }, transaction, call.members)
  return transaction
}
