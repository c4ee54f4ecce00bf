import type { Hex } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
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

/** The newest blocks of one chain, each tied to the one before it by its hash. */
export type HeaderChain = {
  /** Reads what is new and answers the newest block, a small part of a block's time old at the most. Throws `ChainUnreachable`. */
  follow(): Promise<Header>
  /**
   * The same for those with nothing open: all of them together ask once in a block's time, and where no block comes
   * less and less, down to once in eight. Throws `ChainUnreachable`.
   */
  followIdly(): Promise<Header>
  /** The block at a height. Throws `ChainUnreachable`, also where the chain is not that high. */
  at(blockNumber: bigint): Promise<Header>
  /**
   * The height of the newest final block, below zero where there is none: what the chain itself calls final where it
   * is asked for that and does not lag behind for long, else the finality depth. Throws `ChainUnreachable`.
   */
  finalHeight(): Promise<bigint>
}

type Settings = Pick<ChainConfig, "finality_depth" | "block_time_seconds" | "use_finalized_tag">

/** How old the newest block may be that `follow` answers with: so much, or an eighth of a block's time. */
const freshMilliseconds = 250
/** For how long a chain that stands still is not asked by those with nothing open: so much of the time since its block. */
const stillShare = 1 / 4
const mostStillBlocks = 8
/** How often the chain is asked for its final block, in parts of the finality depth. */
const finalStepsPerDepth = 16n

/** Remembers the blocks down to twice the finality depth; a process that begins knows none. */
export function createHeaderChain(
  rpc: Rpc,
  settings: Settings,
  now: () => number = () => performance.now(),
): HeaderChain {
  const depth = BigInt(settings.finality_depth)
  const kept = 2n * depth
  const finalStep = most(depth / finalStepsPerDepth, 1n)
  const blockMilliseconds = 1_000 * settings.block_time_seconds
  let known = new Map<bigint, Header>()
  /** Older ones, which nothing ties to the newest: asked for by number, they hold until there is another newest one. */
  let untied = new Map<bigint, Header>()
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
    // The same block as before, or one below it from a provider that is behind.
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
    untied = new Map()
    const last = head?.header
    const branch = !last || newest.number > last.number + depth ? null : await branchTo(newest, last)
    if (branch === null) known = new Map()
    else for (const number of known.keys()) if (number >= branch.from) known.delete(number)
    for (const header of branch?.headers ?? [newest]) known.set(header.number, header)
    for (const number of known.keys()) if (number < newest.number - kept) known.delete(number)
  }

  /** Walks back until a known block; null when what is known was replaced down to the finality depth. */
  async function branchTo(newest: Header, last: Header): Promise<{ from: bigint; headers: Header[] } | null> {
    const headers = [newest]
    for (let lowest = newest; ; ) {
      const below = known.get(lowest.number - 1n)
      if (below?.hash === lowest.parent_hash) return { from: lowest.number, headers }
      if (below && last.number - below.number + 1n >= depth) return null
      // A young process knows no more.
      if (lowest.number <= lowestKnown(known)) return { from: 0n, headers }
      lowest = await read(rpc, { blockHash: lowest.parent_hash })
      headers.push(lowest)
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
      // A chain that has no such block yet, or a provider that does not know the word.
      if (error instanceof ChainUnreachable) return tag?.height ?? null
      throw error
    }
  }

  return {
    follow: () => followWithin(Math.min(freshMilliseconds, blockMilliseconds / 8)),
    followIdly: () => followWithin(idleMilliseconds()),
    async at(blockNumber) {
      // Another newest block may be learnt while the answer is on its way: then it is kept by nobody.
      const asked = untied
      const remembered = known.get(blockNumber) ?? asked.get(blockNumber)
      if (remembered) return remembered
      const highest = head?.header.number
      if (highest !== undefined && blockNumber > highest)
        throw new ChainUnreachable(`block ${blockNumber} is not there yet`)
      const header = await read(rpc, { blockNumber })
      asked.set(blockNumber, header)
      return header
    },
    async finalHeight() {
      const newest = await followWithin(blockMilliseconds)
      const height = await finalTag(newest)
      const byDepth = newest.number - depth + 1n
      // Where finality stalls, or one provider invents it, the depth goes on deciding.
      if (height === null || height < newest.number - kept) return byDepth
      return least(height, newest.number)
    },
  }
}

/** The newest block's number, and never one below a block that was seen: a provider that is behind may tell the newest. */
export async function newestSince({ follow }: Pick<HeaderChain, "follow">, seen: bigint): Promise<bigint> {
  return most((await follow()).number, seen)
}

/** The newest block that is deep enough to be told of, below zero where there is none; `seen` as in `newestSince`. */
export async function newestConfirmed(
  { headers, config }: { headers: HeaderChain; config: Pick<ChainConfig, "confirmation_depth"> },
  seen: bigint,
): Promise<bigint> {
  return (await newestSince(headers, seen)) - BigInt(config.confirmation_depth) + 1n
}

function lowestKnown(known: Map<bigint, Header>): bigint {
  const [lowest] = [...known.keys()].sort((one, other) => Number(one - other))
  return lowest ?? 0n
}

type Which = { blockTag: "latest" | "finalized" } | { blockHash: Hex } | { blockNumber: bigint }

async function read(rpc: Rpc, which: Which): Promise<Header> {
  const block = await reach(() => rpc.getBlock(which))
  const { number, hash, parentHash, timestamp, baseFeePerGas } = block
  if (number === null || hash === null) throw new ChainUnreachable("the block is not sealed yet")
  return { number, hash, parent_hash: parentHash, timestamp, base_fee_per_gas: baseFeePerGas }
}
