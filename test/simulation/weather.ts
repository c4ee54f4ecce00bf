import type { Hex } from "viem"
import type { Cast } from "./cast.ts"
import {
  accountOf,
  type Block,
  blockGasLimit,
  forgetBlocks,
  headOf,
  mineBlock,
  readTransaction,
  type SimulatedChain,
} from "./chain/chain.ts"
import type { PoolTransaction } from "./chain/pool.ts"
import type { Clients } from "./clients.ts"
import { dearestPeace, type Fault, rageSeconds } from "./faults.ts"
import { type Provider, setMood } from "./providers.ts"
import type { Receiver } from "./receiver.ts"
import { note, type Simulation, scheduleIn, usualSeamMilliseconds } from "./scheduler.ts"
import { streamOf } from "./streams.ts"
import type { WakeUpLine } from "./wake-ups.ts"
import { account } from "./wallets.ts"

/** Everything that faults act on. */
export type Surroundings = {
  simulation: Simulation
  cast: Cast
  clients: Clients
  wakeUpLine: WakeUpLine
  providers: Provider[]
  receiver: Receiver
  chain: SimulatedChain
  miner: Miner
  /** Does what an operator or a stranger does. */
  act(
    fault: Extract<
      Fault,
      {
        kind:
          | "operator"
          | "rotate"
          | "restore"
          | "authorizer"
          | "poor"
          | "pause"
          | "refresh"
          | "rival"
          | "replace"
          | "hand_on"
          | "burst"
          | "hostile"
      }
    >,
  ): void
}

/** The block producer. */
type Miner = {
  mood: "well" | "none" | "empty" | "fast"
  /** The base fee to which others drive the price, in gwei. */
  gwei: number
  /** Blocks that stay empty after a reorganization. */
  empty_blocks: number
  /** Transactions of another sender with a signer's key, who keeps sending them. */
  stolen: PoolTransaction[]
  reorganizations: number
  /** When each block was made, in milliseconds since the beginning. */
  made: { number: number; at: number }[]
}

export function createMiner(): Miner {
  return { mood: "well", gwei: firstGwei, empty_blocks: 0, stolen: [], reorganizations: 0, made: [] }
}

/** The base fee of the first blocks. */
const firstGwei = 1

/** How to end each current fault. */
type Ends = Set<() => void>

/** Makes each fault happen at its time, and ends it. Overlapping faults of one kind end with the first. */
export function unleash(around: Surroundings, faults: readonly Fault[]): Ends {
  const { simulation } = around
  const ends: Ends = new Set()
  for (const fault of faults)
    scheduleIn(simulation, fault.at * 1_000, null, () => {
      note(simulation, `fault ${JSON.stringify(fault)}`)
      const end = begin(around, fault)
      if (!end || !("for_seconds" in fault)) return
      ends.add(end)
      scheduleIn(simulation, fault.for_seconds * 1_000, null, () => {
        if (ends.delete(end)) end()
      })
    })
  return ends
}

/** Ends whatever still goes wrong. */
export function calm(around: Surroundings, faults: readonly Fault[], ends: Ends): void {
  const { simulation, cast, clients, wakeUpLine, providers, receiver, chain, miner } = around
  note(simulation, "calm")
  for (const end of ends) end()
  ends.clear()
  simulation.seam_milliseconds = usualSeamMilliseconds
  simulation.disk = "well"
  cast.repeat_probability = 0
  clients.mood = "well"
  wakeUpLine.mood = "well"
  receiver.mood = "well"
  for (const provider of providers) setMood(provider, "well", chain)
  miner.mood = "well"
  // A transaction signed with a removed key cannot be offered at another price.
  const peace = faults.some(({ kind }) => kind === "rotate") ? firstGwei : dearestPeace
  miner.gwei = Math.min(miner.gwei, peace)
  const dearest = BigInt(dearestPeace) * 10n ** 9n
  if (headOf(chain).base_fee > dearest) chain.jump_to_base_fee = dearest
  for (const { process } of cast.alive.values()) {
    process.dies_at_step = Number.POSITIVE_INFINITY
    process.skew_milliseconds = 0
    process.frozen_until = 0
  }
}

/** Begins a fault, and returns what ends it. */
function begin(around: Surroundings, fault: Fault): (() => void) | null {
  const { simulation, cast, clients, wakeUpLine, providers, receiver, chain, miner } = around
  switch (fault.kind) {
    case "die": {
      const life = cast.alive.get(fault.process)
      if (!life) return null
      life.rest_seconds = fault.rest_seconds
      life.process.dies_at_step = life.process.steps + fault.steps
      return null
    }
    case "freeze": {
      const life = cast.alive.get(fault.process)
      if (life) life.process.frozen_until = simulation.now + fault.for_seconds * 1_000
      return null
    }
    case "clock": {
      const life = cast.alive.get(fault.process)
      if (life) life.process.skew_milliseconds = fault.by_seconds * 1_000
      return null
    }
    case "slow":
      simulation.seam_milliseconds = fault.milliseconds
      return () => {
        simulation.seam_milliseconds = usualSeamMilliseconds
      }
    case "disk":
      simulation.disk = fault.mood
      return () => {
        simulation.disk = "well"
      }
    case "repeat":
      cast.repeat_probability = fault.probability
      return () => {
        cast.repeat_probability = 0
      }
    case "wake-ups":
      wakeUpLine.mood = fault.mood
      return () => {
        wakeUpLine.mood = "well"
      }
    case "provider": {
      const provider = providers[fault.provider]
      if (!provider) return null
      setMood(provider, fault.mood, chain)
      return () => setMood(provider, "well", chain)
    }
    case "reorganize":
      reorganize(around, fault)
      return null
    case "evict":
      for (const transaction of chain.pool.all().slice(0, fault.count)) chain.pool.drop(transaction)
      return null
    case "prices":
      miner.gwei = fault.gwei
      chain.jump_to_base_fee = BigInt(Math.round(fault.gwei * 1e9))
      return () => {
        miner.gwei = fault.then_gwei
      }
    case "blocks":
      miner.mood = fault.mood
      return () => {
        miner.mood = "well"
      }
    case "steal":
      stealInTime(around, fault)
      return null
    case "clients":
      clients.mood = fault.mood
      return () => {
        clients.mood = "well"
      }
    case "receiver":
      receiver.mood = fault.mood
      return () => {
        receiver.mood = "well"
      }
    case "hasty":
    case "instant":
      return null
    case "operator":
    case "rotate":
    case "restore":
    case "authorizer":
    case "poor":
    case "pause":
    case "refresh":
    case "rival":
    case "replace":
    case "hand_on":
    case "burst":
    case "hostile":
      around.act(fault)
      return null
  }
}

/** Work of the world itself, during which no time passes. */
function aside(simulation: Simulation, work: () => Promise<void>): void {
  simulation.busy += 1
  void work().finally(() => {
    simulation.busy -= 1
  })
}

/** Replaces the last blocks by as many others, the first of them empty. */
function reorganize(
  { simulation, chain, miner }: Surroundings,
  fault: Extract<Fault, { kind: "reorganize" }>,
): void {
  const chance = streamOf(BigInt(fault.salt), "reorganization")
  const depth = Math.min(fault.depth, headOf(chain).number - firstBlocks)
  if (depth <= 0) return
  const times = chain.blocks.slice(-depth).map(({ timestamp }) => timestamp)
  miner.reorganizations += 1
  const forgotten = fault.without === undefined ? null : signer(fault.without).address.toLowerCase()
  forgetBlocks(chain, headOf(chain).number - depth, (transaction) => {
    if (isStolen(miner, transaction)) return true
    return transaction.from !== forgotten && chance.happens(fault.kept)
  })
  miner.empty_blocks = Math.max(miner.empty_blocks, fault.delay)
  aside(simulation, async () => {
    for (const timestamp of times) await mine({ simulation, chain, miner }, timestamp)
  })
}

/** The blocks that a history begins with, which contain the factory. */
export const firstBlocks = 4

function isStolen({ stolen }: Miner, { hash }: PoolTransaction): boolean {
  return stolen.some((each) => each.hash === hash)
}

/** Keeps making blocks, one every `blockSeconds`. */
export function startMining(
  around: Pick<Surroundings, "simulation" | "chain" | "miner">,
  blockSeconds: number,
): void {
  const { simulation, chain, miner } = around
  const pause = miner.mood === "fast" ? blockSeconds / 4 : blockSeconds
  scheduleIn(simulation, pause * 1_000, null, () => {
    aside(simulation, async () => {
      const now = Math.floor((simulation.epoch + simulation.now) / 1_000)
      if (miner.mood !== "none") await mine(around, Math.max(headOf(chain).timestamp + 1, now))
    })
    startMining(around, blockSeconds)
  })
}

/** Makes blocks without a pause, as a chain does that was late. */
export async function mineAtOnce(
  { simulation, chain, miner }: Pick<Surroundings, "simulation" | "chain" | "miner">,
  count: number,
): Promise<void> {
  simulation.busy += 1
  for (let made = 0; made < count; made++)
    await mine({ simulation, chain, miner }, headOf(chain).timestamp + 1)
  simulation.busy -= 1
}

async function mine(
  { simulation, chain, miner }: Pick<Surroundings, "simulation" | "chain" | "miner">,
  timestamp: number,
): Promise<Block> {
  chain.others_gas = othersGas(chain, miner)
  for (const transaction of miner.stolen)
    if (transaction.nonce >= accountOf(chain, transaction.from).nonce) {
      const waiting = chain.pool
        .all()
        .find(({ from, nonce }) => from === transaction.from && nonce === transaction.nonce)
      if (waiting) chain.pool.drop(waiting)
      chain.pool.putBack(transaction)
    }
  const isEmpty = miner.mood === "empty" || miner.empty_blocks > 0
  miner.empty_blocks = Math.max(0, miner.empty_blocks - 1)
  const block = await mineBlock(chain, timestamp, () => !isEmpty)
  miner.made.push({ number: block.number, at: simulation.now })
  note(simulation, `block ${block.number} ${block.hash.slice(0, 10)} with ${block.transactions.length}`)
  return block
}

/** Gas used by others drives the price up, or lets it come down again. */
function othersGas(chain: SimulatedChain, { gwei }: Miner): bigint {
  const difference = Number(headOf(chain).base_fee) / 1e9 - gwei
  if (Math.abs(difference) < gwei / 16) return blockGasLimit / 2n
  return difference < 0 ? blockGasLimit : 0n
}

/** The account whose key is a signer's at first. */
function signer(place: number) {
  return account(1 + place)
}

/** A thief of a nonce waits until the service has used one. */
function stealInTime(around: Surroundings, fault: Extract<Fault, { kind: "steal" }>): void {
  const { simulation, chain } = around
  const address = signer(fault.signer).address.toLowerCase()
  const isTime = !fault.is_instead || chain.pool.holds(address, accountOf(chain, address).nonce)
  if (isTime) aside(simulation, () => steal(around, fault))
  else if (simulation.now < rageSeconds * 1_000)
    scheduleIn(simulation, stealMilliseconds, null, () => stealInTime(around, fault))
}

const stealMilliseconds = 200

/** Another sender uses a signer's key, after the waiting transactions or instead of one. */
async function steal(
  { chain, miner }: Surroundings,
  fault: Extract<Fault, { kind: "steal" }>,
): Promise<void> {
  const thief = signer(fault.signer)
  const address = thief.address.toLowerCase()
  let { nonce } = accountOf(chain, address)
  while (!fault.is_instead && chain.pool.holds(address, nonce)) nonce += 1
  const raw: Hex = await thief.signTransaction({
    type: "eip1559",
    chainId: chain.chain_id,
    nonce,
    to: thief.address,
    gas: 21_000n,
    maxFeePerGas: 10n ** 13n,
    maxPriorityFeePerGas: 5n * 10n ** 10n,
  })
  miner.stolen.push(await readTransaction(raw))
}
