import { and, asc, eq } from "drizzle-orm"
import { type Address, type GetLogsReturnType, getAbiItem, isAddressEqual, parseEventLogs } from "viem"
import type { WatchAuthorizationInput, WatchAuthorizationOutput } from "../machines/authorization.ts"
import { settleEffect } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { least } from "../src/chain/extremes.ts"
import { searchCollectionLogs } from "../src/chain/logs.ts"
import { CallReverted, ChainUnreachable, reach } from "../src/chain/rpc.ts"
import { type Context, inTurn } from "../src/context.ts"
import type { Queries } from "../src/db/database.ts"
import { chainCursors, collections, effects } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { noteSettled } from "./note-step.ts"
import type { Checkpoint } from "./step.ts"

/** How many blocks are asked for at the same time while they may still be replaced. */
const blocksAtOnce = 4n

/**
 * One round of a chain: reads the blocks that have become deep enough and settles the authorizations they used,
 * outran or superseded. Authorizations are known by contract, serial and digest, never by what a client reports.
 */
export async function watchAuthorizations(
  context: Context,
  chain: ConnectedChain,
  checkpoint: Checkpoint,
): Promise<void> {
  const { number: head } = await chain.headers.follow()
  const deepest = head - BigInt(chain.config.confirmation_depth) + 1n
  if (deepest < 0n) return
  const read = await lastRead(context, chain, deepest)
  if (read === deepest) return
  const watched = await openWatches(context, chain)
  // Without anybody to watch for, nothing before now can matter.
  const from = watched.length === 0 || read === null ? deepest : read + 1n

  const final = head - BigInt(chain.config.finality_depth) + 1n
  const rangeSize = BigInt(chain.config.log_range_blocks)
  for (let first = from; first <= deepest; ) {
    const last = first <= final ? least(first + rangeSize - 1n, final) : first + blocksAtOnce - 1n
    const span = { first, last: least(last, deepest), is_final: first <= final }
    await readBlocks({ context, chain, checkpoint, deepest }, watched, span)
    first = span.last + 1n
  }
}

/** Blocks in a row that are read together; final ones cannot be replaced any more. */
type Span = { first: bigint; last: bigint; is_final: boolean }

type Watch = { effect_id: string; request_id: string | null; input: WatchAuthorizationInput }

/** A round of one chain, which looks no further than a block at the confirmation depth. */
type Round = { context: Context; chain: ConnectedChain; checkpoint: Checkpoint; deepest: bigint }

async function readBlocks(round: Round, watched: Watch[], span: Span): Promise<void> {
  const { context, chain, checkpoint } = round
  const since = performance.now()
  const block = await chain.headers.at(span.last)
  const changes = await ownershipChanges(chain, watched, span)
  const outcomes: { watch: Watch; output: WatchAuthorizationOutput }[] = []
  for (const watch of watched) {
    const output = await outcomeOf(round, watch.input, changes, block)
    if (output) outcomes.push({ watch, output })
  }
  if (outcomes.length > 0) checkpoint("watch.read", "watchAuthorization")
  await inTurn(context, null, async (turn) => {
    for (const { watch, output } of outcomes) await settleEffect(turn, watch.effect_id, { output })
    await moveCursor(turn, chain, block)
  })
  if (outcomes.length > 0) checkpoint("watch.settle", "watchAuthorization")
  for (const { watch, output } of outcomes) noteSettled(context, since, watch, output.outcome)
  const settled = new Set(outcomes.map(({ watch }) => watch))
  watched.splice(0, watched.length, ...watched.filter((watch) => !settled.has(watch)))
}

type OwnershipChange = { address: Address; serial: bigint; digest: string | null; transaction_hash: string }

/** What happened to the watched tokens, in the order of the chain. */
async function ownershipChanges(
  chain: ConnectedChain,
  watched: Watch[],
  span: Span,
): Promise<OwnershipChange[]> {
  const contracts = [...new Set(watched.map(({ input }) => input.contract_address as Address))]
  if (contracts.length === 0) return []
  const changes = await (span.is_final ? changesInRange : changesByBlock)(chain, contracts, span)
  return changes.filter(({ address, serial }) =>
    watched.some(({ input }) => concerns(input, address, serial)),
  )
}

async function changesInRange(
  chain: ConnectedChain,
  address: Address[],
  { first, last }: Span,
): Promise<OwnershipChange[]> {
  const range = { address, events: ownershipEvents, fromBlock: first, toBlock: last }
  return (await reach(() => chain.rpc.getLogs(range))).map(changeOf)
}

/** By the hash of each block: a provider that follows another fork, or is behind, has no such block. */
async function changesByBlock(
  chain: ConnectedChain,
  address: Address[],
  { first, last }: Span,
): Promise<OwnershipChange[]> {
  const numbers = Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index))
  const changes = await Promise.all(
    numbers.map(async (number) => {
      const { hash } = await chain.headers.at(number)
      const query = { address, events: ownershipEvents, blockHash: hash }
      return (await reach(() => chain.rpc.getLogs(query))).map(changeOf)
    }),
  )
  return changes.flat()
}

const ownershipEvents = [
  getAbiItem({ abi: collectionAbi, name: "AuthorizationUsed" }),
  getAbiItem({ abi: collectionAbi, name: "Transfer" }),
] as const

type OwnershipLog = GetLogsReturnType<undefined, typeof ownershipEvents>[number]

function changeOf(log: OwnershipLog): OwnershipChange {
  const { address, transactionHash } = log
  const change = { address, transaction_hash: transactionHash ?? "" }
  return log.eventName === "AuthorizationUsed"
    ? { ...change, serial: log.args.serial ?? 0n, digest: log.args.authorization ?? null }
    : { ...change, serial: log.args.tokenId ?? 0n, digest: null }
}

function concerns(watch: WatchAuthorizationInput, contract: Address, serial: bigint): boolean {
  return serial === BigInt(watch.serial) && isAddressEqual(contract, watch.contract_address as Address)
}

async function outcomeOf(
  round: Round,
  watch: WatchAuthorizationInput,
  changes: OwnershipChange[],
  block: { timestamp: bigint },
): Promise<WatchAuthorizationOutput | null> {
  const ofToken = changes.filter(({ address, serial }) => concerns(watch, address, serial))
  const use = ofToken.find(({ digest }) => digest === watch.authorization_digest)
  if (use) return { outcome: "used", transaction_hash: use.transaction_hash }
  const deadline = BigInt(Math.floor(Date.parse(watch.deadline_at) / 1000))
  const isOver = block.timestamp > deadline
  if (ofToken.length === 0 && !isOver) return null
  // Logs can be missing where a provider was behind, or be in blocks still to be read; the state here cannot.
  const nonce = await nonceAt(round, watch)
  if (nonce === null) return null
  if (nonce > watch.authorization_nonce)
    return await outcomeInLogs(round, watch, nonce - watch.authorization_nonce)
  return isOver ? { outcome: "expired" } : null
}

/**
 * What became of an authorization whose token changed hands, each time with its next nonce, found where the first
 * of these changes is. Null where no provider has its log; it is asked for again when the deadline is over.
 */
async function outcomeInLogs(
  { context, chain, deepest }: Round,
  watch: WatchAuthorizationInput,
  changes: number,
): Promise<WatchAuthorizationOutput | null> {
  const search = {
    address: watch.contract_address as Address,
    deployed_block: await deployedBlock(context.db.read, watch),
    newest_block: deepest,
    event_name: "Transfer",
    args: { tokenId: BigInt(watch.serial) },
  } as const
  const moves = await searchCollectionLogs(chain, search, (found) => found.length >= changes).catch(none)
  const hash = moves[changes - 1]?.transactionHash
  if (!hash) {
    const { chain_id, contract_address, serial } = watch
    const message = "its logs are not all there: is there a provider that has all of them?"
    context.log.warn({ chain_id, contract_address, serial }, message)
    return null
  }
  const { logs } = await reach(() => chain.rpc.getTransactionReceipt({ hash }))
  const isUsed = parseEventLogs({ abi: collectionAbi, eventName: "AuthorizationUsed", logs }).some(
    ({ address, args }) =>
      concerns(watch, address, args.serial) && args.authorization === watch.authorization_digest,
  )
  return { outcome: isUsed ? "used" : "superseded", transaction_hash: hash }
}

/** Providers that refuse to be searched are no reason to hold up other authorizations. */
function none(error: unknown): [] {
  if (error instanceof ChainUnreachable) return []
  throw error
}

async function deployedBlock(
  queries: Queries,
  { chain_id, contract_address }: WatchAuthorizationInput,
): Promise<number | null> {
  const [collection] = await queries
    .select({ deployed_block: collections.deployed_block })
    .from(collections)
    .where(and(eq(collections.chain_id, chain_id), eq(collections.address, contract_address)))
  return collection?.deployed_block ?? null
}

/** The nonce of the token's next authorization; null while a reorganization has lost its issuance. */
async function nonceAt({ chain, deepest }: Round, watch: WatchAuthorizationInput): Promise<number | null> {
  const nonce = await reach(() =>
    chain.rpc.readContract({
      address: watch.contract_address as Address,
      abi: collectionAbi,
      functionName: "authorizationNonce",
      args: [BigInt(watch.serial)],
      blockNumber: deepest,
    }),
  ).catch((error) => {
    if (error instanceof CallReverted) return null
    throw error
  })
  return nonce === null ? null : Number(nonce)
}

async function openWatches(context: Context, chain: ConnectedChain): Promise<Watch[]> {
  const rows = await context.db.read
    .select({ effect_id: effects.id, request_id: effects.request_id, input: effects.input })
    .from(effects)
    .where(and(eq(effects.queue, `chain:${chain.chain_id}`), eq(effects.status, "open")))
    .orderBy(asc(effects.id))
  return rows.map((row) => ({ ...row, input: row.input as WatchAuthorizationInput }))
}

/** The last block that was read and is still part of the chain; a lost one leads back by the finality depth. */
async function lastRead(context: Context, chain: ConnectedChain, deepest: bigint): Promise<bigint | null> {
  const [cursor] = await context.db.read
    .select()
    .from(chainCursors)
    .where(eq(chainCursors.chain_id, chain.chain_id))
  if (!cursor) return null
  const read = BigInt(cursor.block_number)
  if (read <= deepest) {
    const block = await chain.headers.at(read)
    if (block.hash === cursor.block_hash) return read
  }
  // A provider that is behind is no sign of a reorganization.
  if (read > deepest && read - deepest < BigInt(chain.config.finality_depth)) return deepest
  const safe = (read < deepest ? read : deepest) - BigInt(chain.config.finality_depth)
  context.log.warn(
    { chain_id: chain.chain_id, from_block: Number(safe) },
    "blocks were lost and are read again",
  )
  return safe < 0n ? -1n : safe
}

async function moveCursor(turn: Turn, chain: ConnectedChain, block: { number: bigint; hash: string }) {
  const position = { block_number: Number(block.number), block_hash: block.hash, updated_at: turn.at }
  await turn.tx
    .insert(chainCursors)
    .values({ chain_id: chain.chain_id, ...position })
    .onConflictDoUpdate({ target: chainCursors.chain_id, set: position })
}
