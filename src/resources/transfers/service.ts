import { type Address, isAddressEqual } from "viem"
import { type Given, query } from "../../db/query.ts"
import { type TransferRow, transfers } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { startActor } from "../../engine/actors/runtime.ts"
import type { Caller } from "../../platform/caller.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError, LastingRefusal } from "../../platform/errors.ts"
import { newId } from "../../platform/ids.ts"
import { checkIdentityToken, type IdentityProof, useIdentityToken } from "../identity-tokens/service.ts"
import { authorizeFrom, type TimedAuthorization, watchOf } from "../ownership/authorization.ts"
import { getOf, listOf } from "../ownership/of-unit.ts"
import { readOwnership, requireHandable, requireRecipient, requireRoom } from "../ownership/rules.ts"
import type { CreateTransferBody } from "./model.ts"

/** What `createTransfer` needs from the chain and the customer's sign-in. */
type PreparedTransfer = {
  sender: Address
  proof: IdentityProof | null
  authorization: TimedAuthorization
}

/**
 * Reads the owner from the chain and signs the authorization for it, before the database transaction that records it.
 */
export async function prepareTransfer(
  context: Context,
  caller: Caller,
  unitId: string,
  body: CreateTransferBody,
): Promise<PreparedTransfer> {
  const recipient = requireRecipient(body.recipient)
  const unit = await requireHandable(context.db.read, caller, { unit_id: unitId, recipient, while_claiming })
  const asked = { table: transfers, unit_id: unit.id, in_progress, at: context.clock() } as const
  await requireRoom(context.db.read, caller, asked)
  const proof = await checkIdentityToken(context, caller, body.identity_token)
  const { chain, ownership } = await readOwnership(context.chains, unit, "transfer.owner_unknown")
  const { owner: sender, authorization_nonce } = ownership
  // Either a reorganization undid the claim, which will be mined again, or a provider lags behind.
  if (!sender && unit.claimed) throw new ApiError("transfer.owner_unknown")
  if (!sender)
    throw new LastingRefusal("transfer.owner_unknown", "The unit has no owner yet: it must be claimed first.")
  if (isAddressEqual(sender, recipient)) throw new ApiError("transfer.already_to_recipient")

  const wanted = { table: transfers, unit, ownership, recipient }
  const authorization = await authorizeFrom(context, wanted, (token) =>
    chain.authorizeTransfer({ ...token, sender, recipient, authorization_nonce }),
  )
  return { sender, proof, authorization }
}

/** Records a prepared transfer and starts watching for it, after checking the database again. */
export async function createTransfer(
  turn: Turn,
  caller: Caller,
  { unit_id, body, prepared }: { unit_id: string; body: CreateTransferBody; prepared: PreparedTransfer },
): Promise<TransferRow> {
  const { sender, proof, authorization } = prepared
  const recipient = requireRecipient(body.recipient)
  const unit = await requireHandable(turn.tx, caller, { unit_id, recipient, while_claiming })
  await requireRoom(turn.tx, caller, { table: transfers, unit_id: unit.id, in_progress, at: turn.at })
  if (proof) await useIdentityToken(turn, caller, proof)

  const [transfer] = await insertTransfer(turn.tx, {
    id: newId(),
    organization_id: caller.organization_id,
    unit_id: unit.id,
    session_token_id: caller.session && caller.credential_id,
    status: "prepared",
    sender,
    recipient,
    customer_id: proof?.customer_id ?? null,
    transaction: authorization.transaction,
    authorization_digest: authorization.authorization_digest,
    transaction_hash: null,
    failure: null,
    expires_at: authorization.deadline_at,
    created_at: turn.at,
    updated_at: turn.at,
  })
  if (!transfer) throw new Error("the database stored a transfer and did not return it")
  await startActor(turn, {
    id: transfer.id,
    machine: "transfer",
    organization_id: caller.organization_id,
    input: { unit_id: unit.id, authorization: watchOf(unit, authorization) },
  })
  return transfer
}

const insertTransfer = query((db, row: Given<TransferRow>) => db.insert(transfers).values(row).returning())

/** Lists a unit's transfers, newest first. */
export const listTransfers = listOf(transfers)

/** Throws `transfer.not_found`. */
export const getTransfer = getOf(transfers, "transfer.not_found")

const in_progress = "transfer.in_progress"
/** Until the claim is mined, nobody owns the unit. */
const while_claiming = "transfer.owner_unknown"
