import type { LaneRow } from "../../db/schema.ts"
import { loggable } from "../../platform/log.ts"
import { laneQueue } from "../../platform/queues.ts"
import type { ConnectedChain } from "../chain/chains.ts"
import { readFeeMarket } from "../chain/fee-market.ts"
import { type FeeLimits, type FeeMarket, feeLimits, limitsBelow } from "../chain/fees.ts"
import { SignerUnavailable, untilUnavailable } from "../chain/key-services/key-service-account.ts"
import { requireOwnChain } from "../chain/own-chain.ts"
import { reach } from "../chain/rpc.ts"
import { attempt, type Findings, join, nothing } from "./findings.ts"
import { outliveForgotten } from "./forgotten.ts"
import { byUrgency, giveResults } from "./give-results.ts"
import { type HeldLane, inLane, type Lane, type LaneMemory } from "./held-lane.ts"
import { fillHoles } from "./holes.ts"
import {
  assertLease,
  haltLane,
  type Lease,
  type LeasedLane,
  releaseLease,
  setLaneStatus,
  sightLane,
  takeLease,
} from "./leases.ts"
import { type Looked, lookAtTransactions } from "./look.ts"
import { compareWithChain } from "./nonces.ts"
import { pushOnTransactions } from "./push-on.ts"
import { sendWaitingEffects } from "./send-effects.ts"
import { hasWork } from "./turns.ts"
import { handOn } from "./without-key.ts"

/**
 * Runs one round of a lane: open transactions are watched, confirmed and sent again; then waiting effects become
 * transactions. It may be interrupted anywhere and run again: each step finds what the one before stored.
 * Returns "idle" if nothing is open.
 */
export async function tickLane(lane: Lane): Promise<"idle" | "at work"> {
  const leased = await takeOver(lane)
  if (!leased) return "at work"
  const stopRenewing = keepLease(lane, leased.lease)
  try {
    await handOn(lane, leased.lease)
    return await runRound(lane, leased)
  } finally {
    stopRenewing()
    // Lets a process that has the key take the lane first.
    if (lane.signer.account === null) await inLane(lane, (turn) => releaseLease(turn, leased.lease))
  }
}

/**
 * Releases the lane, so that the next holder need not wait until the lease runs out. If the
 * database is unavailable, it must.
 */
export async function leaveLane(lane: Lane): Promise<void> {
  const { lane_id } = lane.signer
  try {
    await inLane(lane, async (turn) => {
      const leased = await takeLease(turn, lane_id, lane.claimant)
      if (leased) await releaseLease(turn, leased.lease)
    })
  } catch (error) {
    lane.context.log.warn(
      { lane_id, ...loggable(error) },
      "the lease could not be released; the lane is free when the lease runs out",
    )
  }
}

async function takeOver({ context, signer, claimant, memory }: Lane): Promise<LeasedLane | null> {
  const { lane_id } = signer
  // Reads first, because only writes need a database transaction.
  const { mine, rival } = await sightLane(context.db.read, lane_id, claimant, context.clock(), memory.rival)
  if (rival) memory.rival = rival
  if (mine || rival) return mine
  const leased = await inLane({ context }, (turn) => takeLease(turn, lane_id, claimant, memory.rival))
  if (leased) delete memory.rival
  return leased
}

/** Renews the lease while a round runs, which slow providers may make longer than one lease. Stops after a limit. */
function keepLease(lane: Lane, lease: Lease): () => void {
  const since = performance.now()
  const renew = () => {
    if (performance.now() - since > maxLeases * lease.milliseconds) return clearInterval(timer)
    // A holder that lost the lease finds out at its next write.
    inLane(lane, (turn) => assertLease(turn, lease)).catch(() => {})
  }
  const timer = setInterval(renew, lease.milliseconds / 3)
  return () => clearInterval(timer)
}

/** How many leases a round may last. */
const maxLeases = 10

async function runRound(lane: Lane, { lease, row }: LeasedLane): Promise<"idle" | "at work"> {
  const { memory } = lane
  if (memory.is_right_chain && isWell(row) && !(await hasWork(lane.context.db.read, row.id))) return "idle"
  // Taking the nonces from the chain again invalidates what was seen. It must also be the right chain.
  if (row.next_nonce === null) {
    delete memory.seen_head
    delete memory.is_right_chain
  }
  await requireRightChain(lane)
  const held = await hold(lane, lease)
  const { looked, outlived, before, isHalted } = await watchTransactions(held, row, memory)

  // What people wait for comes before sending. The other results come last, while the pool is full.
  const [soon, later] = byUrgency(looked?.seen ?? [])
  const judged = memory.judged ?? new Map()
  const first = await giveResults(held, soon, judged)
  // What cannot be signed now need not take a nonce.
  const canSign = lane.signer.account !== null && !(before.failure instanceof SignerUnavailable)
  const maySend = canSign && !isHalted && before.pause === null
  const sent = maySend ? await sendWaitingEffects(held) : nothing
  const last = await giveResults(held, later, judged)
  memory.judged = new Map([...first.judged, ...last.judged])
  const given = join(first.findings, last.findings)
  const isComplete = join(before, given).failure === null
  if (isComplete && first.is_done && last.is_done) memory.seen_head = held.head
  else if (isComplete) lane.context.wake(laneQueue(lease.lane_id))

  const found = join(before, sent, given)
  rememberCost(lane, held.head, found)
  if (!isHalted && mayNoteStatus(row, { looked, outlived, found })) await noteStatus(held, row, found)
  // A provider that fails on something new must not hold back the results of what it accepted.
  if (sent.failure) throw sent.failure
  return "at work"
}

/**
 * Returns whether a round that found this may write it to the lane's row. One that did not look at transactions again
 * lacks their notices, so it only begins, renews or ends a pause.
 */
function mayNoteStatus(
  { status }: LaneRow,
  { looked, outlived, found }: { looked: Looked | null; outlived: Findings; found: Findings },
): boolean {
  if (looked) return true
  // What is in the way of outliving forgotten transactions is known only to a round that looked.
  if (outlived.pause !== null) return false
  return found.pause !== null || status === "paused"
}

/** Watches open transactions, and halts the lane if only an operator can help. */
async function watchTransactions(lane: HeldLane, row: LaneRow, memory: LaneMemory) {
  const compared = await compareSurely(lane, row)
  if (compared.failure) {
    // The operator must see what stops the round.
    await noteStatus(lane, row, compared)
    throw compared.failure
  }
  const wasHalted = row.status === "halted"
  if (compared.halt !== null) await halt(lane, compared.halt)

  const looked = lane.head === memory.seen_head ? null : await lookAtTransactions(lane)
  const pushed = looked ? await pushOnTransactions(lane, looked) : nothing
  const filled = looked ? await fillBelow(lane, looked) : nothing
  if (pushed.halt !== null && compared.halt === null && !wasHalted) await halt(lane, pushed.halt)
  const outlived = withObstacle(await outliveForgotten(lane, row, memory), join(pushed, filled))
  const seen = looked?.findings ?? nothing
  const before = join(compared, seen, pushed, filled, outlived, goneProviders(lane.chain))
  return { looked, outlived, before, isHalted: wasHalted || before.halt !== null }
}

/** Compares again after checking the chain's id: a reason to halt may come from another chain at the same URL. */
async function compareSurely(lane: HeldLane, row: LaneRow): Promise<Findings> {
  const compared = await compareWithChain(lane, row)
  if (compared.halt === null) return compared
  await requireOwnChain(lane.chain)
  return await compareWithChain({ ...lane, used_nonces: await usedNonces(lane) }, row)
}

/** Adds what delays the end of a restored lane's pause, which nothing else reports. */
function withObstacle(outlived: Findings, { notices: [first] }: Findings): Findings {
  if (outlived.pause === null || first === undefined) return outlived
  return { ...outlived, pause: `${outlived.pause}; in the way now: ${first}` }
}

async function fillBelow(lane: HeldLane, { lowest_open: lowest }: Looked): Promise<Findings> {
  return lowest ? await attempt(lane, lowest, () => fillHoles(lane, lowest)) : nothing
}

/** Returns whether the lane has nothing to report: it is not held up, and has a next nonce. */
function isWell({ status, reason, next_nonce, restored_at }: LaneRow): boolean {
  return (
    next_nonce !== null &&
    restored_at === null &&
    (status === "halted" || (status === "open" && reason === null))
  )
}

async function hold(
  { context, chain, signer, jobs, checkpoint, memory }: Lane,
  lease: Lease,
): Promise<HeldLane> {
  const newest = await chain.headers.follow()
  const { number: head } = newest
  const used_nonces = await usedNonces({ chain, signer })
  let asked: Promise<FeeMarket> | undefined
  const market = () => {
    asked ??= readFeeMarket(chain.providers, newest)
    return asked
  }
  const limits = limitsNow(chain, memory, head)
  const account = signer.account && untilUnavailable(signer.account)
  const own = { ...signer, account }
  return { context, chain, signer: own, jobs, checkpoint, lease, head, used_nonces, market, limits }
}

async function usedNonces({ chain, signer: { address } }: Pick<Lane, "chain" | "signer">): Promise<number> {
  return await reach(() => chain.rpc.getTransactionCount({ address, blockTag: "latest" }))
}

/**
 * A node's cap is forgotten after some blocks: it may have been raised, or the refusal may have meant something else.
 */
const forgottenAfterBlocks = 50n

function limitsNow({ config }: ConnectedChain, { refused_cost }: LaneMemory, head: bigint): FeeLimits {
  const limits = feeLimits(config)
  const isKnown = refused_cost !== undefined && head - refused_cost.at < forgottenAfterBlocks
  return isKnown ? limitsBelow(limits, refused_cost.cost) : limits
}

function rememberCost({ memory }: Lane, head: bigint, { refused_cost: cost }: Findings): void {
  if (cost === null) return
  const { refused_cost: known } = memory
  const isLess = !known || head - known.at >= forgottenAfterBlocks || cost < known.cost
  memory.refused_cost = { cost: isLess ? cost : known.cost, at: head }
}

function goneProviders({ chain_id, providers }: ConnectedChain): Findings {
  const gone = providers.health().filter(({ state }) => state === "gone")
  const notices = gone.map(
    ({ number, said }) =>
      `provider number ${number} in rpc_urls of chain ${chain_id} has not answered for an hour and is no longer waited for (${said}): repair it, or remove it from CHAINS`,
  )
  return { ...nothing, notices }
}

/**
 * Requires the configured chain: on another one nonces would be wasted, and a call to an address without a
 * contract succeeds and does nothing.
 */
async function requireRightChain({ chain, memory }: Lane): Promise<void> {
  if (memory.is_right_chain) return
  const { chain_id } = chain
  await requireOwnChain(chain)
  const { factory_address: address } = chain.config
  if (!(await reach(() => chain.rpc.getCode({ address }))))
    throw new Error(
      `chain ${chain_id} has no contract at factory_address ${address}: deploy the factory, or correct factory_address in CHAINS and restart`,
    )
  await requireDesk(chain)
  memory.is_right_chain = true
}

async function requireDesk({ chain_id, config, generations, rpc }: ConnectedChain): Promise<void> {
  const { desk_address: address, factory_address } = config
  if (address === null || (await generations.ofFactory(factory_address)) === 1) return
  if (!(await reach(() => rpc.getCode({ address }))))
    throw new Error(
      `chain ${chain_id} has no contract at desk_address ${address}: run deploy-factory again, or correct desk_address in CHAINS and restart`,
    )
}

/** Halts the lane. Open transactions are still watched. */
async function halt(lane: HeldLane, reason: string): Promise<void> {
  lane.context.log.error({ lane_id: lane.lease.lane_id, reason }, "the lane is halted")
  await inLane(lane, (turn) => haltLane(turn, lane.lease, reason))
}

/** Writes the outcome of this round to the lane's row, for the operator, if it differs from the last one. */
async function noteStatus(lane: HeldLane, before: LaneRow, { pause, notices }: Findings): Promise<void> {
  const { lane_id } = lane.lease
  const status = pause === null ? "open" : "paused"
  const reason = pause ?? notices[0] ?? null
  if (before.status === status && before.reason === reason) return
  await inLane(lane, (turn) => setLaneStatus(turn, lane.lease, status, reason))
  const isPausedStill = status === "paused" && before.status === "paused"
  if (isPausedStill && withoutNumbers(before.reason) === withoutNumbers(reason)) return
  if (reason) lane.context.log.error({ lane_id, status, reason }, "the lane is held up")
  else lane.context.log.info({ lane_id }, "the lane continues")
}

/** Masks numbers: what a paused lane lacks changes with the fees at every block, which is no news for the log. */
function withoutNumbers(reason: string | null): string | null {
  return reason?.replaceAll(/\d[\d.]*/g, "0") ?? null
}
