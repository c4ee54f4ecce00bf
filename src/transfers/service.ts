import { and, eq } from "drizzle-orm"
import { type Address, isAddressEqual } from "viem"
import { startActor } from "../actors/runtime.ts"
import type { Caller } from "../caller.ts"
import type { Authorization } from "../chain/chains.ts"
import type { Context } from "../context.ts"
import type { Queries } from "../db/database.ts"
import { transfers } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError } from "../errors.ts"
import { checkIdentityToken, type IdentityProof, useIdentityToken } from "../identity-tokens.ts"
import { newId, parseId } from "../ids.ts"
import {
  deadlineFrom,
  getUnitForCaller,
  hasOpenClaim,
  hasOpenTransfer,
  type IssuedUnit,
  readOwnership,
  requireIssued,
  requireOtherThanContract,
  requireRecipient,
} from "../ownership.ts"
import type { CreateTransferBody } from "./model.ts"

export type TransferRow = typeof transfers.$inferSelect

/** What `createTransfer` needs of the chain and of the customer's sign-in. */
export type PreparedTransfer = {
  sender: Address
  proof: IdentityProof | null
  authorization: Authorization & { authorization_nonce: number; deadline_at: Date }
}

/**
 * Asks the chain for the owner and signs what lets that owner hand the unit over, before the database
 * transaction that records it. Throws, in this order: `validation.failed`, `unit.not_found`,
 * `session_token.wrong_chip`, `unit.not_minted`, `unit.issuance_pending`, `transfer.in_progress`,
 * `transfer.owner_unknown`, `transfer.already_to_recipient`.
 */
export async function prepareTransfer(
  context: Context,
  caller: Caller,
  unitId: string,
  body: CreateTransferBody,
): Promise<PreparedTransfer> {
  const recipient = requireRecipient(body.recipient)
  const unit = await requireTransferable(context.db.read, caller, unitId, recipient)
  const proof = await checkIdentityToken(context, caller, body.identity_token)
  const { chain, ownership } = await readOwnership(context.chains, unit, "transfer.owner_unknown")
  const { owner: sender, authorization_nonce } = ownership
  if (!sender)
    throw new ApiError("transfer.owner_unknown", "The unit has no owner yet: it must be claimed first.")
  if (isAddressEqual(sender, recipient)) throw new ApiError("transfer.already_to_recipient")

  const deadline_at = deadlineFrom(context.clock())
  const contract = unit.collection.address as Address
  const authorization = await chain.authorizeTransfer({
    contract,
    serial: unit.serial,
    sender,
    recipient,
    authorization_nonce,
    deadline_at,
  })
  return { sender, proof, authorization: { ...authorization, authorization_nonce, deadline_at } }
}

/** Records a prepared transfer and starts its watch, after checking the rows once more. Throws what `prepareTransfer` throws. */
export async function createTransfer(
  turn: Turn,
  caller: Caller,
  unitId: string,
  body: CreateTransferBody,
  prepared: PreparedTransfer,
): Promise<TransferRow> {
  const { sender, proof, authorization } = prepared
  const recipient = requireRecipient(body.recipient)
  const unit = await requireTransferable(turn.tx, caller, unitId, recipient)
  if (proof) await useIdentityToken(turn, caller, proof)

  const [transfer] = await turn.tx
    .insert(transfers)
    .values({
      id: newId(),
      organization_id: caller.organization_id,
      unit_id: unit.id,
      status: "prepared",
      sender,
      recipient,
      customer_id: proof?.customer_id ?? null,
      transaction: authorization.transaction,
      authorization_digest: authorization.authorization_digest,
      expires_at: authorization.deadline_at,
      created_at: turn.at,
      updated_at: turn.at,
    })
    .onConflictDoNothing()
    .returning()
  if (!transfer) throw new ApiError("transfer.in_progress")
  await startActor(turn, {
    id: transfer.id,
    machine: "transfer",
    organization_id: caller.organization_id,
    input: {
      unit_id: unit.id,
      authorization: {
        chain_id: unit.collection.chain_id,
        contract_address: unit.collection.address,
        serial: unit.serial,
        authorization_digest: authorization.authorization_digest,
        authorization_nonce: authorization.authorization_nonce,
        deadline_at: authorization.deadline_at.toISOString(),
      },
    },
  })
  return transfer
}

/** Throws `unit.not_found`, `session_token.wrong_chip`, `transfer.not_found`. */
export async function getTransfer(
  queries: Queries,
  caller: Caller,
  unitId: string,
  transferId: string,
): Promise<TransferRow> {
  const unit = await getUnitForCaller(queries, caller, unitId)
  const id = parseId(transferId)
  if (!id) throw new ApiError("transfer.not_found")
  const [transfer] = await queries
    .select()
    .from(transfers)
    .where(
      and(
        eq(transfers.id, id),
        eq(transfers.unit_id, unit.id),
        eq(transfers.organization_id, caller.organization_id),
      ),
    )
  if (!transfer) throw new ApiError("transfer.not_found")
  return transfer
}

async function requireTransferable(
  queries: Queries,
  caller: Caller,
  unitId: string,
  recipient: Address,
): Promise<IssuedUnit> {
  const found = await getUnitForCaller(queries, caller, unitId)
  requireOtherThanContract(recipient, found.collection)
  const unit = requireIssued(found)
  if ((await hasOpenTransfer(queries, unit.id)) || (await hasOpenClaim(queries, unit.id)))
    throw new ApiError("transfer.in_progress")
  return unit
}
