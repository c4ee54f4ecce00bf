import type { ConnectedChain } from "../src/chain/chains.ts"
import {
  assertLease,
  type Claimant,
  type Lease,
  type LeasedLane,
  releaseLease,
  setLaneStatus,
  takeLease,
} from "../src/chain/lanes.ts"
import { ChainUnreachable, reach } from "../src/chain/rpc.ts"
import type { Signer } from "../src/chain/signers.ts"
import { type Context, inTurn } from "../src/context.ts"
import type { Turn } from "../src/db/turn.ts"
import { giveResults, lookAtTransactions, sendOn } from "./advance-transactions.ts"
import { compareWithChain } from "./nonces.ts"
import { sendWaitingEffects } from "./send-effects.ts"
import type { Checkpoint } from "./step.ts"

/** One signer on one chain: who sends, and for whom in this process. */
export type Lane = {
  context: Context
  chain: ConnectedChain
  signer: Signer
  claimant: Claimant
  checkpoint: Checkpoint
  memory: LaneMemory
}

/** What a lane keeps between its rounds; losing it costs a few questions to the chain. */
export type LaneMemory = {
  /** The newest block at which everything on its way was looked at. */
  seen_head?: bigint
  /** Set once the providers have said that they serve this chain. */
  is_right_chain?: boolean
}

/** A lane that is held, at a block. */
export type HeldLane = Lane & {
  lease: Lease
  head: bigint
  /** Transactions of the signer that the chain's newest block knows: the nonces below it are used. */
  used_nonces: number
  is_halted: boolean
  /** What a person should know of this round, most important first. */
  notices: string[]
  /** Why nothing new is sent in this round, though nothing is wrong with what is on its way. */
  pause: string | null
}

/**
 * One round of a lane: what is on its way is watched, confirmed and sent again; then waiting effects become
 * transactions. May be cut off anywhere and run again: each step finds what the one before it stored.
 */
export async function tickLane(lane: Lane): Promise<void> {
  const leased = await inTurn(lane.context, null, (turn) =>
    takeLease(turn, lane.signer.lane_id, lane.claimant),
  )
  if (!leased) return
  const stopRenewing = keepLease(lane, leased.lease)
  try {
    await runRound(lane, leased)
  } finally {
    stopRenewing()
  }
}

/** A round may take longer than a lease where providers are slow: nobody need begin it anew for that, up to a time. */
function keepLease(lane: Lane, lease: Lease): () => void {
  const since = performance.now()
  const renew = () => {
    if (performance.now() - since > maxLeases * lease.milliseconds) return clearInterval(timer)
    // Whoever lost the lease finds out with the next thing it writes.
    inLane(lane, (turn) => assertLease(turn, lease)).catch(() => {})
  }
  const timer = setInterval(renew, lease.milliseconds / 3)
  return () => clearInterval(timer)
}

/** The leases that one round may take. */
const maxLeases = 10

async function runRound(lane: Lane, leased: LeasedLane): Promise<void> {
  await requireRightChain(lane)
  const { number: head } = await lane.chain.headers.follow()
  const { address } = lane.signer
  const used_nonces = await reach(() => lane.chain.rpc.getTransactionCount({ address, blockTag: "latest" }))
  const is_halted = leased.lane.status === "halted"
  const round = { lease: leased.lease, head, used_nonces, is_halted, notices: [], pause: null }
  const held: HeldLane = { ...lane, ...round }

  await compareWithChain(held, leased).catch(async (error) => {
    // What keeps the round from going on is for the operator to see, too.
    if (held.notices.length > 0) await noteStatus(held, leased)
    throw error
  })
  const isNewBlock = head !== lane.memory.seen_head
  const places = isNewBlock ? await lookAtTransactions(held) : null
  if (places) await sendOn(held, places)
  const unsent = held.is_halted ? null : await unreachable(() => sendWaitingEffects(held))
  // Giving results takes longest, so it comes last: the pool is full meanwhile.
  const isAllSeen = places === null || (await giveResults(held, places))
  if (isAllSeen) lane.memory.seen_head = head
  else if (places?.is_complete) lane.context.wake(`lane:${lane.signer.lane_id}`)
  const isNews = places !== null || held.pause !== null || leased.lane.status === "paused"
  if (isNews) await noteStatus(held, leased)
  if (unsent) throw unsent
}

/** A provider that fails to take something new must not keep back the results of what it took. */
async function unreachable(work: () => Promise<void>): Promise<ChainUnreachable | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (error instanceof ChainUnreachable) return error
    throw error
  }
}

/** Gives the lane back at the end, so that its next holder need not wait for the lease to run out. */
export async function leaveLane(lane: Lane): Promise<void> {
  await inTurn(lane.context, null, async (turn) => {
    const leased = await takeLease(turn, lane.signer.lane_id, lane.claimant)
    if (leased) await releaseLease(turn, leased.lease)
  })
}

/** One database transaction of a lane's own work, which no request caused. */
export function inLane<T>(lane: Lane, work: (turn: Turn) => Promise<T>): Promise<T> {
  return inTurn(lane.context, null, work)
}

/** Another chain would use up nonces, and a call to an address without a contract succeeds and does nothing. */
async function requireRightChain(lane: Lane): Promise<void> {
  if (lane.memory.is_right_chain) return
  const { chain_id } = lane.chain
  const served = await lane.chain.providers.askAll({ method: "eth_chainId" })
  const wrong = served.find((id) => Number(id) !== chain_id)
  if (wrong !== undefined)
    throw new Error(
      `an RPC address of chain ${chain_id} serves chain ${Number(wrong)}: correct rpc_urls in CHAINS and restart`,
    )
  const { factory_address: address } = lane.chain.config
  if (!(await reach(() => lane.chain.rpc.getCode({ address }))))
    throw new Error(
      `chain ${chain_id} has no contract at factory_address ${address}: deploy the factory, or correct it in CHAINS and restart`,
    )
  lane.memory.is_right_chain = true
}

/** Says in the lane's row, for the operator, how this round went; only when it went otherwise than the one before. */
async function noteStatus(lane: HeldLane, { lane: before }: LeasedLane): Promise<void> {
  const status = lane.pause === null ? "open" : "paused"
  const reason = lane.pause ?? lane.notices[0] ?? null
  if (lane.is_halted || (before.status === status && before.reason === reason)) return
  await inLane(lane, (turn) => setLaneStatus(turn, lane.lease, status, reason))
  if (reason) lane.context.log.error({ lane_id: lane.lease.lane_id, status, reason }, "the lane is held up")
  else lane.context.log.info({ lane_id: lane.lease.lane_id }, "the lane gets on again")
}
