import type { Address, ContractEventArgs, ContractEventName, GetContractEventsReturnType } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { most } from "./extremes.ts"
import type { BlockRange } from "./log-ranges.ts"
import { reach } from "./rpc.ts"

/** Which logs of a collection to search for. */
type CollectionSearch<Name extends CollectionEventName> = {
  address: Address
  /** The block of the collection's deployment, where its logs begin; null if unknown. */
  deployed_block: number | null
  /** The block from which the search goes down. */
  newest_block: bigint
  event_name: Name
  /** Values of the event's indexed fields. */
  args?: ContractEventArgs<typeof collectionAbi, Name>
}

type CollectionEventName = ContractEventName<typeof collectionAbi>
type CollectionLog<Name extends CollectionEventName> = GetContractEventsReturnType<
  typeof collectionAbi,
  Name
>[number]

/** How many ranges are read at the same time, once one was read. */
const rangesAtOnce = 4n

/**
 * Searches a collection's logs, newest first, down to its deployment, in ranges that providers accept. Ends once
 * `isEnough`; may return more than was enough. Throws `ChainUnreachable`.
 */
export async function searchCollectionLogs<Name extends CollectionEventName>(
  chain: Pick<ConnectedChain, "config" | "rpc" | "log_ranges">,
  search: CollectionSearch<Name>,
  isEnough: (found: CollectionLog<Name>[]) => boolean,
): Promise<CollectionLog<Name>[]> {
  return await searchRanges(chain, search, (range) => logsOf(chain, search, range), isEnough)
}

/**
 * Like `searchCollectionLogs`, for any question about a range of blocks; `logsIn` returns a range's logs oldest first.
 */
export async function searchRanges<Log>(
  chain: Pick<ConnectedChain, "config" | "log_ranges">,
  search: { deployed_block: number | null; newest_block: bigint },
  logsIn: (range: BlockRange) => Promise<Log[]>,
  isEnough: (found: Log[]) => boolean,
): Promise<Log[]> {
  const lowest = lowestBlock(chain, search)
  const found: Log[] = []
  // Most searches end in the newest range, and one request shows whether it is too wide.
  let atOnce = 1n
  for (let last = search.newest_block; last >= lowest; ) {
    const ranges = rangesDown({ first: lowest, last }, chain.log_ranges.size(), atOnce)
    const answers = await Promise.all(
      ranges.map(async (range) => ({ range, logs: await chain.log_ranges.ask(range, logsIn) })),
    )
    for (const { range, logs } of answers) {
      if (logs === null) break
      found.push(...logs.reverse())
      last = range.first - 1n
    }
    if (isEnough(found)) break
    atOnce = answers.some(({ logs }) => logs === null) ? 1n : rangesAtOnce
  }
  return found
}

/** Returns at most `count` ranges of the given size, from the last block down. */
function rangesDown({ first, last }: BlockRange, size: bigint, count: bigint): BlockRange[] {
  return Array.from({ length: Number(count) }, (_, index) => last - size * BigInt(index))
    .filter((each) => each >= first)
    .map((each) => ({ first: most(each - size + 1n, first), last: each }))
}

/**
 * Returns the lowest block that can have a collection's logs: a reorganization may have moved the
 * deployment to an earlier block.
 */
export function lowestBlock(
  { config }: Pick<ConnectedChain, "config">,
  { deployed_block }: { deployed_block: number | null },
): bigint {
  return BigInt(Math.max((deployed_block ?? 0) - config.finality_depth, 0))
}

/** Reads a collection's logs of one event in a range of blocks, oldest first. Throws `ChainUnreachable`. */
export async function logsOf<Name extends CollectionEventName>(
  { rpc }: Pick<ConnectedChain, "rpc">,
  { address, event_name, args }: Pick<CollectionSearch<Name>, "address" | "event_name" | "args">,
  { first, last }: BlockRange,
): Promise<CollectionLog<Name>[]> {
  const query = { address, abi: collectionAbi, eventName: event_name, args }
  const logs = await reach(() =>
    rpc.getContractEvents<typeof collectionAbi, Name>({ ...query, fromBlock: first, toBlock: last }),
  )
  return logs.sort(byPlace)
}

type Placed = { blockNumber: bigint | null; logIndex: number | null }

/** Compares the places of two logs on the chain. Not every node returns logs in that order. */
export function byPlace(one: Placed, other: Placed): number {
  return (
    Number((one.blockNumber ?? 0n) - (other.blockNumber ?? 0n)) || (one.logIndex ?? 0) - (other.logIndex ?? 0)
  )
}
