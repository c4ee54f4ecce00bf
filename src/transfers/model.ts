import { type Static, Type } from "@sinclair/typebox"
import { id, instant, nullable } from "../fields.ts"
import { address, failure, transactionHash, transactionPayload } from "../ownership-fields.ts"
import type { TransferRow } from "./service.ts"

export const createTransferBody = Type.Object(
  {
    recipient: Type.String({ minLength: 1, maxLength: 256 }),
    identity_token: Type.Optional(Type.String({ minLength: 1, maxLength: 8_192 })),
  },
  { additionalProperties: false },
)
export type CreateTransferBody = Static<typeof createTransferBody>

export const transferResource = Type.Object(
  {
    id,
    unit_id: id,
    status: Type.Union([
      Type.Literal("prepared"),
      Type.Literal("confirmed"),
      Type.Literal("expired"),
      Type.Literal("failed"),
    ]),
    sender: address,
    recipient: address,
    customer_id: nullable(Type.String()),
    transaction: transactionPayload,
    transaction_hash: nullable(transactionHash),
    failure: nullable(failure),
    expires_at: instant,
    created_at: instant,
    updated_at: instant,
  },
  { additionalProperties: false },
)
export type TransferResource = Static<typeof transferResource>

export function presentTransfer(transfer: TransferRow): TransferResource {
  return {
    id: transfer.id,
    unit_id: transfer.unit_id,
    status: transfer.status,
    sender: transfer.sender,
    recipient: transfer.recipient,
    customer_id: transfer.customer_id,
    transaction: transfer.transaction,
    transaction_hash: transfer.transaction_hash,
    failure: transfer.failure,
    expires_at: transfer.expires_at.toISOString(),
    created_at: transfer.created_at.toISOString(),
    updated_at: transfer.updated_at.toISOString(),
  }
}
