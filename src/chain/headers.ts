import type { Hex } from "viem"
import { ChainUnreachable, type Rpc, reach } from "./rpc.ts"

export type Header = { number: bigint; hash: Hex; parent_hash: Hex; timestamp: bigint }

/** The newest blocks of one chain, each tied to the one before it by its hash. */
export type HeaderChain = {
  /** Reads what is new and answers the newest block. Throws `ChainUnreachable`. */
  follow(): Promise<Header>
  /** The block at a height. Throws `ChainUnreachable`, also where the chain is not that high. */
  at(blockNumber: bigint): Promise<Header>
}

/** Remembers the blocks down to twice the finality depth; a process that begins knows none. */
export function createHeaderChain(rpc: Rpc, finalityDepth: number, rank: () => Promise<void>): HeaderChain {
  const depth = BigInt(finalityDepth)
  const kept = 2n * depth
  let known = new Map<bigint, Header>()
  let head: Header | null = null
  let following: Promise<Header> | undefined

  async function followNow(): Promise<Header> {
    await rank()
    const newest = await read(rpc, { blockTag: "latest" })
    // The same block as before, or one below it from a provider that is behind.
    if (known.get(newest.number)?.hash === newest.hash) return newest
    const branch = head === null || newest.number > head.number + depth ? null : await branchTo(newest, head)
    if (branch === null) known = new Map()
    else for (const number of known.keys()) if (number >= branch.from) known.delete(number)
    for (const header of branch?.headers ?? [newest]) known.set(header.number, header)
    for (const number of known.keys()) if (number < newest.number - kept) known.delete(number)
    head = newest
    return newest
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

  return {
    async follow() {
      following ??= followNow().finally(() => {
        following = undefined
      })
      return await following
    },
    async at(blockNumber) {
      const remembered = known.get(blockNumber)
      if (remembered) return remembered
      if (head && blockNumber > head.number)
        throw new ChainUnreachable(`block ${blockNumber} is not there yet`)
      const header = await read(rpc, { blockNumber })
      if (head && blockNumber >= head.number - kept) known.set(blockNumber, header)
      return header
    },
  }
}

function lowestKnown(known: Map<bigint, Header>): bigint {
  const [lowest] = [...known.keys()].sort((one, other) => Number(one - other))
  return lowest ?? 0n
}

type Which = { blockTag: "latest" } | { blockHash: Hex } | { blockNumber: bigint }

async function read(rpc: Rpc, which: Which): Promise<Header> {
  const { number, hash, parentHash, timestamp } = await reach(() => rpc.getBlock(which))
  return { number, hash, parent_hash: parentHash, timestamp }
}
