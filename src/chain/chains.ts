import {
  type Address,
  encodeFunctionData,
  getAddress,
  getContractAddress,
  hashTypedData,
  isAddressEqual,
  type LocalAccount,
} from "viem"
import { privateKeyToAccount } from "viem/accounts"
import type { ChainConfig, Config } from "../config.ts"
import type { TransactionPayload } from "../db/schema.ts"
import { collectionAddress, collectionSalt } from "./collection-address.ts"
import { collectionAbi } from "./contracts.generated.ts"
import { createHeaderChain, type HeaderChain } from "./headers.ts"
import { createProviders, type Providers } from "./providers.ts"
import { createRpc, type Rpc, reach } from "./rpc.ts"
import { createSigners, type Signer } from "./signers.ts"

/** The chains this service is configured for, by chain id. */
export type Chains = ReadonlyMap<number, Chain>

/** What the services need of one chain. Nothing here is called inside a database transaction, but the pure ones. */
export type Chain = {
  chain_id: number
  /** Where a collection will be, before it is deployed. Pure. */
  collectionAddress(collection: { id: string; name: string; symbol: string }): Address
  /** The lane that deploys and issues a collection, for ever the same. Pure. */
  issuanceLaneId(collectionId: string): string
  /** The lane of claims and chip replacements. Pure. */
  ownershipLaneId(): string
  /**
   * Who owns a serial at the newest block, and the nonce its next authorization must carry. `owner` is null while
   * the token is in the service's custody. Throws `ChainUnreachable`.
   */
  ownershipOf(contract: Address, serial: number): Promise<Ownership>
  /** Signs what lets `recipient` claim the serial until the deadline. */
  authorizeClaim(claim: ClaimAuthorization): Promise<Authorization>
  /** Signs what lets the owner hand the serial to `recipient` until the deadline. */
  authorizeTransfer(transfer: TransferAuthorization): Promise<Authorization>
}

/** What the workers need besides: to read the chain and to send to it. */
export type ConnectedChain = Chain & {
  config: ChainConfig
  rpc: Rpc
  providers: Providers
  headers: HeaderChain
  signers: Signer[]
}

export type Ownership = { owner: Address | null; authorization_nonce: number }

export type ClaimAuthorization = { contract: Address; serial: number; recipient: Address; deadline_at: Date }

export type TransferAuthorization = {
  contract: Address
  serial: number
  sender: Address
  recipient: Address
  authorization_nonce: number
  deadline_at: Date
}

/** The payload for the wallet that may submit it, and the EIP-712 digest by which the chain's logs name it. */
export type Authorization = { transaction: TransactionPayload; authorization_digest: string }

/** Connects what is configured; speaks to no provider yet. */
export function createChains(config: Config): ReadonlyMap<number, ConnectedChain> {
  const authorizer = config.authorizer_key ? privateKeyToAccount(config.authorizer_key) : null
  return new Map(config.chains.map((chain) => [chain.chain_id, createChain(chain, config, authorizer)]))
}

function createChain(chain: ChainConfig, config: Config, authorizer: LocalAccount | null): ConnectedChain {
  const providers = createProviders(chain.rpc_urls)
  const rpc = createRpc(chain, providers.transport)
  const signers = createSigners(chain.chain_id, config.signer_keys)
  const factory = chain.factory_address
  // The factory's constructor makes the implementation first of all.
  const implementation = getContractAddress({ from: factory, nonce: 1n })
  return {
    chain_id: chain.chain_id,
    config: chain,
    rpc,
    providers,
    headers: createHeaderChain(rpc, chain.finality_depth, providers.rank),
    signers,
    collectionAddress: ({ id, name, symbol }) =>
      collectionAddress({ factory, implementation, salt: collectionSalt(id), name, symbol }),
    issuanceLaneId: (collectionId) => issuanceLaneId(signers, collectionId),
    ownershipLaneId: () => laneFor(signers, "ownership").lane_id,
    ownershipOf: (contract, serial) => ownershipOf(rpc, contract, serial),
    authorizeClaim: (claim) => authorizeClaim(chain, requireAuthorizer(authorizer), claim),
    authorizeTransfer: (transfer) => authorizeTransfer(chain, requireAuthorizer(authorizer), transfer),
  }
}

function issuanceLaneId(signers: Signer[], collectionId: string): string {
  const issuing = signers.filter(({ purpose }) => purpose !== "ownership")
  const index = Number(BigInt(collectionSalt(collectionId)) % BigInt(Math.max(issuing.length, 1)))
  return (issuing[index] ?? laneFor(signers, "issuance")).lane_id
}

function laneFor(signers: Signer[], purpose: "issuance" | "ownership"): Signer {
  const signer = signers.find((each) => each.purpose === purpose || each.purpose === "all")
  if (!signer) throw new Error("SIGNER_KEYS is empty: nobody can send transactions")
  return signer
}

function requireAuthorizer(authorizer: LocalAccount | null): LocalAccount {
  if (!authorizer) throw new Error("AUTHORIZER_KEY is unset: nobody can authorize claims and transfers")
  return authorizer
}

async function ownershipOf(rpc: Rpc, contract: Address, serial: number): Promise<Ownership> {
  const token = { address: contract, abi: collectionAbi, args: [BigInt(serial)] } as const
  const [owner, nonce] = await reach(() =>
    Promise.all([
      rpc.readContract({ ...token, functionName: "ownerOf" }),
      rpc.readContract({ ...token, functionName: "authorizationNonce" }),
    ]),
  )
  // The collection itself stands for the service's custody.
  return { owner: isAddressEqual(owner, contract) ? null : owner, authorization_nonce: Number(nonce) }
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

async function authorizeClaim(
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
    message: { serial, recipient: claim.recipient, nonce: 0n, deadline },
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

async function authorizeTransfer(
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

function domainOf(chain: ChainConfig, contract: Address) {
  return { name: "service-api", version: "1", chainId: chain.chain_id, verifyingContract: contract } as const
}

function payload(chain: ChainConfig, from: Address, to: Address, data: string): TransactionPayload {
  return { chain_id: chain.chain_id, from: getAddress(from), to: getAddress(to), data, value: "0x0" }
}

function unixSeconds(at: Date): bigint {
  return BigInt(Math.floor(at.getTime() / 1000))
}
