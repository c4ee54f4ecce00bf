import type { Address, ContractEventArgs, ContractEventName, GetContractEventsReturnType } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { most } from "./extremes.ts"
import type { BlockRange } from "./log-ranges.ts"
import { reach } from "./rpc.ts"

/** Which logs of one collection are wanted. */
type CollectionSearch<Name extends CollectionEventName> = {
  address: Address
  /** Where the collection's logs begin; null where that is not known. */
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

/** How many ranges are asked for at the same time, once one was answered. */
const rangesAtOnce = 4n

/**
 * Searches a collection's logs, newest first, down to its deployment, in ranges that providers answer. Ends once
 * `isEnough`, and may have found more by then. Throws `ChainUnreachable`.
 */
export async function searchCollectionLogs<Name extends CollectionEventName>(
  chain: Pick<ConnectedChain, "config" | "rpc" | "log_ranges">,
  search: CollectionSearch<Name>,
  isEnough: (found: CollectionLog<Name>[]) => boolean,
): Promise<CollectionLog<Name>[]> {
  return await searchRanges(chain, search, (range) => logsOf(chain, search, range), isEnough)
}

/** The same for any question about a range of blocks, which returns its logs oldest first. */
export async function searchRanges<Log>(
  chain: Pick<ConnectedChain, "config" | "log_ranges">,
  search: { deployed_block: number | null; newest_block: bigint },
  logsIn: (range: BlockRange) => Promise<Log[]>,
  isEnough: (found: Log[]) => boolean,
): Promise<Log[]> {
  const lowest = lowestBlock(chain, search)
  const found: Log[] = []
  // Most is found in the newest range, and one question shows whether it is too wide.
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

/** At most `count` ranges of a size, from the end of the blocks down. */
function rangesDown({ first, last }: BlockRange, size: bigint, count: bigint): BlockRange[] {
  return Array.from({ length: Number(count) }, (_, index) => last - size * BigInt(index))
    .filter((each) => each >= first)
    .map((each) => ({ first: most(each - size + 1n, first), last: each }))
}

/**
 * The lowest block that can have a collection's logs: a reorganization may have moved the deployment down some blocks.
 */
export function lowestBlock(
  { config }: Pick<ConnectedChain, "config">,
  { deployed_block }: { deployed_block: number | null },
): bigint {
  return BigInt(Math.max((deployed_block ?? 0) - config.finality_depth, 0))
}

/** A collection's logs of one event in a range of blocks, oldest first. Throws `ChainUnreachable`. */
export async function logsOf<Name extends CollectionEventName>(
  { rpc }: Pick<ConnectedChain, "rpc">,
  { address, event_name, args }: Pick<CollectionSearch<Name>, "address" | "event_name" | "args">,
  { first, last }: BlockRange,
): Promise<CollectionLog<Name>[]> {
  const query = { address, abi: collectionAbi, eventName: event_name, args }
  return await reach(() =>
    rpc.getContractEvents<typeof collectionAbi, Name>({ ...query, fromBlock: first, toBlock: last }),
  )
}
