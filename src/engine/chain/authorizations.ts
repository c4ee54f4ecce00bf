import { type Address, encodeFunctionData, getAddress, hashTypedData, type LocalAccount } from "viem"
import type { TransactionPayload } from "../../db/schema.ts"
import type { Authorization, ClaimAuthorization, TransferAuthorization } from "../../platform/chain.ts"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { collectionAbi } from "./contracts.generated.ts"

/**
 * Signs the authorization with which a recipient can claim a serial until the deadline (EIP-712), and returns it
 * in a call ready for the wallet.
 */
export async function authorizeClaim(
  chain: ChainConfig,
  authorizer: LocalAccount,
  claim: ClaimAuthorization,
): Promise<Authorization> {
  const serial = BigInt(claim.serial)
  const deadline = unixSeconds(claim.deadline_at)
  const typed = {
    domain: domainOf(chain, claim.contract),
    types: authorizationTypes,
    primaryType: "Claim",
    message: { serial, recipient: claim.recipient, nonce: BigInt(claim.authorization_nonce), deadline },
  } as const
  const signature = await authorizer.signTypedData(typed)
  const data = encodeFunctionData({
    abi: collectionAbi,
    functionName: "claimWithAuthorization",
    args: [serial, claim.recipient, deadline, signature],
  })
  return {
    transaction: payload(chain, claim.recipient, claim.contract, data),
    authorization_digest: hashTypedData(typed),
  }
}

/** Like `authorizeClaim`, for a transfer by the owner to a recipient. */
export async function authorizeTransfer(
  chain: ChainConfig,
  authorizer: LocalAccount,
  transfer: TransferAuthorization,
): Promise<Authorization> {
  const serial = BigInt(transfer.serial)
  const deadline = unixSeconds(transfer.deadline_at)
  const typed = {
    domain: domainOf(chain, transfer.contract),
    types: authorizationTypes,
    primaryType: "Transfer",
    message: {
      serial,
      from: transfer.sender,
      to: transfer.recipient,
      nonce: BigInt(transfer.authorization_nonce),
      deadline,
    },
  } as const
  const signature = await authorizer.signTypedData(typed)
  const data = encodeFunctionData({
    abi: collectionAbi,
    functionName: "transferWithAuthorization",
    args: [serial, transfer.recipient, deadline, signature],
  })
  return {
    transaction: payload(chain, transfer.sender, transfer.contract, data),
    authorization_digest: hashTypedData(typed),
  }
}

/** EIP-712 types of the collection contract's authorizations. */
const authorizationTypes = {
  Claim: [
    { name: "serial", type: "uint256" },
    { name: "recipient", type: "address" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
  Transfer: [
    { name: "serial", type: "uint256" },
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
} as const

function domainOf(chain: ChainConfig, contract: Address) {
  return { name: "service-api", version: "1", chainId: chain.chain_id, verifyingContract: contract } as const
}

function payload(chain: ChainConfig, from: Address, to: Address, data: string): TransactionPayload {
  return { chain_id: chain.chain_id, from: getAddress(from), to: getAddress(to), data, value: "0x0" }
}

function unixSeconds(at: Date): bigint {
  return BigInt(Math.floor(at.getTime() / 1000))
}
