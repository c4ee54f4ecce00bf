import type { Address } from "viem"
import type { TransactionPayload } from "../db/schema.ts"

/** The chains this service is configured for, by chain id. */
export type Chains = ReadonlyMap<number, Chain>

/** What the services need of one chain. Nothing here is called inside a database transaction, but the pure ones. */
export type Chain = {
  chain_id: number
  /** The factory that deploys the collections which are created now. */
  factory_address: Address
  /** Where a collection will be, before it is deployed, by what is known of the factory. Pure. */
  collectionAddress(collection: { id: string; name: string; symbol: string }): Address
  /** The lane that deploys and issues a collection, the same as long as the keys are. Pure. */
  issuanceLaneId(collectionId: string): string
  /** The lane of a unit's claims and chip replacements, the same as long as the keys are. Pure. */
  ownershipLaneId(unitId: string): string
  /** Who owns a serial at the newest block; null while the token is in the service's custody. Throws `ChainUnreachable`. */
  ownerOf(contract: Address, serial: number): Promise<Address | null>
  /** The same, with what the serial's next authorization is held to at that block. Throws `ChainUnreachable`. */
  ownershipOf(contract: Address, serial: number): Promise<Ownership>
  /** Whether a collection's contract can announce that its metadata changed. Throws `ChainUnreachable`. */
  announcesMetadata(contract: Address): Promise<boolean>
  /** Signs what lets `recipient` claim the serial until the deadline. */
  authorizeClaim(claim: ClaimAuthorization): Promise<Authorization>
  /** Signs what lets the owner hand the serial to `recipient` until the deadline. */
  authorizeTransfer(transfer: TransferAuthorization): Promise<Authorization>
}

export type Ownership = {
  owner: Address | null
  /** The chip that a claim would lock; of one that is claimed the chip that is locked. */
  chip_id: string
  /** What the authorization must carry. */
  authorization_nonce: number
  /** Null: the collection takes what this service signs, with no end that is set. */
  authorizer_end: AuthorizerEnd | null
}

/** The last second in which what this service signs is taken, which may be over; `text` is one line for who can mend it. */
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

/** The payload for the wallet that may submit it, and the EIP-712 digest by which the chain's logs name it. */
export type Authorization = { transaction: TransactionPayload; authorization_digest: string }
