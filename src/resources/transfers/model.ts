import { type Static, Type } from "@sinclair/typebox"
import { transferStatuses } from "../../db/statuses.ts"
import {
  address,
  createdAt,
  described,
  expiresAt,
  failure,
  id,
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

export const createTransferBody = Type.Object(
  { recipient: sentRecipient, identity_token: Type.Optional(identityToken) },
  { title: "CreateTransfer", additionalProperties: false },
)
export type CreateTransferBody = Static<typeof createTransferBody>

export const transferResource = Type.Object(
  {
    id,
    unit_id: unitId,
    status: status(transferStatuses, {
      prepared: "waiting for the owner's wallet, or on its way to the chain.",
      confirmed: "confirmed by the chain; final.",
      expired: "the transaction was in no block by `expires_at`, so the owner stays the same; final.",
      failed: "it can no longer succeed; `failure` says why; final.",
    }),
    sender: described(address, "The owner, the only address that can send the transaction."),
    recipient,
    customer_id: customerId,
    transaction: described(transactionPayload, "Ready for `eth_sendTransaction` by the owner's wallet."),
    transaction_hash: transactionHash,
    failure,
    expires_at: expiresAt,
    created_at: createdAt,
    updated_at: updatedAt,
  },
  { title: "Transfer", additionalProperties: false },
)
export type TransferResource = Static<typeof transferResource>
