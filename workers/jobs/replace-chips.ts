import { eq } from "drizzle-orm"
import {
  type Address,
  encodeFunctionData,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem"
import { failure } from "../../machines/failures.ts"
import type { Queries } from "../../src/db/database.ts"
import { chipReplacements, collections, units } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { newestConfirmed, newestSince } from "../../src/engine/chain/headers.ts"
import { chipNumber } from "../../src/engine/chain/issue-call.ts"
import { searchCollectionLogs } from "../../src/engine/chain/logs.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { tokenAt } from "../../src/engine/chain/token-at.ts"
import { doneBy, type Effect, type Job, type JobResult, maxPlans } from "../../src/engine/jobs/job.ts"
import { openSwaps } from "./open-swaps.ts"
import { isClaimedAtDepth, isSoAsFinal, type TokenState, tokenAtDepth, tokenNow } from "./token-at-depth.ts"

/** Binds a unit's token to another chip, by compare-and-set. */
export const replaceChips: Job<"replaceChip"> = {
  submittedEvent: "SUBMITTED",

  async plan(chain, queries, [effect]) {
    const { previous_chip_id, chip_id } = effect.input
    const token = await tokenOf(queries, effect)
    if ((await followsOpenSwap(queries, effect)) && (await isPreviousSwapLost(chain, token, effect)))
      return { do: "wait", effects: [effect] }
    return {
      do: "call",
      members: [effect],
      to: token.contract,
      data: encodeFunctionData({
        abi: collectionAbi,
        functionName: "replaceChip",
        args: [token.serial, chipNumber(previous_chip_id), chipNumber(chip_id)],
      }),
      gas: 150_000n,
    }
  },

  refusal: (reason) => {
    if (reason === "ChipLocked") return failure("chip_replacement.locked", reason)
    return reason === "ChipMismatch" ? failure(reverted, reason) : null
  },

  async earlier(chain, queries, effect) {
    const token = await tokenOf(queries, effect)
    const chip = chipNumber(effect.input.chip_id)
    return await swapOf(chain, token, chip, 0n)
  },

  mayPass: async (queries, effect, reason) =>
    reason === "ChipMismatch" && (await followsOpenSwap(queries, effect)),

  async results(chain, queries, { effects: swaps, receipt }) {
    return await Promise.all(swaps.map((effect) => resultOf(chain, queries, effect, receipt)))
  },

  async restate({ tx, at }, { actor_id }, transaction_hash) {
    const change = { transaction_hash, updated_at: at }
    await tx.update(chipReplacements).set(change).where(eq(chipReplacements.id, actor_id))
  },
}

/** A replacement whose transaction has no event of it, and its token since. */
type Judged = {
  chain: ConnectedChain
  queries: Queries
  effect: Effect<"replaceChip">
  receipt: TransactionReceipt
  token: Token
  now: Awaited<ReturnType<typeof tokenSince>>
}

type Result = JobResult<"replaceChip">

/**
 * Judges a replacement. Success is the contract's own event, here or in an earlier transaction, or its state if
 * the contract had nothing to do.
 */
async function resultOf(
  chain: ConnectedChain,
  queries: Queries,
  effect: Effect<"replaceChip">,
  receipt: TransactionReceipt,
): Promise<Result> {
  const { chip_id, previous_chip_id } = effect.input
  const token = await tokenOf(queries, effect)
  if (isSwappedIn(receipt, token, chip_id))
    return { output: { transaction_hash: receipt.transactionHash }, block_number: null }
  const now = await tokenSince(chain, token, receipt.blockNumber)
  const judged = { chain, queries, effect, receipt, token, now }
  switch (now.chip_id) {
    case chip_id:
      return await resultIfBound(judged)
    case previous_chip_id:
      return await resultIfAsBefore(judged)
    default:
      return await resultIfBoundToAnother(judged)
  }
}

function isSwappedIn({ logs }: TransactionReceipt, { contract, serial }: Token, chipId: string): boolean {
  const chip = chipNumber(chipId)
  return parseEventLogs({ abi: collectionAbi, eventName: "ChipReplaced", logs }).some(
    ({ address, args }) => isAddressEqual(address, contract) && args.serial === serial && args.chip === chip,
  )
}

/**
 * The work is done: by a transaction from before a restored back-up, by one that a reorganization brought back, or by
 * someone else.
 */
async function resultIfBound({ chain, effect, receipt, token }: Judged): Promise<Result> {
  const { chip_id } = effect.input
  const isBound = (then: TokenState) => then.chip_id === chip_id
  const isSuccess = receipt.status === "success"
  const search = isSuccess ? swapIfTold : swapOf
  const other = await search(chain, token, chipNumber(chip_id), receipt.blockNumber)
  if (other) return other
  // The token was issued for this very chip, or no provider that was asked has logs that old.
  const isDone = isSuccess && (await isSoAsFinal(chain, token, receipt.blockNumber, isBound))
  return isDone ? doneBy(receipt) : "again"
}

/** As after the chain lost the issuance, or the previous swap, for a while: only a claim prevents this one. */
async function resultIfAsBefore(judged: Judged): Promise<Result> {
  const { effect, receipt, now } = judged
  if (now.owner !== null) return await resultIfClaimed(judged)
  const isToBeDone = effect.status === "done" || effect.attempts < maxPlans
  return isToBeDone ? "again" : { error: failure(reverted, receipt.transactionHash) }
}

/** The token was bound to this chip and on to another one, or another swap came first. */
async function resultIfBoundToAnother(judged: Judged): Promise<Result> {
  const { chain, queries, effect, receipt, token, now } = judged
  const { chip_id, previous_chip_id } = effect.input
  const other = await swapOf(chain, token, chipNumber(chip_id), receipt.blockNumber)
  if (other) return other
  if (now.owner !== null) return await resultIfClaimed(judged)
  if (await followsOpenSwap(queries, effect)) return "again"
  // What was reported counts as lost only if the other chip is at the confirmation depth:
  // another swap may be undone alone.
  if (effect.status === "done") {
    const then = await tokenAtDepth(chain, token, receipt.blockNumber)
    if (then === null || then.chip_id === previous_chip_id) return "again"
  }
  return { error: failure(reverted, receipt.transactionHash) }
}

/** A claim locks the chip, once it is at the confirmation depth. */
async function resultIfClaimed({ chain, receipt, token }: Judged): Promise<Result> {
  return (await isClaimedAtDepth(chain, token, receipt.blockNumber))
    ? { error: failure("chip_replacement.locked", receipt.transactionHash) }
    : "again"
}

const reverted = "chip_replacement.reverted"

async function followsOpenSwap(queries: Queries, { input }: Effect<"replaceChip">): Promise<boolean> {
  const open = await openSwaps(queries, [input.unit_id])
  return open.some(({ chip_id }) => chip_id === input.previous_chip_id)
}

/** Returns whether the chain has neither of the two chips, or has lost the issuance, too. */
async function isPreviousSwapLost(
  chain: ConnectedChain,
  token: Token,
  { input: { previous_chip_id, chip_id } }: Effect<"replaceChip">,
): Promise<boolean> {
  const now = await tokenNow(chain, token)
  return now === null || (now.owner === null && ![previous_chip_id, chip_id].includes(now.chip_id))
}

/** Returns the newest transaction that bound a token to a chip; null if there is none at the confirmation depth. */
async function swapOf(
  chain: ConnectedChain,
  { contract: address, serial, deployed_block }: Token,
  chip: number,
  seen: bigint,
) {
  const newest_block = await newestConfirmed(chain, seen)
  const isIts = ({ args }: { args: { chip?: number | undefined } }) => args.chip === chip
  const swaps = await searchCollectionLogs(
    chain,
    { address, deployed_block, newest_block, event_name: "ChipReplaced", args: { serial } },
    (found) => found.some(isIts),
  )
  const swap = swaps.find(isIts)
  return swap ? doneBy(swap) : null
}

/** Like `swapOf`, but null also if no provider has the logs: work that is done does not wait for them. */
async function swapIfTold(...search: Parameters<typeof swapOf>) {
  try {
    return await swapOf(...search)
  } catch (error) {
    if (error instanceof ChainUnreachable) return null
    throw error
  }
}

type Token = { contract: Address; serial: bigint; deployed_block: number | null }

/** Reads the token at the newest block, or at a block that was seen if that is later. */
async function tokenSince(chain: ConnectedChain, token: Token, seen: bigint) {
  return await tokenAt(chain, token, await newestSince(chain.headers, seen))
}

async function tokenOf(queries: Queries, { input: { unit_id } }: Effect<"replaceChip">): Promise<Token> {
  const [row] = await queries
    .select({
      serial: units.serial,
      address: collections.address,
      deployed_block: collections.deployed_block,
    })
    .from(units)
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .where(eq(units.id, unit_id))
  if (!row?.serial)
    throw new Error(`the chip of unit ${unit_id} cannot be replaced before the unit has a serial`)
  const { address, serial, deployed_block } = row
  return { contract: address as Address, serial: BigInt(serial), deployed_block }
}
