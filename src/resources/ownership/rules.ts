import { and, eq, inArray, type SQL } from "drizzle-orm"
import { type Address, getAddress, isAddress, isAddressEqual, zeroAddress } from "viem"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { chipReplacements, claims, transfers } from "../../db/schema.ts"
import { CallReverted, ChainUnreachable } from "../../engine/chain/rpc.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Chain, Chains, Ownership } from "../../platform/chain.ts"
import { within } from "../../platform/deadline.ts"
import { ApiError, fieldError, LastingRefusal, TooSoon } from "../../platform/errors.ts"
import { type CollectionOfUnit, getUnit, type UnitView } from "../units/service.ts"

// The rules shared by claims, transfers and chip replacements.

/** A unit whose token is on chain. */
export type IssuedUnit = UnitView & { collection: CollectionOfUnit; serial: number; chip_id: string }

/**
 * Returns a unit that the caller may act on. Throws `unit.not_found`, or `session_token.wrong_chip` if the session's
 * chip is not the one paired to this unit now.
 */
export async function getUnitForCaller(queries: Queries, caller: Caller, unitId: string): Promise<UnitView> {
  const unit = await getUnit(queries, caller, unitId)
  if (!caller.session) return unit
  const { unit_id, chip_id } = caller.session
  if (unit_id !== unit.id || chip_id !== unit.chip_id) throw new ApiError("session_token.wrong_chip")
  return unit
}

/** Returns the unit as an issued one. Throws `unit.not_minted`, or `unit.issuance_pending` during its issuance. */
export function requireIssued(unit: UnitView): IssuedUnit {
  const { collection, serial, chip_id } = unit
  if (!chip_id || !collection) throw new ApiError("unit.not_minted")
  if (unit.token_status === "pending" || serial === null) throw new ApiError("unit.issuance_pending")
  return { ...unit, collection, serial, chip_id }
}

/**
 * Returns the checksummed address of a recipient. Throws `validation.failed` on `recipient` for a wrong form or
 * checksum, or the zero address.
 */
export function requireRecipient(text: string): Address {
  if (!isAddress(text, { strict: false }))
    throw fieldError("recipient", "must be an EVM address: 0x and 40 hexadecimal digits")
  const digits = text.slice(2)
  const isOneCase = digits === digits.toLowerCase() || digits === digits.toUpperCase()
  if (!isOneCase && !isAddress(text))
    throw fieldError("recipient", "has a wrong checksum: check it for typos")
  const address = getAddress(`0x${digits.toLowerCase()}`)
  if (address === zeroAddress) throw fieldError("recipient", "must not be the zero address")
  return address
}

/** A unit to be handed to a recipient, and the error code to throw while the service relays a claim of the unit. */
export type HandOver = {
  unit_id: string
  recipient: Address
  while_claiming: "claim.in_progress" | "transfer.owner_unknown"
}

/**
 * Returns an issued unit without a relayed claim in progress. Rejects the collection's own address as the recipient,
 * because a token sent to its contract would be back in custody.
 */
export async function requireHandable(
  queries: Queries,
  caller: Caller,
  { unit_id, recipient, while_claiming }: HandOver,
): Promise<IssuedUnit> {
  const found = await getUnitForCaller(queries, caller, unit_id)
  if (found.collection && isAddressEqual(recipient, getAddress(found.collection.address)))
    throw fieldError("recipient", "must not be the collection's own address")
  const unit = requireIssued(found)
  if (await hasRelayedClaim(queries, unit.id)) throw new ApiError(while_claiming)
  return unit
}

/**
 * Throws `TooSoon` for the sixth open authorization of this kind for a unit in one session, a limit per session so that
 * nobody can use up another's, and for the fifty-first of the unit, so that one chip tapped again and again cannot use
 * up what its organization may have open. Serializable database transactions keep parallel requests from exceeding it.
 */
export async function requireRoom(
  queries: Queries,
  caller: Caller,
  { table, unit_id, in_progress, at }: AuthorizationKind & { unit_id: string; at: Date },
): Promise<void> {
  const open = await (table === claims
    ? openClaims(queries, { unit_id })
    : openTransfers(queries, { unit_id }))
  const own = open.filter(({ session_token_id }) => session_token_id === caller.credential_id)
  if (own.length >= mostOfSession)
    throw tooMany(in_progress, `This session has ${own.length} open authorizations of the unit`, own, at)
  if (open.length >= mostOfUnit)
    throw tooMany(in_progress, `The unit has ${open.length} open authorizations`, open, at)
}

function tooMany(
  code: AuthorizationKind["in_progress"],
  fact: string,
  open: { expires_at: Date | null }[],
  at: Date,
): TooSoon {
  const ends = open.map(({ expires_at }) => (expires_at ?? at).getTime())
  const advice = "send one of them, or let them expire"
  return new TooSoon(code, `${fact}: ${advice}.`, Math.min(...ends) - at.getTime())
}

const mostOfSession = 5
const mostOfUnit = 50

const openClaims = openOf(claims, eq(claims.status, "claiming"))
const openTransfers = openOf(transfers, eq(transfers.status, "prepared"))

function openOf(table: AuthorizationKind["table"], isOpen: SQL) {
  const { expires_at, unit_id, session_token_id } = table
  return query((db, given: Given<{ unit_id: string }>) =>
    db
      .select({ expires_at, session_token_id })
      .from<AuthorizationKind["table"]>(table)
      .where(and(eq(unit_id, given.unit_id), isOpen)),
  )
}

type AuthorizationKind = {
  table: typeof claims | typeof transfers
  in_progress: "claim.in_progress" | "transfer.in_progress"
}

/** Returns whether a claim that the service itself sends is in progress. One that a wallet may send blocks nothing. */
export async function hasRelayedClaim(queries: Queries, unitId: string): Promise<boolean> {
  const open = await relayedClaims(queries, { unit_id: unitId })
  return open.length > 0
}

const relayedClaims = query((db, { unit_id }: Given<{ unit_id: string }>) =>
  db
    .select({ id: claims.id })
    .from(claims)
    .where(
      and(eq(claims.unit_id, unit_id), eq(claims.status, "claiming"), eq(claims.execution, "service_relay")),
    ),
)

/** Returns whether a chip replacement of the unit is in progress. */
export async function hasOpenReplacement(queries: Queries, unitId: string): Promise<boolean> {
  const open = await openReplacements(queries, { unit_id: unitId })
  return open.length > 0
}

const openReplacements = query((db, { unit_id }: Given<{ unit_id: string }>) =>
  db
    .select({ id: chipReplacements.id })
    .from(chipReplacements)
    .where(
      and(eq(chipReplacements.unit_id, unit_id), inArray(chipReplacements.status, ["prepared", "submitted"])),
    ),
)

/** Returns the unit's chain and its current owner there. Throws `unknownCode` if the chain cannot tell. */
export async function readOwner(
  chains: Chains,
  unit: IssuedUnit,
  unknownCode: UnknownCode,
): Promise<{ chain: Chain; owner: Address | null }> {
  const { chain, said: owner } = await askOfToken(chains, unit, unknownCode, (chain, contract) =>
    chain.ownerOf(contract, unit.serial),
  )
  return { chain, owner }
}

/** Returns the unit's chain and the ownership there, with the nonce that an authorization must contain. */
export async function readOwnership(
  chains: Chains,
  unit: IssuedUnit,
  unknownCode: UnknownCode,
): Promise<{ chain: Chain; ownership: Ownership }> {
  const { chain, said: ownership } = await askOfToken(chains, unit, unknownCode, (chain, contract) =>
    chain.ownershipOf(contract, unit.serial),
  )
  return { chain, ownership }
}

type UnknownCode = "claim.owner_unknown" | "transfer.owner_unknown"

async function askOfToken<Said>(
  chains: Chains,
  unit: IssuedUnit,
  unknownCode: UnknownCode,
  ask: (chain: Chain, contract: Address) => Promise<Said>,
): Promise<{ chain: Chain; said: Said }> {
  const chain = chains.get(unit.collection.chain_id)
  if (!chain) throw new LastingRefusal(unknownCode, "The service is not configured for the unit's network.")
  const silent = () => new ApiError(unknownCode, "The chain did not answer in time: try again.")
  try {
    const asked = ask(chain, getAddress(unit.collection.address))
    return { chain, said: await within(asked, chainPatienceMilliseconds, silent) }
  } catch (error) {
    if (error instanceof ChainUnreachable) throw silent()
    // A provider that lags behind may not know the token yet.
    if (error instanceof CallReverted) throw new ApiError(unknownCode)
    throw error
  }
}

/** How long a request waits for a chain in total. */
const chainPatienceMilliseconds = 3_000
