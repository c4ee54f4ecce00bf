import { and, eq, inArray } from "drizzle-orm"
import { type Address, getAddress, isAddress, isAddressEqual, zeroAddress } from "viem"
import type { Caller } from "./caller.ts"
import type { Chain, Chains, Ownership } from "./chain/chains.ts"
import { CallReverted, ChainUnreachable } from "./chain/rpc.ts"
import type { CollectionRow } from "./collections/service.ts"
import type { Queries } from "./db/database.ts"
import { chipReplacements, claims, transfers } from "./db/schema.ts"
import { ApiError, fieldError } from "./errors.ts"
import { getUnit, type UnitView } from "./units/service.ts"

// The rules that claims, transfers and chip replacements share.

/** A unit whose token is on the chain. */
export type IssuedUnit = UnitView & { collection: CollectionRow; serial: number; chip_id: string }

/** How long a person's wallet may use an authorization. */
const AUTHORIZATION_SECONDS = 30 * 60

/**
 * A unit of the caller's organization that the caller may act on. Throws `unit.not_found`, or
 * `session_token.wrong_chip` unless the session's chip is still the one that is paired to this unit.
 */
export async function getUnitForCaller(queries: Queries, caller: Caller, unitId: string): Promise<UnitView> {
  const unit = await getUnit(queries, caller, unitId)
  if (!caller.session) return unit
  const { unit_id, chip_id } = caller.session
  if (unit_id !== unit.id || chip_id !== unit.chip_id) throw new ApiError("session_token.wrong_chip")
  return unit
}

/** The unit as an issued one. Throws `unit.not_minted` or, while a paired chip's token is under way, `unit.issuance_pending`. */
export function requireIssued(unit: UnitView): IssuedUnit {
  const { collection, serial, chip_id } = unit
  if (!chip_id || !collection) throw new ApiError("unit.not_minted")
  if (unit.token_status === "pending" || serial === null) throw new ApiError("unit.issuance_pending")
  return { ...unit, collection, serial, chip_id }
}

/**
 * The checksummed address of a recipient: a mixed-case one must have a right checksum, and zero is nobody.
 * Throws `validation.failed` on `recipient`.
 */
export function requireRecipient(text: string): Address {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text))
    throw fieldError("recipient", "must be an EVM address: 0x and 40 hexadecimal digits")
  const digits = text.slice(2)
  const isOneCase = digits === digits.toLowerCase() || digits === digits.toUpperCase()
  if (!isOneCase && !isAddress(text))
    throw fieldError("recipient", "has a wrong checksum: check it for a typing error")
  const address = getAddress(`0x${digits.toLowerCase()}`)
  if (address === zeroAddress) throw fieldError("recipient", "must not be the zero address")
  return address
}

/** A token sent to its own contract would be back in custody. Throws `validation.failed` on `recipient`. */
export function requireOtherThanContract(recipient: Address, collection: CollectionRow | null): void {
  if (collection && isAddressEqual(recipient, getAddress(collection.address)))
    throw fieldError("recipient", "must not be the collection's own address")
}

export async function hasOpenClaim(queries: Queries, unitId: string): Promise<boolean> {
  const open = await queries
    .select({ id: claims.id })
    .from(claims)
    .where(and(eq(claims.unit_id, unitId), eq(claims.status, "claiming")))
  return open.length > 0
}

export async function hasOpenTransfer(queries: Queries, unitId: string): Promise<boolean> {
  const open = await queries
    .select({ id: transfers.id })
    .from(transfers)
    .where(and(eq(transfers.unit_id, unitId), eq(transfers.status, "prepared")))
  return open.length > 0
}

export async function hasOpenReplacement(queries: Queries, unitId: string): Promise<boolean> {
  const open = await queries
    .select({ id: chipReplacements.id })
    .from(chipReplacements)
    .where(
      and(eq(chipReplacements.unit_id, unitId), inArray(chipReplacements.status, ["prepared", "submitted"])),
    )
  return open.length > 0
}

/** The unit's chain and what it says of the owner now; throws the given code when the chain cannot tell. */
export async function readOwnership(
  chains: Chains,
  unit: IssuedUnit,
  unknownCode: "claim.owner_unknown" | "transfer.owner_unknown",
): Promise<{ chain: Chain; ownership: Ownership }> {
  const chain = chains.get(unit.collection.chain_id)
  if (!chain) throw new ApiError(unknownCode)
  try {
    const ownership = await chain.ownershipOf(getAddress(unit.collection.address), unit.serial)
    return { chain, ownership }
  } catch (error) {
    // A provider that lags behind does not know the token yet.
    if (error instanceof ChainUnreachable || error instanceof CallReverted) throw new ApiError(unknownCode)
    throw error
  }
}

/** The deadline of an authorization made now, in whole seconds as the contract counts. */
export function deadlineFrom(now: Date): Date {
  return new Date((Math.floor(now.getTime() / 1000) + AUTHORIZATION_SECONDS) * 1000)
}
