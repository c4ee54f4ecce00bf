import { and, eq } from "drizzle-orm"
import { type Address, isAddressEqual } from "viem"
import { startActor } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import type { Authorization, Chain } from "../chain/chains.ts"
import type { Context } from "../context.ts"
import type { Queries } from "../db/database.ts"
import { claims } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError } from "../errors.ts"
import { checkIdentityToken, type IdentityProof, useIdentityToken } from "../identity-tokens.ts"
import { newId, parseId } from "../ids.ts"
import {
  deadlineFrom,
  getUnitForCaller,
  hasOpenClaim,
  hasOpenReplacement,
  hasOpenTransfer,
  type IssuedUnit,
  readOwnership,
  requireIssued,
  requireOtherThanContract,
  requireRecipient,
} from "../ownership.ts"
import type { CreateClaimBody } from "./model.ts"

export type ClaimRow = typeof claims.$inferSelect

/** What `createClaim` needs of the chain and of the customer's sign-in. */
export type PreparedClaim = {
  chain: Chain
  proof: IdentityProof | null
  /** Present exactly when the recipient's own wallet will submit the claim. */
  authorization: (Authorization & { authorization_nonce: number; deadline_at: Date }) | null
}

/**
 * Checks a claim against rows and chain, before the database transaction that records it.
 * Throws, in this order: `validation.failed`, `unit.not_found`, `session_token.wrong_chip`, `unit.not_minted`,
 * `unit.issuance_pending`, `claim.in_progress`, `chip_replacement.in_progress`, `claim.owner_unknown`,
 * `claim.already_to_recipient`, `claim.already_claimed`.
 */
export async function prepareClaim(
  context: Context,
  caller: Caller,
  unitId: string,
  body: CreateClaimBody,
): Promise<PreparedClaim> {
  const recipient = requireRecipient(body.recipient)
  const unit = await requireClaimable(context.db.read, caller, unitId, recipient)
  const proof = await checkIdentityToken(context, caller, body.identity_token)
  const { chain, ownership } = await readOwnership(context.chains, unit, "claim.owner_unknown")
  if (ownership.owner && isAddressEqual(ownership.owner, recipient))
    throw new ApiError("claim.already_to_recipient")
  if (ownership.owner) throw new ApiError("claim.already_claimed")
  if (unit.claimed) throw new ApiError("claim.owner_unknown")
  if (body.execution !== "client_broadcast") return { chain, proof, authorization: null }

  const deadline_at = deadlineFrom(context.clock())
  const contract = unit.collection.address as Address
  const authorization = await chain.authorizeClaim({ contract, serial: unit.serial, recipient, deadline_at })
  const { authorization_nonce } = ownership
  return { chain, proof, authorization: { ...authorization, authorization_nonce, deadline_at } }
}

/** Records a prepared claim and starts it, after checking the rows once more. Throws what `prepareClaim` throws. */
export async function createClaim(
  turn: Turn,
  caller: Caller,
  unitId: string,
  body: CreateClaimBody,
  prepared: PreparedClaim,
): Promise<ClaimRow> {
  const { chain, proof, authorization } = prepared
  const recipient = requireRecipient(body.recipient)
  const unit = await requireClaimable(turn.tx, caller, unitId, recipient)
  // Claimed since the chain was asked: a repeated request will learn by whom.
  if (unit.claimed) throw new ApiError("claim.owner_unknown")
  if (proof) await useIdentityToken(turn, caller, proof)

  const [claim] = await turn.tx
    .insert(claims)
    .values({
      id: newId(),
      organization_id: caller.organization_id,
      unit_id: unit.id,
      status: "claiming",
      execution: body.execution ?? "service_relay",
      recipient,
      customer_id: proof?.customer_id ?? null,
      transaction: authorization?.transaction ?? null,
      authorization_digest: authorization?.authorization_digest ?? null,
      expires_at: authorization?.deadline_at ?? null,
      created_at: turn.at,
      updated_at: turn.at,
    })
    .onConflictDoNothing()
    .returning()
  if (!claim) throw new ApiError("claim.in_progress")
  await startActor(turn, {
    id: claim.id,
    machine: "claim",
    organization_id: caller.organization_id,
    input: {
      unit_id: unit.id,
      recipient,
      relay: authorization ? null : { lane_id: chain.ownershipLaneId() },
      authorization: authorization && {
        chain_id: chain.chain_id,
        contract_address: unit.collection.address,
        serial: unit.serial,
        authorization_digest: authorization.authorization_digest,
        authorization_nonce: authorization.authorization_nonce,
        deadline_at: authorization.deadline_at.toISOString(),
      },
    },
  })
  return claim
}

/** Throws `unit.not_found`, `session_token.wrong_chip`, `claim.not_found`. */
export async function getClaim(
  queries: Queries,
  caller: Caller,
  unitId: string,
  claimId: string,
): Promise<ClaimRow> {
  const unit = await getUnitForCaller(queries, caller, unitId)
  const id = parseId(claimId)
  if (!id) throw new ApiError("claim.not_found")
  const [claim] = await queries
    .select()
    .from(claims)
    .where(
      and(eq(claims.id, id), eq(claims.unit_id, unit.id), eq(claims.organization_id, caller.organization_id)),
    )
  if (!claim) throw new ApiError("claim.not_found")
  return claim
}

async function requireClaimable(
  queries: Queries,
  caller: Caller,
  unitId: string,
  recipient: Address,
): Promise<IssuedUnit> {
  const found = await getUnitForCaller(queries, caller, unitId)
  requireOtherThanContract(recipient, found.collection)
  const unit = requireIssued(found)
  if ((await hasOpenClaim(queries, unit.id)) || (await hasOpenTransfer(queries, unit.id)))
    throw new ApiError("claim.in_progress")
  if (await hasOpenReplacement(queries, unit.id)) throw new ApiError("chip_replacement.in_progress")
  return unit
}
