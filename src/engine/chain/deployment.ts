import { type Address, encodeDeployData, getContractAddress, type Hex, zeroAddress } from "viem"
import { deskAbi, deskBytecode, factoryAbi, factoryBytecode } from "./contracts.generated.ts"
import { deskRoles, purposeAt, rolesFor } from "./roles.ts"

/** The accounts of a new factory. */
export type Parties = {
  /** Sends the deployment as its first two transactions, and becomes the admin. */
  deployer: Address
  /** Null: only the admin can pause. */
  guardian: Address | null
  authorizer: Address
  /** The accounts of `SIGNER_KEYS`, in order. */
  signers: readonly Address[]
  /** The start of metadata URLs; empty if there is none yet. */
  metadata_base_url: string
}

type Deployment = {
  factory_address: Address
  desk_address: Address
  /** Sent first, with nonce 0. */
  factory_data: Hex
  /** Sent second, with nonce 1. */
  desk_data: Hex
}

/** Returns the two transactions that deploy a factory and its desk, and their addresses. */
export function planDeployment(parties: Parties): Deployment {
  const { deployer: from, authorizer } = parties
  const factory_address = getContractAddress({ from, nonce: 0n })
  const desk_address = getContractAddress({ from, nonce: 1n })
  const grants = [...signerRoles(parties.signers), { account: desk_address, roles: BigInt(deskRoles) }]
  const args = [
    ...([from, parties.guardian ?? zeroAddress, authorizer] as const),
    ...([grants, parties.metadata_base_url] as const),
  ] as const
  return {
    factory_address,
    desk_address,
    factory_data: encodeDeployData({ abi: factoryAbi, bytecode: factoryBytecode, args }),
    desk_data: encodeDeployData({ abi: deskAbi, bytecode: deskBytecode, args: [factory_address] }),
  }
}

/** Returns the roles that each signer needs for its position in `SIGNER_KEYS`. */
export function signerRoles(signers: readonly Address[]): { account: Address; roles: bigint }[] {
  return signers.map((account, index) => ({
    account,
    roles: BigInt(rolesFor(purposeAt(index, signers.length))),
  }))
}
