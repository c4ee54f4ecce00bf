import { type Static, Type } from "@sinclair/typebox"
import { claimExecutions, claimStatuses } from "../../db/statuses.ts"
import {
  createdAt,
  described,
  failure,
  id,
  instant,
  nullable,
  oneOf,
  status,
  transactionHash,
  unitId,
  updatedAt,
} from "../../platform/fields.ts"
import {
  customerId,
  identityToken,
  recipient,
  sentRecipient,
  transactionPayload,
} from "../ownership/fields.ts"

const execution = oneOf(
  claimExecutions,
  "Who sends the transaction: the service, or the recipient's own wallet.",
)

export const createClaimBody = Type.Object(
  {
    recipient: sentRecipient,
    execution: Type.Optional(
      described(
        execution,
        "Who sends the transaction: the service (the default), or the recipient's own wallet.",
      ),
    ),
    identity_token: Type.Optional(identityToken),
  },
  { title: "CreateClaim", additionalProperties: false },
)
export type CreateClaimBody = Static<typeof createClaimBody>

export const claimResource = Type.Object(
  {
    id,
    unit_id: unitId,
    status: status(claimStatuses, {
      claiming: "on its way to the chain, or waiting for the recipient's wallet.",
      claimed: "confirmed by the chain; final.",
      expired: "the transaction was in no block by `expires_at`, so the unit can still be claimed; final.",
      failed: "it can no longer succeed; `failure` says why; final.",
    }),
    execution,
    recipient,
    customer_id: customerId,
    transaction: described(
      nullable(transactionPayload),
      "Ready for `eth_sendTransaction`; null if the service sends it.",
    ),
    transaction_hash: transactionHash,
    failure,
    expires_at: described(
      nullable(instant),
      "Until when the transaction must be in a block; null if the service sends it.",
    ),
    created_at: createdAt,
    updated_at: updatedAt,
  },
  { title: "Claim", additionalProperties: false },
)
export type ClaimResource = Static<typeof claimResource>
