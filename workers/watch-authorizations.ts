import { and, asc, eq } from "drizzle-orm"
import { type Address, isAddressEqual } from "viem"
import type { WatchAuthorizationInput, WatchAuthorizationOutput } from "../machines/authorization.ts"
import { settleEffect } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { ChainUnreachable, reach } from "../src/chain/rpc.ts"
import { type Context, inTurn } from "../src/context.ts"
import { chainCursors, effects } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { noteSettled } from "./note-step.ts"
import type { Checkpoint } from "./step.ts"

/** How many blocks are read at once when the service was away for long. */
const blocksAtOnce = 500n

/**
 * One round of a chain: reads the blocks that have become deep enough and settles the authorizations they used,
 * outran or superseded. Authorizations are known by contract, serial and digest, never by what a client reports.
 */
export async function watchAuthorizations(
  context: Context,
  chain: ConnectedChain,
  checkpoint: Checkpoint,
): Promise<void> {
  const { number: head } = await reach(() => chain.headers.follow())
  const deepest = head - BigInt(chain.config.confirmation_depth) + 1n
  if (deepest < 0n) return
  const read = await lastRead(context, chain, deepest)
  if (read === deepest) return
  const watched = await openWatches(context, chain)
  // Without anybody to watch for, nothing before now can matter.
  const from = watched.length === 0 || read === null ? deepest : read + 1n

  for (let first = from; first <= deepest; first += blocksAtOnce) {
    const last = first + blocksAtOnce - 1n < deepest ? first + blocksAtOnce - 1n : deepest
    await readBlocks({ context, chain, checkpoint, deepest }, watched, first, last)
  }
}

type Watch = { effect_id: string; request_id: string | null; input: WatchAuthorizationInput }

/** A round of one chain, which looks no further than a block at the confirmation depth. */
type Round = { context: Context; chain: ConnectedChain; checkpoint: Checkpoint; deepest: bigint }

async function readBlocks(round: Round, watched: Watch[], first: bigint, last: bigint): Promise<void> {
  const { context, chain, checkpoint } = round
  const since = performance.now()
  const block = await reach(() => chain.headers.at(last))
  const changes = await ownershipChanges(chain, watched, first, last)
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

type OwnershipLog = OwnershipChange & { block_number: bigint; block_hash: string }

async function ownershipChanges(
  chain: ConnectedChain,
  watched: Watch[],
  fromBlock: bigint,
  toBlock: bigint,
): Promise<OwnershipChange[]> {
  const address = [...new Set(watched.map(({ input }) => input.contract_address as Address))]
  if (address.length === 0) return []
  const range = { address, abi: collectionAbi, fromBlock, toBlock }
  const [used, moved] = await Promise.all([
    reach(() => chain.rpc.getContractEvents({ ...range, eventName: "AuthorizationUsed" })),
    reach(() => chain.rpc.getContractEvents({ ...range, eventName: "Transfer" })),
  ])
  const logs: OwnershipLog[] = [
    ...used.map((log) => ({
      address: log.address,
      serial: log.args.serial ?? 0n,
      digest: log.args.authorization ?? null,
      transaction_hash: log.transactionHash,
      block_number: log.blockNumber,
      block_hash: log.blockHash,
    })),
    ...moved.map((log) => ({
      address: log.address,
      serial: log.args.tokenId ?? 0n,
      digest: null,
      transaction_hash: log.transactionHash,
      block_number: log.blockNumber,
      block_hash: log.blockHash,
    })),
  ].filter(({ address: contract, serial }) => watched.some(({ input }) => concerns(input, contract, serial)))
  // A range may be answered by a provider that follows another fork.
  for (const log of logs) {
    const { hash } = await reach(() => chain.headers.at(log.block_number))
    if (hash !== log.block_hash) throw new ChainUnreachable(`block ${log.block_number} is of another fork`)
  }
  return logs
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
  const last = ofToken.at(-1)
  if (last && (await nonceAt(round, watch)) > watch.authorization_nonce)
    return { outcome: "superseded", transaction_hash: last.transaction_hash }
  const deadline = BigInt(Math.floor(Date.parse(watch.deadline_at) / 1000))
  if (block.timestamp <= deadline) return null
  // Logs can be missing where a provider was behind; the state at this depth cannot.
  if ((await nonceAt(round, watch)) === watch.authorization_nonce) return { outcome: "expired" }
  return await outcomeInLogs(round, watch)
}

/** What became of an authorization whose token moved on without our seeing it. */
async function outcomeInLogs(
  { chain, deepest }: Round,
  watch: WatchAuthorizationInput,
): Promise<WatchAuthorizationOutput> {
  const changes = await ownershipChanges(
    chain,
    [{ effect_id: "", request_id: null, input: watch }],
    0n,
    deepest,
  )
  const use = changes.find(({ digest }) => digest === watch.authorization_digest)
  const transaction_hash = (use ?? changes.at(-1))?.transaction_hash
  if (!transaction_hash) throw new ChainUnreachable(`the logs of ${watch.contract_address} are not all there`)
  return { outcome: use ? "used" : "superseded", transaction_hash }
}

async function nonceAt({ chain, deepest }: Round, watch: WatchAuthorizationInput): Promise<number> {
  const nonce = await reach(() =>
    chain.rpc.readContract({
      address: watch.contract_address as Address,
      abi: collectionAbi,
      functionName: "authorizationNonce",
      args: [BigInt(watch.serial)],
      blockNumber: deepest,
    }),
  )
  return Number(nonce)
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
    const block = await reach(() => chain.headers.at(read))
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
