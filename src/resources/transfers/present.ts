import type { TransferRow } from "../../db/schema.ts"
import type { TransferResource } from "./model.ts"

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
