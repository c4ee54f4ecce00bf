import { type Address, type GetLogsReturnType, getAbiItem, type Hex } from "viem"
import type { WatchAuthorizationInput } from "../../machines/authorization.ts"
import { someAtATime } from "../../src/engine/chain/answers.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Header } from "../../src/engine/chain/headers.ts"
import type { BlockRange } from "../../src/engine/chain/log-ranges.ts"
import { byPlace } from "../../src/engine/chain/logs.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { type Move, tokenKey } from "./follow-owners.ts"

/**
 * Consecutive blocks that are read together. `before`: the hash of the block before them, null if unknown.
 * `is_doubtful`: earlier blocks that were read may no longer be part of the chain, as if the provider had followed
 * another fork for long.
 */
export type Span = {
  first: bigint
  last: bigint
  is_final: boolean
  before: string | null
  is_doubtful: boolean
}

type OwnershipChange = {
  address: Address
  serial: bigint
  digest: string | null
  transaction_hash: string
  move: Move | null
}

/**
 * Reads what happened to the tokens of some contracts, in the order of the chain. `lastHash`: that of the span's last
 * block. Returns null if final blocks have more than providers return at once; then read fewer. Throws
 * `ChainUnreachable`, also if the blocks do not follow one another up to the last.
 */
export async function readOwnershipChanges(
  chain: ConnectedChain,
  addresses: readonly Address[],
  span: Span,
  lastHash: string,
): Promise<OwnershipChange[] | null> {
  const parts = chain.contracts_at_once.partsOf(addresses)
  if (!span.is_final) {
    // By block hash, which a provider that is behind or on another fork does not have.
    const headers = await someAtATime(numbersIn(span), questionsAtOnce, (number) => chain.headers.at(number))
    requireTied(headers, span.before, lastHash)
    return await changesIn(
      chain,
      headers.flatMap(({ hash: blockHash }) => parts.map((address) => ({ address, blockHash }))),
    )
  }
  return await chain.log_ranges.ask(span, ({ first, last }) =>
    changesIn(
      chain,
      parts.map((address) => ({ address, fromBlock: first, toBlock: last })),
    ),
  )
}

/**
 * Throws `ChainUnreachable` unless the blocks follow one another: a provider on another fork has other blocks and logs.
 */
function requireTied(headers: Header[], before: string | null, last: string): void {
  let below = before
  for (const { number, hash, parent_hash } of headers) {
    if (below !== null && parent_hash !== below)
      throw new ChainUnreachable(
        `block ${number} does not follow the block before it: it was replaced, or providers follow different forks`,
      )
    below = hash
  }
  if (below !== last) throw new ChainUnreachable("blocks were replaced while they were read")
}

type Where = { address: Address[] } & ({ blockHash: Hex } | { fromBlock: bigint; toBlock: bigint })

async function changesIn(
  { rpc, contracts_at_once }: ConnectedChain,
  places: Where[],
): Promise<OwnershipChange[]> {
  const logs = await someAtATime(places, questionsAtOnce, (where) =>
    contracts_at_once.ask(where.address, (address) =>
      rpc.getLogs({ ...where, address, events: ownershipEvents }),
    ),
  )
  return logs.flat().sort(byPlace).map(changeOf)
}

/** Enough to keep up with fast blocks for many collections, without flooding a provider. */
const questionsAtOnce = 16

function numbersIn({ first, last }: BlockRange): bigint[] {
  return Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index))
}

const ownershipEvents = [
  getAbiItem({ abi: collectionAbi, name: "AuthorizationUsed" }),
  getAbiItem({ abi: collectionAbi, name: "Transfer" }),
  getAbiItem({ abi: collectionAbi, name: "ChipReplaced" }),
] as const

type OwnershipLog = GetLogsReturnType<undefined, typeof ownershipEvents>[number]

function changeOf(log: OwnershipLog): OwnershipChange {
  const { address, transactionHash } = log
  const change = { address, transaction_hash: transactionHash ?? "" }
  if (log.eventName === "AuthorizationUsed")
    return { ...change, serial: log.args.serial ?? 0n, digest: log.args.authorization ?? null, move: null }
  if (log.eventName === "ChipReplaced")
    return { ...change, serial: log.args.serial ?? 0n, digest: null, move: null }
  return { ...change, serial: log.args.tokenId ?? 0n, digest: null, move: moveOf(log) }
}

/** Returns the move that a log reports; null if the log is not in a block yet. */
export function moveOf({ address, args: { from, to, tokenId }, blockNumber }: TransferLog): Move | null {
  if (!from || !to || tokenId === undefined || blockNumber === null) return null
  return { address, serial: tokenId, from, to, block_number: blockNumber }
}

type TransferLog = Extract<OwnershipLog, { eventName: "Transfer" }>

/** By contract and serial, each in the order of the chain. */
export type Changes = ReadonlyMap<string, OwnershipChange[]>

export function byToken(changes: readonly OwnershipChange[]): Changes {
  return Map.groupBy(changes, ({ address, serial }) => tokenKey(address, serial))
}

export function changesOf(changes: Changes, { contract_address, serial }: Token): OwnershipChange[] {
  return changes.get(tokenKey(contract_address, serial)) ?? []
}

type Token = Pick<WatchAuthorizationInput, "contract_address" | "serial">
