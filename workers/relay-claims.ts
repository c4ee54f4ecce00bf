import { eq, inArray } from "drizzle-orm"
import { type Address, encodeFunctionData, isAddressEqual, parseEventLogs } from "viem"
import type { RelayClaimInput } from "../machines/claim.ts"
import type { EffectResult } from "../src/actors/runtime.ts"
import type { ConnectedChain } from "../src/chain/chains.ts"
import { collectionAbi } from "../src/chain/contracts.generated.ts"
import { searchCollectionLogs } from "../src/chain/logs.ts"
import type { Queries } from "../src/db/database.ts"
import { claims, collections, units } from "../src/db/schema.ts"
import { failure } from "./failures.ts"
import type { Effect, Job } from "./job.ts"

/** The most waiting claims of one collection that are joined into one transaction. */
const maxClaims = 20

/** Hands units to their recipients; one bad claim in a joined transaction does not spoil the others. */
export const relayClaims: Job = {
  src: "relayClaim",

  async plan(_chain, queries, waiting) {
    const claims = await claimsOf(queries, waiting)
    const [first] = claims
    if (first?.effect.id !== waiting[0].id)
      throw new Error(`unit ${inputOf(waiting[0]).unit_id} is claimed before it has a serial`)
    const { contract } = first
    const joined = claims.filter((claim) => isAddressEqual(claim.contract, contract)).slice(0, maxClaims)
    const serials = joined.map(({ serial }) => BigInt(serial))
    const recipients = joined.map(({ recipient }) => recipient)
    const [serial, recipient] = [serials[0] as bigint, recipients[0] as Address]
    return {
      members: joined.map(({ effect }) => effect),
      to: contract,
      data:
        joined.length === 1
          ? encodeFunctionData({ abi: collectionAbi, functionName: "claim", args: [serial, recipient] })
          : encodeFunctionData({
              abi: collectionAbi,
              functionName: "claimBatch",
              args: [serials, recipients],
            }),
      gas: 100_000n + 70_000n * BigInt(joined.length),
    }
  },

  refusal: (reason) => (reason === "AlreadyClaimed" ? failure("claim.already_claimed", reason) : null),

  /** Claimed is what the chain's `Transfer` out of custody says, in this transaction or an earlier one. */
  async results(chain, queries, { effects, receipt }) {
    const claims = await claimsOf(queries, effects)
    const logs = parseEventLogs({ abi: collectionAbi, eventName: "Transfer", logs: receipt.logs })
    return await Promise.all(
      effects.map(async (effect): Promise<EffectResult | "again"> => {
        const claim = claims.find((each) => each.effect.id === effect.id)
        if (!claim) throw new Error(`unit ${inputOf(effect).unit_id} is claimed before it has a serial`)
        const here = logs.some(
          (log) => isAddressEqual(log.address, claim.contract) && handsOver(log.args, claim),
        )
        if (here) return { output: { transaction_hash: receipt.transactionHash } }
        const { owner } = await chain.ownershipOf(claim.contract, claim.serial)
        const earlier = owner && isAddressEqual(owner, claim.recipient) && (await claimedBefore(chain, claim))
        if (earlier) return { output: { transaction_hash: earlier } }
        // Still in custody, as after the chain lost the issuance for a while: nothing stands against the claim.
        if (!owner) return "again"
        return { error: failure("claim.already_claimed", receipt.transactionHash) }
      }),
    )
  },

  async restate({ tx, at }, { actor_id }, transaction_hash) {
    await tx.update(claims).set({ transaction_hash, updated_at: at }).where(eq(claims.id, actor_id))
  },
}

type Claim = {
  effect: Effect
  contract: Address
  deployed_block: number | null
  serial: number
  recipient: Address
}

function inputOf(effect: Effect): RelayClaimInput {
  return effect.input as RelayClaimInput
}

/** Those that can be told: a claim whose unit has no serial is left out. */
async function claimsOf(queries: Queries, effects: Effect[]): Promise<Claim[]> {
  const inputs = effects.map(inputOf)
  const rows = await queries
    .select({
      unit_id: units.id,
      serial: units.serial,
      address: collections.address,
      deployed_block: collections.deployed_block,
    })
    .from(units)
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .where(
      inArray(
        units.id,
        inputs.map(({ unit_id }) => unit_id),
      ),
    )
  return effects.flatMap((effect) => {
    const { unit_id, recipient } = inputOf(effect)
    const row = rows.find((each) => each.unit_id === unit_id)
    if (!row?.serial) return []
    const { serial, address, deployed_block } = row
    return { effect, contract: address as Address, deployed_block, serial, recipient: recipient as Address }
  })
}

function handsOver(transfer: { from: Address; to: Address; tokenId: bigint }, claim: Claim): boolean {
  return (
    Number(transfer.tokenId) === claim.serial &&
    isAddressEqual(transfer.from, claim.contract) &&
    isAddressEqual(transfer.to, claim.recipient)
  )
}

async function claimedBefore(chain: ConnectedChain, claim: Claim): Promise<string | null> {
  const { contract, deployed_block, recipient, serial } = claim
  const { number: newest_block } = await chain.headers.follow()
  const args = { from: contract, to: recipient, tokenId: BigInt(serial) }
  const [log] = await searchCollectionLogs(
    chain,
    { address: contract, deployed_block, newest_block, event_name: "Transfer", args },
    (found) => found.length > 0,
  )
  return log?.transactionHash ?? null
}
