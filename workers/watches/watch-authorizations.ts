import { and, asc, eq } from "drizzle-orm"
import {
  type Address,
  type GetLogsReturnType,
  getAbiItem,
  isAddressEqual,
  parseEventLogs,
  zeroAddress,
} from "viem"
import type { WatchAuthorizationInput, WatchAuthorizationOutput } from "../../machines/authorization.ts"
import type { Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { collections, effects } from "../../src/db/schema.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { least } from "../../src/engine/chain/extremes.ts"
import { searchCollectionLogs } from "../../src/engine/chain/logs.ts"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { ChainUnreachable, type Rpc, reach, unlessReverted } from "../../src/engine/chain/rpc.ts"
import { noteSettled } from "../../src/engine/lanes/note-step.ts"
import type { Checkpoint } from "../../src/engine/lanes/step.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { chainQueue } from "../../src/platform/queues.ts"
import { lastRead, moveCursor } from "./chain-cursor.ts"
import { askOwnersAnew, type Contracts, contractsOn, followMoves, type Move } from "./follow-owners.ts"
import { restateUse, type ToldUse, toldUses } from "./told-uses.ts"

/** How many blocks are asked for at the same time while they may still be replaced. */
const blocksAtOnce = 4n

/**
 * One round of a chain: reads the blocks that have become deep enough, follows who owns what, and settles the
 * authorizations they used, outran or superseded. Authorizations are known by contract, serial and digest, never by
 * what a client reports. A use that a reorganization deeper than that has put into another transaction is told of that
 * one. Answers "idle" where nothing is open and there was nothing to read.
 */
export async function watchAuthorizations(
  context: Context,
  chain: ConnectedChain,
  checkpoint: Checkpoint,
): Promise<"idle" | "at work"> {
  const { headers } = chain
  const isIdle = (await openWatches(context, chain)).length === 0
  const { number: head } = await (isIdle ? headers.followIdly() : headers.follow())
  const deepest = head - BigInt(chain.config.confirmation_depth) + 1n
  if (deepest < 0n) return "at work"
  const read = await lastRead(context, chain, deepest)
  if (read.block === deepest) return isIdle ? "idle" : "at work"
  if (read.is_lost) await askOwnersAnew(context, chain, { safe: read.block, deepest })
  const watched = await openWatches(context, chain)
  const told = await toldUses(context, chain.chain_id)
  const contracts = await contractsOn(context.db.read, chain.chain_id)
  // Without a contract, nothing before now can matter.
  const from = contracts.size === 0 ? deepest : read.block + 1n

  const final = head - BigInt(chain.config.finality_depth) + 1n
  const rangeSize = BigInt(chain.config.log_range_blocks)
  for (let first = from; first <= deepest; ) {
    const last = first <= final ? least(first + rangeSize - 1n, final) : first + blocksAtOnce - 1n
    const is_doubtful = first === from && read.is_lost
    const span = { first, last: least(last, deepest), is_final: first <= final, is_doubtful }
    await readBlocks({ context, chain, checkpoint, deepest, told, contracts }, watched, span)
    first = span.last + 1n
  }
  return "at work"
}

/**
 * Blocks in a row that are read together; final ones cannot be replaced any more. Doubtful: before them, too, blocks may
 * have been read that are no longer part of the chain, as from a provider that followed another fork for long.
 */
type Span = { first: bigint; last: bigint; is_final: boolean; is_doubtful: boolean }

type Watch = { effect_id: string; request_id: string | null; input: WatchAuthorizationInput }

/** A round of one chain, which looks no further than a block at the confirmation depth. */
type Round = {
  context: Context
  chain: ConnectedChain
  checkpoint: Checkpoint
  deepest: bigint
  told: readonly ToldUse[]
  contracts: Contracts
}

async function readBlocks(round: Round, watched: Watch[], span: Span): Promise<void> {
  const { context, chain, checkpoint, told, contracts } = round
  const since = performance.now()
  const block = await chain.headers.at(span.last)
  const all = await ownershipChanges(round, span)
  const changes = Map.groupBy(all, ({ address, serial }) => tokenKey(address, serial))
  const moves = all.flatMap(({ move }) => move ?? [])
  const outcomes: { watch: Watch; output: WatchAuthorizationOutput }[] = []
  const seen = { changes, timestamp: block.timestamp, is_doubtful: span.is_doubtful }
  for (let first = 0; first < watched.length; first += watchesAtOnce) {
    const some = watched.slice(first, first + watchesAtOnce)
    const found = await Promise.all(some.map(({ input }) => outcomeOf(round, input, seen)))
    for (const [index, watch] of some.entries()) {
      const outcome = found[index]
      if (!outcome) continue
      outcomes.push({ watch, output: outcome.output })
      if (outcome.newest) moves.push(outcome.newest)
    }
  }
  if (outcomes.length > 0) checkpoint("watch.read", "watchAuthorization")
  await inTurn(context, null, async (turn) => {
    for (const { watch, output } of outcomes) await settleEffect(turn, watch.effect_id, { output })
    for (const { id, transaction_hash } of usedAnew(told, changes))
      await restateUse(turn, id, transaction_hash)
    // After the results, so that what the blocks say stands.
    await followMoves(turn, contracts, moves)
    await moveCursor(turn, chain.chain_id, block)
  })
  if (outcomes.length > 0) checkpoint("watch.settle", "watchAuthorization")
  for (const { watch, output } of outcomes) noteSettled(context, since, watch, output.outcome)
  const settled = new Set(outcomes.map(({ watch }) => watch))
  watched.splice(0, watched.length, ...watched.filter((watch) => !settled.has(watch)))
}

/** So that whoever has many is not asked about all of them at the same time. */
const watchesAtOnce = 20

/** What was told of and is in another transaction now. */
function usedAnew(told: readonly ToldUse[], changes: Changes) {
  return told.flatMap((use) => {
    const found = changesOf(changes, use).find(({ digest }) => digest === use.authorization_digest)
    if (!found || found.transaction_hash === use.transaction_hash) return []
    return [{ id: use.id, transaction_hash: found.transaction_hash }]
  })
}

/** By contract and serial, each in the order of the chain. */
type Changes = ReadonlyMap<string, OwnershipChange[]>

function changesOf(changes: Changes, { contract_address, serial }: Token): OwnershipChange[] {
  return changes.get(tokenKey(contract_address, serial)) ?? []
}

function tokenKey(contract: string, serial: number | bigint): string {
  return `${contract.toLowerCase()} ${serial}`
}

type OwnershipChange = {
  address: Address
  serial: bigint
  digest: string | null
  transaction_hash: string
  move: Move | null
}

/** What happened to the tokens of all collections, in the order of the chain. */
async function ownershipChanges({ chain, contracts }: Round, span: Span): Promise<OwnershipChange[]> {
  const addresses = [...contracts.values()].map(({ address }) => address)
  const changes: OwnershipChange[] = []
  for (let first = 0; first < addresses.length; first += addressesAtOnce) {
    const some = addresses.slice(first, first + addressesAtOnce)
    changes.push(...(await (span.is_final ? changesInRange : changesByBlock)(chain, some, span)))
  }
  return changes
}

/** As many addresses as providers take in one question. */
const addressesAtOnce = 500

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

function moveOf({ address, args: { from, to, tokenId }, blockNumber }: TransferLog): Move | null {
  if (!from || !to || tokenId === undefined || blockNumber === null) return null
  return { address, serial: tokenId, from, to, block_number: blockNumber }
}

type TransferLog = Extract<OwnershipLog, { eventName: "Transfer" }>

type Token = Pick<WatchAuthorizationInput, "contract_address" | "serial">

function concerns(token: Token, contract: Address, serial: bigint): boolean {
  return serial === BigInt(token.serial) && isAddressEqual(contract, token.contract_address as Address)
}

type SeenInBlocks = { changes: Changes; timestamp: bigint; is_doubtful: boolean }

async function outcomeOf(
  round: Round,
  watch: WatchAuthorizationInput,
  { changes, timestamp, is_doubtful }: SeenInBlocks,
): Promise<FoundOutcome | null> {
  const ofToken = changesOf(changes, watch)
  const use = ofToken.find(({ digest }) => digest === watch.authorization_digest)
  if (use) return { output: { outcome: "used", transaction_hash: use.transaction_hash }, newest: null }
  const deadline = BigInt(Math.floor(Date.parse(watch.deadline_at) / 1000))
  const isOver = timestamp > deadline
  if (ofToken.length === 0 && !isOver && !is_doubtful) return null
  // Logs can be missing where a provider was behind, or be in blocks still to be read; the state here cannot.
  const nonce = await nonceAt(round, watch)
  if (nonce === null) return null
  if (nonce > watch.authorization_nonce)
    return await outcomeInLogs(round, watch, nonce - watch.authorization_nonce)
  return isOver ? { output: { outcome: "expired" }, newest: null } : null
}

/** What became of an authorization; `newest` is the token's last move, where that had to be searched for. */
type FoundOutcome = { output: WatchAuthorizationOutput; newest: Move | null }

/**
 * What became of an authorization whose token changed its owner or chip, each time with its next nonce, found where
 * the first of these changes is. Null where no provider has its log; it is asked for again when the deadline is over.
 */
async function outcomeInLogs(
  round: Round,
  watch: WatchAuthorizationInput,
  changes: number,
): Promise<FoundOutcome | null> {
  const { context, chain } = round
  const { found, newest } = await nonceChanges(round, watch, changes)
  const change = found[changes - 1]
  if (!change || !(await isAfterNonce(chain, watch, change))) {
    const { chain_id, contract_address, serial } = watch
    const message = "its logs are not all there: is there a provider that has all of them?"
    context.log.warn({ chain_id, contract_address, serial }, message)
    return null
  }
  const { transactionHash: hash } = change
  const { logs } = await reach(() => chain.rpc.getTransactionReceipt({ hash }))
  const isUsed = parseEventLogs({ abi: collectionAbi, eventName: "AuthorizationUsed", logs }).some(
    ({ address, args }) =>
      concerns(watch, address, args.serial) && args.authorization === watch.authorization_digest,
  )
  const output = { outcome: isUsed ? "used" : "superseded", transaction_hash: hash } as const
  return { output, newest }
}

/**
 * Whether a change is at or after the one that took the authorization's nonce: where newer logs are missing, it is an
 * older one. Nodes that have forgotten so old a state cannot tell, and are believed to have all logs.
 */
async function isAfterNonce(
  { rpc }: ConnectedChain,
  watch: WatchAuthorizationInput,
  { blockNumber }: { blockNumber: bigint },
): Promise<boolean> {
  const read = () => readNonce(rpc, watch, blockNumber)
  // Where there is no such token, nothing of it can have changed.
  const nonce = await unlessReverted(() => unlessForgotten(read), 0)
  return nonce === null || nonce > watch.authorization_nonce
}

/** So many changes that moved the token's nonce, the newest first, and its last move. */
async function nonceChanges(
  { context, chain, deepest }: Round,
  watch: WatchAuthorizationInput,
  count: number,
) {
  const address = watch.contract_address as Address
  const { generation } = await chain.generations.originOf(address)
  const where = {
    address,
    deployed_block: await deployedBlock(context.db.read, watch),
    newest_block: deepest,
  }
  const tokenId = BigInt(watch.serial)
  const isEnough = (found: unknown[]) => found.length >= count
  const search = { ...where, event_name: "Transfer", args: { tokenId } } as const
  const transfers = await searchCollectionLogs(chain, search, isEnough).catch(none)
  // Its issuance moves a token, and no nonce.
  const moves = transfers.filter(({ args }) => args.from !== zeroAddress)
  const newest = moves[0] ? moveOf(moves[0]) : null
  // Of the first generation only owners count.
  if (generation === 1) return { found: moves, newest }
  const ofChips = { ...where, event_name: "ChipReplaced", args: { serial: tokenId } } as const
  const swaps = await searchCollectionLogs(chain, ofChips, isEnough).catch(none)
  const found = [...moves, ...swaps].sort(
    (one, other) =>
      Number(other.blockNumber - one.blockNumber) || (other.logIndex ?? 0) - (one.logIndex ?? 0),
  )
  return { found, newest }
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
  return await unlessReverted(() => readNonce(chain.rpc, watch, deepest), null)
}

async function readNonce(rpc: Rpc, watch: WatchAuthorizationInput, blockNumber: bigint): Promise<number> {
  const nonce = await rpc.readContract({
    address: watch.contract_address as Address,
    abi: collectionAbi,
    functionName: "authorizationNonce",
    args: [BigInt(watch.serial)],
    blockNumber,
  })
  return Number(nonce)
}

async function openWatches(context: Context, chain: ConnectedChain): Promise<Watch[]> {
  const rows = await openIn(context.db.read, { queue: chainQueue(chain.chain_id) })
  return rows.map((row) => ({ ...row, input: row.input as WatchAuthorizationInput }))
}

const openIn = query((db, { queue }: Given<{ queue: string }>) =>
  db
    .select({ effect_id: effects.id, request_id: effects.request_id, input: effects.input })
    .from(effects)
    .where(and(eq(effects.queue, queue), eq(effects.status, "open")))
    .orderBy(asc(effects.id)),
)
