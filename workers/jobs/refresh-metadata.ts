import { eq } from "drizzle-orm"
import { type Address, encodeFunctionData, isAddressEqual, maxUint256, parseEventLogs } from "viem"
import { failure } from "../../machines/failures.ts"
import { metadataRefreshes } from "../../src/db/chain-schema.ts"
import type { Queries } from "../../src/db/database.ts"
import { collections } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { type Effect, type Job, type JobResult, maxPlans } from "../../src/engine/jobs/job.ts"
import { isContractLost } from "./lost-contract.ts"

/** Lets a contract say that what its tokens show has changed (ERC-4906, ERC-7572); to say it twice does no harm. */
export const refreshMetadata: Job<"refreshMetadata"> = {
  submittedEvent: "SUBMITTED",

  async plan(chain, queries, [effect]) {
    const contract = await contractOf(queries, effect)
    if (await isContractLost(chain, contract, [effect])) return { do: "wait", effects: [effect] }
    return {
      do: "call",
      members: [effect],
      to: contract,
      data: encodeFunctionData({
        abi: collectionAbi,
        functionName: "refreshMetadata",
        args: [1n, maxUint256],
      }),
      gas: 80_000n,
    }
  },

  refusal: () => null,

  /** Success is the contract's own word: without it nobody was called, as after the chain lost the deployment. */
  async results(_chain, queries, { effects, receipt }) {
    const { logs, transactionHash: transaction_hash } = receipt
    const said = parseEventLogs({ abi: collectionAbi, eventName: "ContractURIUpdated", logs })
    return await Promise.all(
      effects.map(async (effect): Promise<JobResult<"refreshMetadata">> => {
        const contract = await contractOf(queries, effect)
        if (said.some(({ address }) => isAddressEqual(address, contract)))
          return { output: { transaction_hash } }
        // What was done and has to be done again is that however often it was planned.
        const isToBeDone = effect.status === "done" || effect.attempts < maxPlans
        if (receipt.status === "success" && isToBeDone) return "again"
        return { error: failure("metadata_refresh.reverted", transaction_hash) }
      }),
    )
  },

  async restate({ tx, at }, { actor_id }, transaction_hash) {
    const change = { transaction_hash, updated_at: at }
    await tx.update(metadataRefreshes).set(change).where(eq(metadataRefreshes.id, actor_id))
  },
}

async function contractOf(queries: Queries, { input }: Effect<"refreshMetadata">): Promise<Address> {
  const [collection] = await queries
    .select({ address: collections.address })
    .from(collections)
    .where(eq(collections.id, input.collection_id))
  if (!collection) throw new Error(`there is no collection ${input.collection_id} to refresh`)
  return collection.address as Address
}
