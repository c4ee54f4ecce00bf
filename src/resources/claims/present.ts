import type { ClaimRow } from "../../db/schema.ts"
import type { ClaimResource } from "./model.ts"

export function presentClaim(claim: ClaimRow): ClaimResource {
  return {
    id: claim.id,
    unit_id: claim.unit_id,
    status: claim.status,
    execution: claim.execution,
    recipient: claim.recipient,
    customer_id: claim.customer_id,
    transaction: claim.transaction,
    transaction_hash: claim.transaction_hash,
    failure: claim.failure,
    expires_at: claim.expires_at?.toISOString() ?? null,
    created_at: claim.created_at.toISOString(),
    updated_at: claim.updated_at.toISOString(),
  }
}
