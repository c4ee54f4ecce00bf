import { type Static, Type } from "@sinclair/typebox"
import { id, instant, nullable } from "../fields.ts"
import { address, failure, transactionHash, transactionPayload } from "../ownership-fields.ts"
import type { ClaimRow } from "./service.ts"

const execution = Type.Union([Type.Literal("service_relay"), Type.Literal("client_broadcast")])

export const createClaimBody = Type.Object(
  {
    recipient: Type.String({ minLength: 1, maxLength: 256 }),
    execution: Type.Optional(execution),
    identity_token: Type.Optional(Type.String({ minLength: 1, maxLength: 8_192 })),
  },
  { additionalProperties: false },
)
export type CreateClaimBody = Static<typeof createClaimBody>

export const claimResource = Type.Object(
  {
    id,
    unit_id: id,
    status: Type.Union([
      Type.Literal("claiming"),
      Type.Literal("claimed"),
      Type.Literal("expired"),
      Type.Literal("failed"),
    ]),
    execution,
    recipient: address,
    customer_id: nullable(Type.String()),
    transaction: nullable(transactionPayload),
    transaction_hash: nullable(transactionHash),
    failure: nullable(failure),
    expires_at: nullable(instant),
    created_at: instant,
    updated_at: instant,
  },
  { additionalProperties: false },
)
export type ClaimResource = Static<typeof claimResource>

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
