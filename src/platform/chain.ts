import type { Address } from "viem"
import type { TransactionPayload } from "../db/schema.ts"

/** The configured chains by chain id. */
export type Chains = ReadonlyMap<number, Chain>

/** What the services need of one chain. Only the pure functions may be called inside a database transaction. */
export type Chain = {
  chain_id: number
  /** The factory for new collections. */
  factory_address: Address
  /** Returns the address that a collection's contract will be deployed at. Pure. */
  collectionAddress(collection: { id: string; name: string; symbol: string }): Address
  /** Returns the lane that deploys and issues a collection; it stays the same as long as the keys do. Pure. */
  issuanceLaneId(collectionId: string): string
  /** Returns the lane of a unit's claims and chip replacements; it stays the same as long as the keys do. Pure. */
  ownershipLaneId(unitId: string): string
  /** Returns a serial's owner at the newest block; null in the service's custody. Throws `ChainUnreachable`. */
  ownerOf(contract: Address, serial: number): Promise<Address | null>
  /**
   * Returns the owner and what the serial's next authorization must match, at the newest block. Throws
   * `ChainUnreachable`.
   */
  ownershipOf(contract: Address, serial: number): Promise<Ownership>
  /** Returns whether a collection's contract can announce changed metadata. Throws `ChainUnreachable`. */
  announcesMetadata(contract: Address): Promise<boolean>
  /** Signs an authorization for `recipient` to claim the serial until the deadline. */
  authorizeClaim(claim: ClaimAuthorization): Promise<Authorization>
  /** Signs an authorization for the owner to transfer the serial to `recipient` until the deadline. */
  authorizeTransfer(transfer: TransferAuthorization): Promise<Authorization>
}

export type Ownership = {
  /** The time of the block that all of it was read at. */
  block_at: Date
  owner: Address | null
  /** The chip that a claim would lock; for a claimed serial, the chip that is locked. */
  chip_id: string
  /** The nonce that the next authorization must contain. */
  authorization_nonce: number
  /** When the collection stops accepting this service's signatures; null if no end is set. */
  authorizer_end: AuthorizerEnd | null
}

/**
 * The last second in which this service's signatures are accepted, perhaps past; `text` is a line for who can fix it.
 */
export type AuthorizerEnd = { at: Date; text: string }

export type ClaimAuthorization = {
  contract: Address
  serial: number
  recipient: Address
  authorization_nonce: number
  deadline_at: Date
}

export type TransferAuthorization = {
  contract: Address
  serial: number
  sender: Address
  recipient: Address
  authorization_nonce: number
  deadline_at: Date
}

/** The payload for the wallet that may submit it, and the EIP-712 digest that identifies it in the chain's logs. */
export type Authorization = { transaction: TransactionPayload; authorization_digest: string }
