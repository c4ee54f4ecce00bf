import { eq } from "drizzle-orm"
import { type Address, encodeFunctionData, isAddressEqual, maxUint256, parseEventLogs } from "viem"
import { failure } from "../../machines/failures.ts"
import { metadataRefreshes } from "../../src/db/chain-schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { type Job, type JobResult, maxPlans } from "../../src/engine/jobs/job.ts"
import { collectionOf } from "./collections.ts"
import { isContractLost } from "./lost-contract.ts"

/** Makes a contract announce that its metadata changed (ERC-4906, ERC-7572). A repeat is harmless. */
export const refreshMetadata: Job<"refreshMetadata"> = {
  submittedEvent: "SUBMITTED",

  async plan(chain, queries, [effect]) {
    const contract = (await collectionOf(queries, effect)).address as Address
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

  /** Success is the contract's own event: without it there was no contract, as after the chain lost the deployment. */
  async results(_chain, queries, { effects, receipt }) {
    const { logs, transactionHash: transaction_hash } = receipt
    const said = parseEventLogs({ abi: collectionAbi, eventName: "ContractURIUpdated", logs })
    return await Promise.all(
      effects.map(async (effect): Promise<JobResult<"refreshMetadata">> => {
        const { address: contract } = await collectionOf(queries, effect)
        if (said.some(({ address }) => isAddressEqual(address, contract as Address)))
          return { output: { transaction_hash }, block_number: null }
        // What was done once is done again, however often it was planned.
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
