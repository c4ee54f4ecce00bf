import { type Address, isAddressEqual } from "viem"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { type ClaimRow, claims } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { startActor } from "../../engine/actors/runtime.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Chain } from "../../platform/chain.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError, LastingRefusal } from "../../platform/errors.ts"
import { newId } from "../../platform/ids.ts"
import { checkIdentityToken, type IdentityProof, useIdentityToken } from "../identity-tokens/service.ts"
import { authorizeFrom, type TimedAuthorization, watchOf } from "../ownership/authorization.ts"
import { getOf, listOf } from "../ownership/of-unit.ts"
import {
  type HandOver,
  hasOpenReplacement,
  type IssuedUnit,
  readOwner,
  readOwnership,
  requireHandable,
  requireRecipient,
  requireRoom,
} from "../ownership/rules.ts"
import type { CreateClaimBody } from "./model.ts"

/** What `createClaim` needs from the chain and the customer's sign-in. */
type PreparedClaim = {
  chain: Chain
  proof: IdentityProof | null
  /** Null if the service sends the claim itself. */
  authorization: TimedAuthorization | null
}

/** Checks a claim against database and chain, before the database transaction that records it. */
export async function prepareClaim(
  context: Context,
  caller: Caller,
  unitId: string,
  body: CreateClaimBody,
): Promise<PreparedClaim> {
  const recipient = requireRecipient(body.recipient)
  const unit = await requireClaimable(context.db.read, caller, { unit_id: unitId, recipient, while_claiming })
  if (body.execution === "client_broadcast")
    await requireRoomFor(context.db.read, caller, unit, context.clock())
  const proof = await checkIdentityToken(context, caller, body.identity_token)
  if (body.execution !== "client_broadcast") {
    const { chain, owner } = await readOwner(context.chains, unit, "claim.owner_unknown")
    requireCustody(unit, owner, recipient)
    return { chain, proof, authorization: null }
  }

  const { chain, ownership } = await readOwnership(context.chains, unit, "claim.owner_unknown")
  requireCustody(unit, ownership.owner, recipient)
  const { authorization_nonce, chip_id } = ownership
  // A claim signed now would permanently lock the other chip.
  if (chip_id !== unit.chip_id)
    throw new LastingRefusal(
      "claim.owner_unknown",
      "The unit has another chip on chain. If this does not change, only the operator of the service can fix it.",
    )
  const wanted = { table: claims, unit, ownership, recipient }
  const authorization = await authorizeFrom(context, wanted, (token) =>
    chain.authorizeClaim({ ...token, recipient, authorization_nonce }),
  )
  return { chain, proof, authorization }
}

/** Throws if somebody owns the unit, according to the chain or the database. */
function requireCustody({ claimed }: IssuedUnit, owner: Address | null, recipient: Address): void {
  if (owner && isAddressEqual(owner, recipient)) throw new ApiError("claim.already_to_recipient")
  if (owner) throw new ApiError("claim.already_claimed")
  if (claimed) throw new ApiError("claim.owner_unknown")
}

/** Records a prepared claim and starts it, after checking the database again. */
export async function createClaim(
  turn: Turn,
  caller: Caller,
  { unit_id, body, prepared }: { unit_id: string; body: CreateClaimBody; prepared: PreparedClaim },
): Promise<ClaimRow> {
  const { chain, proof, authorization } = prepared
  const recipient = requireRecipient(body.recipient)
  const unit = await requireClaimable(turn.tx, caller, { unit_id, recipient, while_claiming })
  if (authorization) await requireRoomFor(turn.tx, caller, unit, turn.at)
  // It was claimed after the chain was asked; a repeated request will learn by whom.
  if (unit.claimed) throw new ApiError("claim.owner_unknown")
  if (proof) await useIdentityToken(turn, caller, proof)

  const [claim] = await insertClaim(turn.tx, {
    id: newId(),
    organization_id: caller.organization_id,
    unit_id: unit.id,
    session_token_id: caller.session && caller.credential_id,
    status: "claiming",
    execution: body.execution ?? "service_relay",
    recipient,
    customer_id: proof?.customer_id ?? null,
    transaction: authorization?.transaction ?? null,
    authorization_digest: authorization?.authorization_digest ?? null,
    transaction_hash: null,
    failure: null,
    expires_at: authorization?.deadline_at ?? null,
    created_at: turn.at,
    updated_at: turn.at,
  })
  if (!claim) throw new ApiError(in_progress)
  await startActor(turn, {
    id: claim.id,
    machine: "claim",
    organization_id: caller.organization_id,
    input: {
      unit_id: unit.id,
      recipient,
      relay: authorization ? null : { lane_id: chain.ownershipLaneId(unit.id) },
      authorization: authorization && watchOf(unit, authorization),
    },
  })
  return claim
}

const insertClaim = query((db, row: Given<ClaimRow>) =>
  db.insert(claims).values(row).onConflictDoNothing().returning(),
)

/** Lists a unit's claims, newest first. */
export const listClaims = listOf(claims)

/** Throws `claim.not_found`. */
export const getClaim = getOf(claims, "claim.not_found")

const in_progress = "claim.in_progress"
const while_claiming = in_progress

async function requireRoomFor(queries: Queries, caller: Caller, { id }: IssuedUnit, at: Date): Promise<void> {
  await requireRoom(queries, caller, { table: claims, unit_id: id, in_progress, at })
}

/** Returns an issued unit that has no relayed claim or chip replacement in progress. */
async function requireClaimable(queries: Queries, caller: Caller, asked: HandOver): Promise<IssuedUnit> {
  const unit = await requireHandable(queries, caller, asked)
  if (await hasOpenReplacement(queries, unit.id)) throw new ApiError("chip_replacement.in_progress")
  return unit
}
