import { eq } from "drizzle-orm"
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem"
import { failure } from "../../machines/failures.ts"
import { type CollectionRow, collections } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { collectionSalt } from "../../src/engine/chain/collection-address.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { least } from "../../src/engine/chain/extremes.ts"
import { newestSince } from "../../src/engine/chain/headers.ts"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { reach, unlessReverted } from "../../src/engine/chain/rpc.ts"
import { doneBy, type Job } from "../../src/engine/jobs/job.ts"
import { collectionOf } from "./collections.ts"

/** Deploys a collection's contract to its promised address, through the factory that the address was computed for. */
export const deployCollections: Job<"deployCollection"> = {
  async plan(chain, queries, [effect]) {
    const collection = await collectionOf(queries, effect)
    const { name, symbol } = collection
    return {
      do: "call",
      members: [effect],
      to: await requireFactory(chain, collection),
      data: encodeFunctionData({ abi: factoryAbi, functionName: "deploy", args: namingOf(collection) }),
      gas: 200_000n + 900n * BigInt(Buffer.byteLength(name + symbol)),
    }
  },

  refusal: (reason) =>
    ["DeploymentFailed", "NameTooLong"].includes(reason)
      ? failure("collection.deployment_reverted", reason)
      : null,

  /** Success is the factory's log or, if an earlier transaction deployed it, code at the promised address. */
  async results(chain, queries, { transaction, effects, receipt }) {
    return await Promise.all(
      effects.map(async (effect) => {
        const { address } = await collectionOf(queries, effect)
        const { transactionHash: transaction_hash } = receipt
        if (isDeployedBy(receipt, transaction.to as Address, address as Address))
          return { output: { transaction_hash }, block_number: null }
        if (await hasCode(chain, address as Address, receipt)) return doneBy(receipt)
        return { error: failure("collection.deployment_reverted", transaction_hash) }
      }),
    )
  },

  /** The contract's logs start at this block, unless an earlier transaction deployed it. */
  async afterwards(turn, { transaction, effects, receipt }) {
    for (const effect of effects) {
      const { id, address } = await collectionOf(turn.tx, effect)
      if (!isDeployedBy(receipt, transaction.to as Address, address as Address)) continue
      const deployed_block = Number(receipt.blockNumber)
      await turn.tx.update(collections).set({ deployed_block }).where(eq(collections.id, id))
    }
  },
}

/**
 * Returns the factory that deploys the collection to its promised address. Another factory would deploy it elsewhere,
 * and a call to an address without a contract would succeed.
 */
async function requireFactory(chain: ConnectedChain, collection: CollectionRow): Promise<Address> {
  const { factory_address: named } = chain.config
  if (collection.factory_address === named) return named
  const factory = (collection.factory_address ?? named) as Address
  if (await deploysTo(chain, factory, collection)) return factory
  throw new Error(
    `collection ${collection.id} was promised the address ${collection.address}, but factory ${factory} does not deploy it there: set factory_address in CHAINS to the factory that does, and restart`,
  )
}

async function deploysTo(chain: ConnectedChain, to: Address, collection: CollectionRow): Promise<boolean> {
  const question = { abi: factoryAbi, functionName: "addressOf" } as const
  const data = encodeFunctionData({ ...question, args: namingOf(collection) })
  const answer = await unlessReverted(() => chain.rpc.call({ to, data }), null)
  if (!answer?.data) return false
  const deployed = decodeFunctionResult({ ...question, data: answer.data })
  return isAddressEqual(deployed, collection.address as Address)
}

function namingOf({ id, name, symbol }: CollectionRow) {
  return [collectionSalt(id), name, symbol] as const
}

function isDeployedBy({ logs }: TransactionReceipt, factory: Address, contract: Address): boolean {
  return parseEventLogs({ abi: factoryAbi, eventName: "CollectionDeployed", logs }).some(
    (log) => isAddressEqual(log.address, factory) && isAddressEqual(log.args.collection, contract),
  )
}

/**
 * Returns whether the contract exists as long as the transaction stays in its block: a reverted one relies on another
 * transaction, which may be undone alone. Reads by block number, so that a provider without that block refuses; its own
 * newest block would merely lack the code.
 */
async function hasCode(
  chain: ConnectedChain,
  address: Address,
  { status, blockNumber: seen }: TransactionReceipt,
): Promise<boolean> {
  const newest = await newestSince(chain.headers, seen)
  const codeAt = (blockNumber: bigint) => chain.rpc.getCode({ address, blockNumber })
  if (status === "success") return isCode(await reach(() => codeAt(newest)))
  const final = least(await chain.headers.finalHeight(), newest)
  if (final < 0n) return false
  const code = await unlessForgotten(() => codeAt(final))
  return isCode(code === null ? await reach(() => codeAt(newest)) : code)
}

function isCode(code: Hex | undefined): boolean {
  return code !== undefined && code !== "0x"
}
