import type { Hex } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { partsOf } from "../../platform/parts.ts"
import { least, most } from "./extremes.ts"
import { ChainUnreachable, type Rpc, reach } from "./rpc.ts"

export type Header = {
  number: bigint
  hash: Hex
  parent_hash: Hex
  timestamp: bigint
  /** Wei per gas; null on a chain without EIP-1559. */
  base_fee_per_gas: bigint | null
}

/** The newest blocks of a chain, each linked to the one before by its parent hash. */
export type HeaderChain = {
  /** Reads new blocks and returns the newest, at most a fraction of a block time old. Throws `ChainUnreachable`. */
  follow(): Promise<Header>
  /**
   * Like `follow`, for callers with no open work: together they ask once per block time, and less and less often while
   * no block comes, down to once in eight. Throws `ChainUnreachable`.
   */
  followIdly(): Promise<Header>
  /** Returns the block at a height. Throws `ChainUnreachable`, also if the chain is not that high yet. */
  at(blockNumber: bigint): Promise<Header>
  /**
   * Returns the height of the newest final block, below zero if there is none: the chain's `finalized` block if the
   * settings use it and it is not far behind, otherwise by the finality depth. Throws `ChainUnreachable`.
   */
  finalHeight(): Promise<bigint>
}

type Settings = Pick<ChainConfig, "finality_depth" | "block_time_seconds" | "use_finalized_tag">

/** The newest blocks down to the height `from`. `is_tied`: the known block below is their parent. */
type Branch = { headers: Header[]; from: bigint; is_tied: boolean }

/**
 * An older block that no parent hashes link to the newest, so it may come from a node on another fork. `since` and
 * `asked_at`: the newest height when it was first and last read, with the same result each time.
 */
type Untied = { header: Header; since: bigint; asked_at: bigint }

/** The greatest age of the block that `follow` returns: this, or an eighth of a block time if that is less. */
const freshMilliseconds = 250
/** While no block comes, idle callers do not ask again for this share of the time since the last one. */
const stillShare = 1 / 4
const mostStillBlocks = 8
/** How often the final block is read: this many times per finality depth. */
const finalStepsPerDepth = 16n
/** How many blocks are walked back from the newest; beyond that the branch is started anew, as in a new process. */
const mostWalkedBlocks = 64n
/** How many of them are read at the same time. */
const blocksAtOnce = 8

/** Remembers blocks down to twice the finality depth; a new process knows none. */
export function createHeaderChain(
  rpc: Rpc,
  settings: Settings,
  now: () => number = () => performance.now(),
): HeaderChain {
  const depth = BigInt(settings.finality_depth)
  const kept = 2n * depth
  const mostWalked = least(depth, mostWalkedBlocks)
  const finalStep = most(depth / finalStepsPerDepth, 1n)
  const blockMilliseconds = 1_000 * settings.block_time_seconds
  /** Has no gaps from `lowest` up. */
  let known = new Map<bigint, Header>()
  let lowest = 0n
  /**
   * Blocks read on the way to a newest block that is not linked yet. If a request fails, the next walk finds them here.
   */
  let ahead = new Map<bigint, Header>()
  /** Older blocks that were read by number; discarded when the branch changes. */
  let untied = new Map<bigint, Untied>()
  let head: { header: Header; since: number; read_at: number } | null = null
  let tag: { height: bigint; asked_at: bigint } | null = null
  let following: Promise<Header> | undefined

  async function followWithin(milliseconds: number): Promise<Header> {
    if (head && now() - head.read_at < milliseconds) return head.header
    following ??= followNow().finally(() => {
      following = undefined
    })
    return await following
  }

  async function followNow(): Promise<Header> {
    const readAt = now()
    const newest = await read(rpc, { blockTag: "latest" })
    // The same block as before, or an earlier one from a provider that is behind.
    const isKnown = known.get(newest.number)?.hash === newest.hash
    if (!isKnown) await learn(newest)
    const since = head?.header.hash === newest.hash ? head.since : readAt
    head = { header: newest, since, read_at: readAt }
    return newest
  }

  function idleMilliseconds(): number {
    const still = head ? head.read_at - head.since : 0
    return Math.min(Math.max(still * stillShare, blockMilliseconds), mostStillBlocks * blockMilliseconds)
  }

  async function learn(newest: Header): Promise<void> {
    const { headers, from, is_tied } = await branchTo(newest)
    ahead = new Map()
    if (!is_tied) {
      known = new Map()
      untied = new Map()
      lowest = from
    }
    for (let number = from; known.delete(number); ) number += 1n
    for (const header of headers) known.set(header.number, header)
    for (; lowest < newest.number - kept; lowest += 1n) known.delete(lowest)
    for (const number of untied.keys()) if (number < newest.number - kept) untied.delete(number)
  }

  /** Walks back to a known block. If that is too far, or too many blocks were replaced, the branch stays untied. */
  async function branchTo(newest: Header): Promise<Branch> {
    const headers = [newest]
    const highest = lowest + BigInt(known.size) - 1n
    if (known.size === 0 || newest.number > highest + mostWalked)
      return { headers, from: newest.number, is_tied: false }
    await readAhead(highest, newest)
    for (let deepest = newest; ; ) {
      const { number: from, parent_hash } = deepest
      const parent = from - 1n
      if (known.get(parent)?.hash === parent_hash) return { headers, from, is_tied: true }
      // How many known blocks this branch replaces; not above zero as long as it is above all of them.
      const replaced = highest - parent + 1n
      // Below `lowest` nothing is known, as in a new process.
      if (parent < lowest || replaced >= mostWalked) return { headers, from, is_tied: false }
      const readBefore = ahead.get(parent)
      deepest = readBefore?.hash === parent_hash ? readBefore : await read(rpc, { blockHash: parent_hash })
      ahead.set(deepest.number, deepest)
      headers.push(deepest)
    }
  }

  /** Reads by number, so that no request waits for the block above; blocks of another branch are then read by hash. */
  async function readAhead(highest: bigint, newest: Header): Promise<void> {
    const missing: bigint[] = []
    for (let number = highest + 1n; number < newest.number; number += 1n)
      if (!ahead.has(number)) missing.push(number)
    for (const some of partsOf(missing, blocksAtOnce)) {
      const answers = await Promise.allSettled(some.map((blockNumber) => read(rpc, { blockNumber })))
      for (const answer of answers)
        if (answer.status === "fulfilled") ahead.set(answer.value.number, answer.value)
      if (answers.some(({ status }) => status === "rejected")) return
    }
  }

  async function finalTag(newest: Header): Promise<bigint | null> {
    if (!settings.use_finalized_tag) return null
    if (tag && newest.number - tag.asked_at < finalStep) return tag.height
    try {
      const { number } = await read(rpc, { blockTag: "finalized" })
      tag = { height: number, asked_at: newest.number }
      return number
    } catch (error) {
      // The chain has no final block yet, or a provider does not know the tag.
      if (error instanceof ChainUnreachable) return tag?.height ?? null
      throw error
    }
  }

  return {
    follow: () => followWithin(Math.min(freshMilliseconds, blockMilliseconds / 8)),
    followIdly: () => followWithin(idleMilliseconds()),
    async at(blockNumber) {
      const remembered = known.get(blockNumber)
      if (remembered) return remembered
      const newest = head?.header.number
      if (newest === undefined) return await read(rpc, { blockNumber })
      if (blockNumber > newest) throw new ChainUnreachable(`block ${blockNumber} does not exist yet`)
      // A new branch may replace `untied` while the response is under way; the block is then not kept.
      const told = untied
      const before = told.get(blockNumber)
      if (before && holds(before, newest)) return before.header
      const header = await read(rpc, { blockNumber })
      const since = before?.header.hash === header.hash ? before.since : newest
      told.set(blockNumber, { header, since, asked_at: newest })
      return header
    },
    async finalHeight() {
      const newest = await followWithin(blockMilliseconds)
      const height = await finalTag(newest)
      const byDepth = newest.number - depth + 1n
      // If finality stalls, or a provider makes it up, the depth decides.
      if (height === null || height < newest.number - kept) return byDepth
      return least(height, newest.number)
    },
  }
}

/** Returns a depth at which a block is final and every node has it, even one that lags behind others at the same URL. */
export function surelyHeld(config: Pick<ChainConfig, "finality_depth" | "block_time_seconds">): bigint {
  return most(BigInt(config.finality_depth), mostBehind(config))
}

/** Returns by how many blocks a node may lag behind others at the same URL: so many, or those of so many seconds. */
export function mostBehind({ block_time_seconds }: Pick<ChainConfig, "block_time_seconds">): bigint {
  return BigInt(Math.max(mostBlocksBehind, Math.ceil(mostSecondsBehind / block_time_seconds)))
}

const mostBlocksBehind = 12
const mostSecondsBehind = 10

/**
 * Returns the newest block's number, but at least that of a block seen before: a provider that is behind may respond.
 */
export async function newestSince({ follow }: Pick<HeaderChain, "follow">, seen: bigint): Promise<bigint> {
  return most((await follow()).number, seen)
}

/** Returns the newest block at the confirmation depth, below zero if there is none; `seen` as in `newestSince`. */
export async function newestConfirmed(
  { headers, config }: { headers: HeaderChain; config: Pick<ChainConfig, "confirmation_depth"> },
  seen: bigint,
): Promise<bigint> {
  return (await newestSince(headers, seen)) - BigInt(config.confirmation_depth) + 1n
}

/**
 * Trusts a block for as long as it has so far been read with the same result: one from another fork is soon read again.
 */
function holds({ since, asked_at }: Untied, newest: bigint): boolean {
  return newest - asked_at <= asked_at - since
}

type Which = { blockTag: "latest" | "finalized" } | { blockHash: Hex } | { blockNumber: bigint }

async function read(rpc: Rpc, which: Which): Promise<Header> {
  const block = await reach(() => rpc.getBlock(which))
  const { number, hash, parentHash, timestamp, baseFeePerGas } = block
  if (number === null || hash === null) throw new ChainUnreachable("the provider returned a pending block")
  return { number, hash, parent_hash: parentHash, timestamp, base_fee_per_gas: baseFeePerGas }
}
