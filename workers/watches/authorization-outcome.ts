import { and, eq } from "drizzle-orm"
import { type Address, type Hex, isAddressEqual, parseEventLogs, zeroAddress } from "viem"
import type { WatchAuthorizationInput, WatchAuthorizationOutput } from "../../machines/authorization.ts"
import type { Queries } from "../../src/db/database.ts"
import { collections, type EffectRow } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { least, most } from "../../src/engine/chain/extremes.ts"
import { type Header, mostBehind } from "../../src/engine/chain/headers.ts"
import type { BlockRange } from "../../src/engine/chain/log-ranges.ts"
import { byPlace, logsOf, searchRanges } from "../../src/engine/chain/logs.ts"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { ChainUnreachable, type Rpc, reach, unlessReverted } from "../../src/engine/chain/rpc.ts"
import { stateAt } from "../../src/engine/chain/state-at.ts"
import type { Context } from "../../src/platform/context.ts"
import { type Move, ownerAt } from "./follow-owners.ts"
import { type Changes, changesOf, moveOf } from "./ownership-changes.ts"

/**
 * An open authorization. `last_error`: why its outcome was unknown when last judged. `holder`: the owner of its token
 * that it relies on; null in custody.
 */
export type Watch = Pick<EffectRow, "actor_id" | "request_id" | "attempts" | "last_error" | "due_at"> & {
  effect_id: string
  input: WatchAuthorizationInput
  holder: string | null
}

/**
 * What is needed to ask a chain about authorizations, up to the block `deepest` at the confirmation depth. `isAgreed`:
 * whether all providers agree on that block.
 */
export type Asker = {
  context: Context
  chain: ConnectedChain
  deepest: Header
  isAgreed: () => Promise<boolean>
}

/**
 * Blocks that were read, the last one with this timestamp, in Unix seconds. `is_asked_ahead`: owners were asked for at a
 * later one than these.
 */
export type SeenInBlocks = {
  changes: Changes
  timestamp: bigint
  is_doubtful: boolean
  is_asked_ahead: boolean
}

/** `newest`: the token's last move, if it had to be searched for. */
type Ended = { is: "ended"; output: WatchAuthorizationOutput; newest: Move | null }
export type Verdict = Ended | { is: "open" } | { is: "unknown"; because: string }

/**
 * Judges an authorization after some blocks were read; null if they contain nothing of its token and there is no need
 * to ask. One that stays unused is asked about once, because it may have been made from an older state; one with an
 * unknown outcome is asked about repeatedly.
 */
export async function judgeAuthorization(
  asker: Asker,
  watch: Watch,
  { changes, timestamp, is_doubtful, is_asked_ahead }: SeenInBlocks,
): Promise<Verdict | null> {
  const asked = watch.input
  const ofToken = changesOf(changes, asked)
  const use = ofToken.find(({ digest }) => digest === asked.authorization_digest)
  if (use) return ended({ outcome: "used", transaction_hash: use.transaction_hash })
  const deadline = BigInt(Math.floor(Date.parse(asked.deadline_at) / 1000))
  const isOver = timestamp > deadline
  if (ofToken.length === 0 && !isOver && !is_doubtful && !isDue(watch, asker.context.clock())) return null
  if (is_asked_ahead) return stillToRead
  try {
    // Without agreement, the block may be one that most of the network does not have.
    if (!(await asker.isAgreed())) return providersDisagree
    return await verdictByState(asker, watch, isOver)
  } catch (error) {
    // An unknown outcome for one token does not hold up the others.
    if (error instanceof ChainUnreachable) return { is: "unknown", because: error.message }
    throw error
  }
}

const providersDisagree: Verdict = {
  is: "unknown",
  because: "not all providers agree on the newest confirmed block",
}

const stillToRead: Verdict = {
  is: "unknown",
  because: "owners were asked for at a block that is still to be read",
}

/** Judges by the state: unlike logs, it cannot be missing because a provider was behind or blocks are still unread. */
async function verdictByState(asker: Asker, watch: Watch, isOver: boolean): Promise<Verdict> {
  const asked = watch.input
  const nonce = await nonceAt(asker, asked, asker.deepest)
  if (nonce === null) return { is: "unknown", because: "the chain does not have the token of its unit" }
  if (nonce > asked.authorization_nonce)
    return await outcomeInLogs(asker, asked, nonce - asked.authorization_nonce)
  if (isOver) return ended({ outcome: "expired" })
  if (nonce < asked.authorization_nonce || (await isHolders(asker, watch, asker.deepest)))
    return { is: "open" }
  // The token reached this nonce in another way, as on another fork: no one can use the authorization.
  const { headers } = asker.chain
  const final = await headers.at(least(await headers.finalHeight(), asker.deepest.number))
  if ((await nonceAt(asker, asked, final)) === nonce && !(await isHolders(asker, watch, final)))
    return await outcomeByLast(asker, asked)
  return { is: "unknown", because: "its unit belongs to somebody else, but that is not final yet" }
}

async function isHolders({ chain }: Asker, { input, holder }: Watch, block: Header): Promise<boolean> {
  const owner = await ownerAt(chain, input.contract_address as Address, input.serial, block)
  return owner === holder
}

async function outcomeByLast(asker: Asker, asked: WatchAuthorizationInput): Promise<Verdict> {
  const { found, newest } = await nonceChanges(asker, asked, 1)
  return found[0] ? await outcomeOf(asker, asked, found[0], newest) : withoutLogs
}

function isDue({ attempts, last_error, due_at }: Watch, now: Date): boolean {
  const since = now.getTime() - due_at.getTime()
  return attempts === 0 ? since >= unusedMilliseconds : last_error !== null && since >= 0
}

/** Most authorizations are used sooner, which the logs show. */
const unusedMilliseconds = 30_000

function ended(output: WatchAuthorizationOutput, newest: Move | null = null): Ended {
  return { is: "ended", output, newest }
}

/**
 * Finds the outcome of an authorization whose token changed owner or chip since. Each change takes the next
 * nonce, so the first of them decides.
 */
async function outcomeInLogs(
  asker: Asker,
  asked: WatchAuthorizationInput,
  changes: number,
): Promise<Verdict> {
  const { found, newest } = await nonceChanges(asker, asked, changes)
  const change = found[changes - 1]
  if (!change) return withoutLogs
  const nonce = await nonceIfKept(asker, asked, { hash: change.blockHash, number: change.blockNumber })
  // Another change than the one that took the authorization's nonce, if newer logs are missing or of another fork.
  const after = asked.authorization_nonce + changes
  const inBlock = found.slice(0, changes).filter(({ blockHash }) => blockHash === change.blockHash).length
  const isFirst =
    nonce === null
      ? await hasNewest(asker, asked, { found, after })
      : nonce === asked.authorization_nonce + inBlock
  if (!isFirst) return withoutLogs
  return await outcomeOf(asker, asked, change, newest)
}

/** Ends an authorization by a change of its token: by its own use, or by another one. */
async function outcomeOf(
  { chain }: Asker,
  asked: WatchAuthorizationInput,
  { transactionHash: hash, blockHash: block }: { transactionHash: Hex; blockHash: Hex },
  newest: Move | null,
): Promise<Verdict> {
  const { logs, blockHash } = await reach(() => chain.rpc.getTransactionReceipt({ hash }))
  if (blockHash !== block) return { is: "unknown", because: "the block of its use was replaced" }
  const isUsed = parseEventLogs({ abi: collectionAbi, eventName: "AuthorizationUsed", logs }).some(
    ({ address, args }) =>
      args.serial === BigInt(asked.serial) &&
      isAddressEqual(address, asked.contract_address as Address) &&
      args.authorization === asked.authorization_digest,
  )
  return ended({ outcome: isUsed ? "used" : "superseded", transaction_hash: hash }, newest)
}

const withoutLogs: Verdict = {
  is: "unknown",
  because: "some of its logs are missing: add a provider that has all logs to rpc_urls in CHAINS",
}

/**
 * Returns whether all changes of the newest blocks were found, `after` which this is the nonce: a node that is behind
 * leaves out those of blocks that it lacks. A node that has pruned even that state is trusted to have all logs.
 */
async function hasNewest(
  asker: Asker,
  asked: WatchAuthorizationInput,
  { found, after }: { found: { blockNumber: bigint }[]; after: number },
): Promise<boolean> {
  const { chain, deepest } = asker
  const held = await chain.headers.at(most(deepest.number - mostBehind(chain.config), 0n))
  const before = await nonceIfKept(asker, asked, held)
  const newer = found.filter(({ blockNumber }) => blockNumber > held.number)
  return before === null || before + newer.length === after
}

/** Reads a token's nonce at an older block, 0 if there was no such token; null if the node has pruned that state. */
async function nonceIfKept(
  { chain }: Asker,
  asked: WatchAuthorizationInput,
  block: Pick<Header, "hash" | "number">,
): Promise<number | null> {
  return await unlessReverted(() => unlessForgotten(() => readNonce(chain.rpc, asked, block)), 0)
}

/** Returns the last changes that advanced the token's nonce, newest first, and its last move. */
async function nonceChanges(
  { context, chain, deepest }: Asker,
  asked: WatchAuthorizationInput,
  count: number,
) {
  const address = asked.contract_address as Address
  const { generation } = await chain.generations.originOf(address)
  const where = {
    deployed_block: await deployedBlock(context.db.read, asked),
    newest_block: deepest.number,
  }
  const serial = BigInt(asked.serial)
  const ofOwners = { address, event_name: "Transfer", args: { tokenId: serial } } as const
  const ofChips = { address, event_name: "ChipReplaced", args: { serial } } as const
  // Searches for both together, range by range: a search for one kind alone goes down to
  // the deployment if there is none.
  const changesIn = async (range: BlockRange) => {
    const [transfers, swaps] = await Promise.all([
      logsOf(chain, ofOwners, range),
      // In the first generation only changes of owner advance the nonce.
      generation === 1 ? [] : logsOf(chain, ofChips, range),
    ])
    // An issuance is a `Transfer`, too, but advances no nonce.
    const moves = transfers.filter(({ args }) => args.from !== zeroAddress)
    const changes = [
      ...moves.map((log) => ({ log, move: moveOf(log) })),
      ...swaps.map((log) => ({ log, move: null })),
    ]
    return changes.sort(({ log: one }, { log: other }) => byPlace(one, other))
  }
  const found = await searchRanges(chain, where, changesIn, (some) => some.length >= count).catch(none)
  return { found: found.map(({ log }) => log), newest: found.find(({ move }) => move)?.move ?? null }
}

/** Returns nothing found if providers refuse the search, which must not hold up other authorizations. */
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

/** Reads the nonce of the token's next authorization; null while a reorganization has undone its issuance. */
async function nonceAt(
  { chain }: Asker,
  asked: WatchAuthorizationInput,
  block: Header,
): Promise<number | null> {
  return await unlessReverted(() => readNonce(chain.rpc, asked, block), null)
}

/** Reads the nonce of a token's next authorization at a block. */
export async function readNonce(
  rpc: Rpc,
  asked: WatchAuthorizationInput,
  block: Pick<Header, "hash" | "number">,
): Promise<number> {
  const token = {
    address: asked.contract_address as Address,
    abi: collectionAbi,
    functionName: "authorizationNonce",
    args: [BigInt(asked.serial)],
  } as const
  const nonce = await stateAt(rpc, block, (place) => rpc.readContract({ ...token, ...place }))
  return Number(nonce)
}
