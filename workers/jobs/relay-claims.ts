import { and, eq, inArray } from "drizzle-orm"
import {
  type Address,
  decodeFunctionData,
  encodeFunctionData,
  getAbiItem,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem"
import { failure } from "../../machines/failures.ts"
import type { Builder, Queries } from "../../src/db/database.ts"
import { type Given, query } from "../../src/db/query.ts"
import { chips, claims, collections, units } from "../../src/db/schema.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { singleCallsIn } from "../../src/engine/chain/desk.ts"
import { newestConfirmed, newestSince } from "../../src/engine/chain/headers.ts"
import { chipIdOf } from "../../src/engine/chain/issue-call.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { searchCollectionLogs } from "../../src/engine/chain/logs.ts"
import { ChainUnreachable, unlessReverted } from "../../src/engine/chain/rpc.ts"
import {
  type Call,
  doneBy,
  type Effect,
  type Job,
  type JobResult,
  type Write,
} from "../../src/engine/jobs/job.ts"
import { isSentBefore } from "../../src/engine/jobs/sent-before.ts"
import { joinAtDesk, maxAtDesk } from "./join-at-desk.ts"
import { openSwaps } from "./open-swaps.ts"
import { isSoAsFinal, tokenAtDepth, tokenNow } from "./token-at-depth.ts"

/** The most waiting claims joined into one transaction. */
const maxClaims = 20

/** Hands units to their recipients. One bad claim in a joined transaction does not affect the others. */
export const relayClaims: Job<"relayClaim"> = {
  async plan(chain, queries, waiting) {
    const known = await claimsOf(queries, waiting)
    const [first] = known
    if (first?.effect.id !== waiting[0].id)
      throw new Error(`unit ${waiting[0].input.unit_id} cannot be claimed before it has a serial`)
    const chosen = nextOf(chain, known)
    const lost = await lostClaims(chain, chosen)
    if (lost.includes(first)) return { do: "wait", effects: lost.map(({ effect }) => effect) }
    const present = chosen.filter((claim) => !lost.includes(claim))
    const taken = await takenClaims(chain, present)
    if (taken.includes(first)) return callOf([first])
    const next = present.filter((claim) => !taken.includes(claim))
    const rebound = await reboundClaims(chain, next)
    const superseded = await supersededClaims(chain, queries, rebound)
    if (superseded.length > 0) return endOf(superseded)
    const held = new Set([...rebound, ...(await heldClaims(chain, queries, next))])
    if (held.has(first)) return { do: "wait", effects: [...held].map(({ effect }) => effect) }
    const byContract = byContractOf(next.filter((claim) => !held.has(claim)))
    const own = callOf(byContract.get(first.contract) ?? [])
    if (byContract.size === 1) return own
    return (await joinAtDesk(chain, [...byContract.values()].map(callOf))) ?? own
  },

  refusal: (reason) => (reason === "AlreadyClaimed" ? failure("claim.already_claimed", reason) : null),

  plansAnew: true,

  async hold(chain, queries, call) {
    const held = await heldClaims(chain, queries, await tokensIn(chain, queries, call))
    return held.length > 0 ? "the replacement of its chip is on chain again" : null
  },

  async lack(chain, queries, { effects }) {
    const claims = await claimsOf(queries, effects)
    const lost = await lostClaims(chain, claims)
    return lost.length > 0 && lost.length === claims.length ? "one of its units is issued again" : null
  },

  /** The recipient may have transferred the unit since. */
  async earlier(chain, queries, effect) {
    const [claim] = await claimsOf(queries, [effect])
    return claim ? await claimedBefore(chain, claim, 0n) : null
  },

  /** A claim is the chain's `Transfer` out of custody, in this transaction or an earlier one. */
  async results(chain, queries, { effects, receipt }) {
    const claims = await claimsOf(queries, effects)
    const logs = parseEventLogs({ abi: collectionAbi, eventName: "Transfer", logs: receipt.logs })
    return await Promise.all(
      effects.map(async (effect): Promise<JobResult<"relayClaim">> => {
        const claim = claims.find((each) => each.effect.id === effect.id)
        if (!claim) throw new Error(`unit ${effect.input.unit_id} cannot be claimed before it has a serial`)
        const here = logs.some(
          (log) => isAddressEqual(log.address, claim.contract) && handsOver(log.args, claim),
        )
        if (here) return { output: { transaction_hash: receipt.transactionHash }, block_number: null }
        const token = { contract: claim.contract, serial: BigInt(claim.serial) }
        // Still in custody, as after the chain lost the issuance for a while: nothing prevents the claim.
        const then = await tokenAtDepth(chain, token, receipt.blockNumber)
        if (then === null || then.owner === null) return "again"
        // The recipient may have transferred the unit since.
        const earlier = await claimedIfTold(chain, claim, receipt, then.owner)
        return earlier ?? { error: failure("claim.already_claimed", receipt.transactionHash) }
      }),
    )
  },

  async restate({ tx, at }, { actor_id }, transaction_hash) {
    await tx.update(claims).set({ transaction_hash, updated_at: at }).where(eq(claims.id, actor_id))
  },
}

/**
 * Returns the claims for the next call: of one contract or, with a desk, of several, the first claim's contract first.
 */
function nextOf(chain: ConnectedChain, claims: Claim[]): Claim[] {
  const groups = [...byContractOf(claims).values()]
  return groups
    .slice(0, chain.config.desk_address === null ? 1 : maxAtDesk)
    .flat()
    .slice(0, maxClaims)
}

function byContractOf(claims: Claim[]): Map<Address, Claim[]> {
  return Map.groupBy(claims, ({ contract }) => contract)
}

/** Returns the call for claims of one collection. */
function callOf(joined: Claim[]): Call<"relayClaim"> {
  const serials = joined.map(({ serial }) => BigInt(serial))
  const recipients = joined.map(({ recipient }) => recipient)
  const [serial, recipient] = [serials[0] as bigint, recipients[0] as Address]
  const contract = joined[0]?.contract as Address
  const data =
    joined.length === 1
      ? encodeFunctionData({ abi: collectionAbi, functionName: "claim", args: [serial, recipient] })
      : encodeFunctionData({ abi: collectionAbi, functionName: "claimBatch", args: [serials, recipients] })
  const gas = 100_000n + 70_000n * BigInt(joined.length)
  return { do: "call", members: joined.map(({ effect }) => effect), to: contract, data, gas }
}

type Claim = Token & { effect: Effect<"relayClaim">; recipient: Address }

/** The token of a unit, which has this chip. */
type Token = {
  unit_id: string
  contract: Address
  deployed_block: number | null
  serial: number
  chip_id: string | null
}

/** Returns the claims whose units have serials. */
async function claimsOf(queries: Queries, effects: Effect<"relayClaim">[]): Promise<Claim[]> {
  const rows = await tokensOf(queries, { unit_ids: effects.map(({ input }) => input.unit_id) })
  return effects.flatMap((effect) => {
    const { unit_id, recipient } = effect.input
    return rows
      .filter((row) => row.unit_id === unit_id)
      .flatMap(tokenIn)
      .map((token) => ({ ...token, effect, recipient: recipient as Address }))
  })
}

/** Returns the tokens that a call claims. */
async function tokensIn(
  { chain_id }: ConnectedChain,
  queries: Queries,
  call: { to: string; data: string },
): Promise<Token[]> {
  const claimed = singleCallsIn(call).map(({ to, data }) => {
    const { args } = decodeFunctionData({ abi: claimAbi, data })
    return { contract: to, serial: Number(args[0]) }
  })
  const rows = await tokensAt(queries, {
    chain_id,
    addresses: claimed.map(({ contract }) => contract),
    serials: claimed.map(({ serial }) => serial),
  })
  const isClaimed = (token: Token) =>
    claimed.some(({ contract, serial }) => contract === token.contract && serial === token.serial)
  return rows.flatMap(tokenIn).filter(isClaimed)
}

const claimAbi = [getAbiItem({ abi: collectionAbi, name: "claim" })]

type TokenRow = Omit<Token, "contract" | "serial"> & { serial: number | null; address: string }

/** Empty if the unit has no serial. */
function tokenIn({ address, serial, ...unit }: TokenRow): Token[] {
  return serial ? [{ ...unit, serial, contract: address as Address }] : []
}

const tokensOf = query((db, { unit_ids }: Given<{ unit_ids: string[] }>) =>
  selectTokens(db).where(inArray(units.id, unit_ids)),
)

type Places = { chain_id: number; addresses: string[]; serials: number[] }

const tokensAt = query((db, { chain_id, addresses, serials }: Given<Places>) => {
  const isOne = and(eq(collections.chain_id, chain_id), inArray(collections.address, addresses))
  // With a join, SQLite would read the units of all collections that have such a serial.
  const ids = db.select({ id: collections.id }).from(collections).where(isOne)
  return selectTokens(db).where(and(inArray(units.serial, serials), inArray(units.collection_id, ids)))
})

function selectTokens(db: Builder) {
  return db
    .select({
      unit_id: units.id,
      serial: units.serial,
      address: collections.address,
      deployed_block: collections.deployed_block,
      chip_id: chips.chip_id,
    })
    .from(units)
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .leftJoin(chips, eq(chips.unit_id, units.id))
}

/**
 * Returns claims whose units the chain has lost, with or without the contract: a call for several of them, or to an
 * address without a contract, would succeed without effect.
 */
async function lostClaims(chain: ConnectedChain, claims: Claim[]): Promise<Claim[]> {
  const contracts = [...byContractOf(claims)]
  const lost = await Promise.all(
    contracts.map(async ([contract, ofContract]) => {
      const issued = await issuedOn(chain, contract)
      return ofContract.filter(({ serial }) => serial > issued)
    }),
  )
  return lost.flat()
}

/**
 * Returns claims that were tried before and whose units are somebody's now. Each has to be refused by itself: a call for
 * several of them would skip it, for a fee.
 */
async function takenClaims({ rpc }: ConnectedChain, claims: Claim[]): Promise<Claim[]> {
  const tried = claims.filter(({ effect }) => effect.attempts > 0)
  // Without a number: a node that is behind, and refuses numbers that it lacks, must not end the lane's round.
  return await filterAll(tried, async ({ contract: address, serial }) => {
    const token = { address, abi: collectionAbi, functionName: "ownerOf", args: [BigInt(serial)] } as const
    const owner = await unlessReverted(() => rpc.readContract(token), address)
    return !isAddressEqual(owner, address)
  })
}

/** Returns claims that would lock a wrong chip for ever: their unit is in custody and has another chip on chain now. */
async function reboundClaims(chain: ConnectedChain, claims: Claim[]): Promise<Claim[]> {
  return await filterAll(claims, (claim) => hasOtherChip(chain, claim, "latest"))
}

/**
 * Returns claims whose unit has the other chip for good: no undone replacement will be brought back, and no bytes were
 * sent that may still claim the unit.
 */
async function supersededClaims(chain: ConnectedChain, queries: Queries, rebound: Claim[]): Promise<Claim[]> {
  const awaited = await awaitedClaims(queries, rebound)
  const others = rebound.filter((claim) => !awaited.includes(claim))
  if (others.length === 0) return []
  const confirmed = await newestConfirmed(chain, 0n)
  if (confirmed < 0n) return []
  const superseded = await filterAll(others, (claim) => hasOtherChip(chain, claim, confirmed))
  const isOver = async (claim: Claim) => !(await isSentBefore(queries, chain.chain_id, callOf([claim])))
  return await filterAll(superseded, isOver)
}

/**
 * Returns claims that wait for the replacement of their chip, which a reorganization undid, alone or together with the
 * issuance: mined in between, they would lock the chip before it.
 */
async function heldClaims<Of extends Token>(
  chain: ConnectedChain,
  queries: Queries,
  claims: Of[],
): Promise<Of[]> {
  return await filterAll(await awaitedClaims(queries, claims), (claim) => lacksChip(chain, claim))
}

/** Returns whether the chain has another chip for a unit in custody, or no token. */
async function lacksChip(chain: ConnectedChain, { contract, serial, chip_id }: Token): Promise<boolean> {
  const token = await tokenNow(chain, { contract, serial: BigInt(serial) })
  return token === null || (token.owner === null && token.chip_id !== chip_id)
}

/**
 * Returns claims whose chip came with a replacement that is not final: if a reorganization undoes it, its lane brings it
 * back.
 */
async function awaitedClaims<Of extends Token>(queries: Queries, claims: Of[]): Promise<Of[]> {
  if (claims.length === 0) return []
  const swaps = await openSwaps(
    queries,
    claims.map(({ unit_id }) => unit_id),
  )
  return claims.filter(({ unit_id, chip_id }) =>
    swaps.some((swap) => swap.unit_id === unit_id && swap.chip_id === chip_id),
  )
}

async function hasOtherChip({ rpc }: ConnectedChain, claim: Claim, at: bigint | "latest"): Promise<boolean> {
  const { contract: address, chip_id, serial } = claim
  if (chip_id === null) return false
  const block = at === "latest" ? { blockTag: at } : { blockNumber: at }
  const token = { address, abi: collectionAbi, args: [BigInt(serial)], ...block } as const
  const ask = async () => {
    const chip = await rpc.readContract({ ...token, functionName: "chipOf" })
    if (chipIdOf(chip) === chip_id) return false
    return isAddressEqual(await rpc.readContract({ ...token, functionName: "ownerOf" }), address)
  }
  // The chain may have lost the issuance.
  return await unlessReverted(ask, false)
}

async function filterAll<Of>(claims: Of[], ask: (claim: Of) => Promise<boolean>): Promise<Of[]> {
  const answers = await Promise.all(claims.map(ask))
  return claims.filter((_, index) => answers[index])
}

/**
 * Fails claims whose unit has another chip for good, as after restoring a back-up from before a replacement, or if
 * someone else has a signer's key.
 */
function endOf(superseded: Claim[]): Write<"relayClaim"> {
  const unit_ids = superseded.map(({ effect }) => effect.input.unit_id)
  return {
    do: "write",
    taken: superseded.map(({ effect }) => effect),
    async write(turn) {
      for (const { effect } of superseded)
        await settleEffect(turn, effect.id, { error: failure("claim.superseded") })
    },
    warning: [
      { unit_ids },
      "the claims of these units failed, because the chain has other chips for them, which a claim would lock for good: to see both chips, run: operator chain compare",
    ],
  }
}

function handsOver(transfer: { from: Address; to: Address; tokenId: bigint }, claim: Claim): boolean {
  return (
    Number(transfer.tokenId) === claim.serial &&
    isAddressEqual(transfer.from, claim.contract) &&
    isAddressEqual(transfer.to, claim.recipient)
  )
}

/**
 * Like `claimedBefore`, but if no provider has the logs, the unit's owner decides. Planned again, the claim waits for
 * them alone. One that was reported as done waits in its transaction, which would be sent again without effect.
 */
async function claimedIfTold(
  chain: ConnectedChain,
  claim: Claim,
  receipt: TransactionReceipt,
  owner: Address,
) {
  try {
    return await claimedBefore(chain, claim, receipt.blockNumber)
  } catch (error) {
    if (!(error instanceof ChainUnreachable)) throw error
    const isOpen = claim.effect.status === "open"
    const token = { contract: claim.contract, serial: BigInt(claim.serial) }
    const isIts = (then: { owner: Address | null }) =>
      then.owner !== null && isAddressEqual(then.owner, claim.recipient)
    const isMade = isOpen ? isIts({ owner }) : await isSoAsFinal(chain, token, receipt.blockNumber, isIts)
    // Sent again, it would have no effect again.
    if (receipt.status === "success" && isMade) return doneBy(receipt)
    if (isOpen) return "again" as const
    throw error
  }
}

/** Returns the transaction that claimed a unit, if for the claim's recipient. Expects the contract to say it is claimed. */
async function claimedBefore(chain: ConnectedChain, claim: Claim, seen: bigint) {
  const { contract, deployed_block, recipient, serial } = claim
  const newest_block = await newestSince(chain.headers, seen)
  // For any recipient: a search for this one only would go down to the deployment if another one claimed the unit.
  const args = { from: contract, tokenId: BigInt(serial) }
  const [log] = await searchCollectionLogs(
    chain,
    { address: contract, deployed_block, newest_block, event_name: "Transfer", args },
    (found) => found.length > 0,
  )
  // Nodes leave out the logs of blocks that they do not have yet, and some also those that they have pruned.
  if (!log)
    throw new ChainUnreachable(
      `a provider of chain ${chain.chain_id} is behind, or keeps no logs that old: then add one that has all logs to rpc_urls in CHAINS`,
    )
  return log.args.to && isAddressEqual(log.args.to, recipient) ? doneBy(log) : null
}
