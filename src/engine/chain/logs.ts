import type { Address, ContractEventArgs, ContractEventName, GetContractEventsReturnType } from "viem"
import type { ConnectedChain } from "./chains.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { saysTooMuch } from "./endpoint.ts"
import { most } from "./extremes.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** Which logs of one collection are wanted. */
type CollectionSearch<Name extends CollectionEventName> = {
  address: Address
  /** Where the collection's logs begin; null where that is not known. */
  deployed_block: number | null
  /** The block down from which is searched. */
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

/** How many ranges are asked for at the same time. */
const rangesAtOnce = 4n

/**
 * Searches a collection's logs, newest first, down to its deployment, in ranges of blocks that providers take. Ends
 * as soon as what was found is enough, and may then have found more. Throws `ChainUnreachable`.
 */
export async function searchCollectionLogs<Name extends CollectionEventName>(
  chain: Pick<ConnectedChain, "config" | "rpc">,
  search: CollectionSearch<Name>,
  isEnough: (found: CollectionLog<Name>[]) => boolean,
): Promise<CollectionLog<Name>[]> {
  return await searchRanges(chain, search, (range) => logsOf(chain, search, range), isEnough)
}

/** The same for whatever is asked of a range of blocks, oldest first. */
export async function searchRanges<Log>(
  chain: Pick<ConnectedChain, "config">,
  search: { deployed_block: number | null; newest_block: bigint },
  logsIn: (range: BlockRange) => Promise<Log[]>,
  isEnough: (found: Log[]) => boolean,
): Promise<Log[]> {
  const size = BigInt(chain.config.log_range_blocks)
  const lowest = lowestBlock(chain, search)
  const found: Log[] = []
  for (let last = search.newest_block; last >= lowest; last -= size * rangesAtOnce) {
    const lasts = Array.from({ length: Number(rangesAtOnce) }, (_, index) => last - size * BigInt(index))
    const ranges = lasts
      .filter((each) => each >= lowest)
      .map((each) => ({ first: most(each - size + 1n, lowest), last: each }))
    const logs = await Promise.all(ranges.map(logsIn))
    for (const ofRange of logs) found.push(...ofRange.reverse())
    if (isEnough(found)) break
  }
  return found
}

/**
 * The lowest block that can have a log of a collection: a reorganization may have brought the deployment back some blocks
 * lower than it was confirmed.
 */
export function lowestBlock(
  { config }: Pick<ConnectedChain, "config">,
  { deployed_block }: { deployed_block: number | null },
): bigint {
  return BigInt(Math.max((deployed_block ?? 0) - config.finality_depth, 0))
}

/** Both ends are part of it. */
export type BlockRange = { first: bigint; last: bigint }

/** A collection's logs of one event in a range of blocks that providers take, oldest first. Throws `ChainUnreachable`. */
export async function logsOf<Name extends CollectionEventName>(
  { rpc }: Pick<ConnectedChain, "rpc">,
  { address, event_name, args }: Pick<CollectionSearch<Name>, "address" | "event_name" | "args">,
  range: BlockRange,
): Promise<CollectionLog<Name>[]> {
  const query = { address, abi: collectionAbi, eventName: event_name, args }
  return await inParts(range, ({ first, last }) =>
    rpc.getContractEvents<typeof collectionAbi, Name>({ ...query, fromBlock: first, toBlock: last }),
  )
}

/**
 * What is asked of a range of blocks, in halves, and halves of those, where that is more than providers answer: fewer
 * blocks than `log_range_blocks`, or fewer logs than there are. Throws `ChainUnreachable`.
 */
export async function inParts<Log>(
  range: BlockRange,
  logsIn: (part: BlockRange) => Promise<Log[]>,
): Promise<Log[]> {
  const { first, last } = range
  try {
    return await reach(() => logsIn(range))
  } catch (error) {
    if (first === last || !(error instanceof ChainUnreachable) || !saysTooMuch(error.message)) throw error
  }
  const middle = (first + last) / 2n
  const older = await inParts({ first, last: middle }, logsIn)
  return older.concat(await inParts({ first: middle + 1n, last }, logsIn))
}
