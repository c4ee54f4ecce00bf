import { type Address, type Hex, isAddressEqual, type Transaction } from "viem"
import { recoverAuthorizationAddress } from "viem/utils"
import { unlessForgotten } from "../chain/old-state.ts"
import { requireOwnChain } from "../chain/own-chain.ts"
import { reach } from "../chain/rpc.ts"
import type { HeldLane } from "./held-lane.ts"
import type { WatchedTransaction } from "./transactions.ts"

/** What used a transaction's nonce although no provider has a receipt of ours; `hash` is null if no node can tell. */
export type NonceUse = { hash: Hex | null; is_ours: boolean }

/**
 * Returns what used a transaction's nonce, if that is beyond doubt: at the confirmation depth, according to
 * every provider, and none has a receipt of ours. Otherwise null. It may still be ours, because nodes behind one
 * URL do not all have the same data.
 */
export async function findUse(lane: HeldLane, transaction: WatchedTransaction): Promise<NonceUse | null> {
  const use = await lookForUse(lane, transaction)
  if (use === null || use.is_ours) return use
  // Another chain at the same URL may have reported it.
  await requireOwnChain(lane.chain)
  return await lookForUse(lane, transaction)
}

async function lookForUse(lane: HeldLane, transaction: WatchedTransaction): Promise<NonceUse | null> {
  const { nonce, attempts } = transaction
  const depth = BigInt(lane.chain.config.confirmation_depth)
  const blockNumber = lane.head - depth + 1n
  if (nonce >= lane.used_nonces || blockNumber < 0n) return null
  const { address } = lane.signer
  const usedAtDepth = await reach(() => lane.chain.rpc.getTransactionCount({ address, blockNumber }))
  if (usedAtDepth <= nonce) return null
  const { askAll, voices } = lane.chain.providers
  // A provider that is behind has no receipt either. The newest count is compared because
  // not every node has older ones.
  const counts = await askAll({ method: "eth_getTransactionCount", params: [address, "latest"] })
  if (counts.length < voices() || counts.some((count) => Number(count) <= nonce)) return null
  for (const { hash } of attempts) {
    const receipts = await askAll({ method: "eth_getTransactionReceipt", params: [hash] })
    if (receipts.length < voices() || receipts.some((receipt) => receipt !== null)) return null
  }
  const usedIn = await blockThatUsed(lane, nonce, blockNumber)
  if (usedIn === null) return { hash: null, is_ours: false }
  const user = await userIn(lane, nonce, usedIn)
  return user && { hash: user, is_ours: attempts.some(({ hash }) => hash === user) }
}

/** Returns the block that used a nonce, at or before `latest`; null if no node has counts that old. */
async function blockThatUsed(
  { chain, signer: { address } }: HeldLane,
  nonce: number,
  latest: bigint,
): Promise<bigint | null> {
  const isUsedAt = async (blockNumber: bigint) =>
    blockNumber >= 0n && (await chain.rpc.getTransactionCount({ address, blockNumber })) > nonce
  const usedIn = await unlessForgotten(() => firstThatHolds(isUsedAt, latest))
  // Block 0 has no transactions: this node has pruned the state and responds with its newest count.
  return usedIn === 0n ? null : usedIn
}

/** Returns the transaction of a block that used a nonce; null if none did, as after the block was replaced. */
async function userIn({ chain, signer }: HeldLane, nonce: number, blockNumber: bigint): Promise<Hex | null> {
  const { transactions } = await reach(() => chain.rpc.getBlock({ blockNumber, includeTransactions: true }))
  for (const transaction of transactions)
    if (await uses(transaction, signer.address, nonce)) return transaction.hash
  return null
}

/**
 * Returns whether a transaction uses an account's nonce: as its sender, or through an EIP-7702 authorization in its
 * list. Blocks may include authorizations with invalid signatures.
 */
async function uses(transaction: Transaction, account: Address, nonce: number): Promise<boolean> {
  if (transaction.nonce === nonce && isAddressEqual(transaction.from, account)) return true
  const authorizations = (transaction.authorizationList ?? []).filter((each) => each.nonce === nonce)
  const signers = await Promise.all(
    authorizations.map((authorization) => recoverAuthorizationAddress({ authorization }).catch(() => null)),
  )
  return signers.some((signer) => signer !== null && isAddressEqual(signer, account))
}

/**
 * Returns the first number from which `holds` is true, given that it is at `known`: searches backwards
 * in doubling steps, then bisects.
 */
async function firstThatHolds(holds: (number: bigint) => Promise<boolean>, known: bigint): Promise<bigint> {
  let high = known
  let low = known - 1n
  for (let step = 2n; await holds(low); step *= 2n) {
    high = low
    low = high - step
  }
  while (high - low > 1n) {
    const middle = (high + low) / 2n
    if (await holds(middle)) high = middle
    else low = middle
  }
  return high
}
