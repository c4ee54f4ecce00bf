import { eq } from "drizzle-orm"
import {
  type Address,
  encodeFunctionData,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem"
import type { DeployCollectionInput } from "../machines/collection-contract.ts"
import { collectionSalt } from "../src/chain/collection-address.ts"
import { factoryAbi } from "../src/chain/contracts.generated.ts"
import { reach } from "../src/chain/rpc.ts"
import type { Queries } from "../src/db/database.ts"
import { collections } from "../src/db/schema.ts"
import { failure } from "./failures.ts"
import type { Effect, Job } from "./job.ts"

/** Deploys a collection's contract to the address it was promised. */
export const deployCollections: Job = {
  src: "deployCollection",

  async plan(chain, queries, [effect]) {
    const { id, name, symbol } = await collectionOf(queries, effect)
    return {
      members: [effect],
      to: chain.config.factory_address,
      data: encodeFunctionData({
        abi: factoryAbi,
        functionName: "deploy",
        args: [collectionSalt(id), name, symbol],
      }),
      gas: 200_000n + 400n * BigInt(Buffer.byteLength(name + symbol)),
    }
  },

  refusal: (reason) =>
    ["DeploymentFailed", "NameTooLong"].includes(reason)
      ? failure("collection.deployment_reverted", reason)
      : null,

  /** Success is code at the promised address, also where an earlier transaction put it there. */
  async results(chain, queries, { effects, receipt }) {
    return await Promise.all(
      effects.map(async (effect) => {
        const { address } = await collectionOf(queries, effect)
        const code = await reach(() => chain.rpc.getCode({ address: address as Address }))
        if (code && code !== "0x") return { output: { transaction_hash: receipt.transactionHash } }
        return { error: failure("collection.deployment_reverted", receipt.transactionHash) }
      }),
    )
  },

  /** The contract's logs begin here, unless an earlier transaction deployed it. */
  async afterwards(turn, { transaction, effects, receipt }) {
    for (const effect of effects) {
      const { id, address } = await collectionOf(turn.tx, effect)
      if (!isDeployedBy(receipt, transaction.to as Address, address as Address)) continue
      const deployed_block = Number(receipt.blockNumber)
      await turn.tx.update(collections).set({ deployed_block }).where(eq(collections.id, id))
    }
  },
}

function isDeployedBy({ logs }: TransactionReceipt, factory: Address, contract: Address): boolean {
  return parseEventLogs({ abi: factoryAbi, eventName: "CollectionDeployed", logs }).some(
    (log) => isAddressEqual(log.address, factory) && isAddressEqual(log.args.collection, contract),
  )
}

async function collectionOf(queries: Queries, effect: Effect) {
  const { collection_id } = effect.input as DeployCollectionInput
  const [collection] = await queries.select().from(collections).where(eq(collections.id, collection_id))
  if (!collection) throw new Error(`there is no collection ${collection_id} to deploy`)
  return collection
}
