// The values of each status, defined once for columns, responses and types.

export const collectionStatuses = ["deploying", "active", "failed"] as const
export const tokenStatuses = ["pending", "active"] as const
export const ownershipStatuses = ["unissued", "custody", "owned"] as const
export const sessionTokenStatuses = ["valid", "expired", "revoked"] as const
export const claimStatuses = ["claiming", "claimed", "expired", "failed"] as const
export const claimExecutions = ["service_relay", "client_broadcast"] as const
export const transferStatuses = ["prepared", "confirmed", "expired", "failed"] as const
export const chipReplacementStatuses = ["prepared", "submitted", "confirmed", "failed"] as const
export const metadataRefreshStatuses = chipReplacementStatuses
export const transactionStatuses = [
  "allocated",
  "signed",
  "sent",
  "mined",
  "confirmed",
  "reverted",
  "final",
] as const
/** While its result is not known yet. */
export const openTransactionStatuses = ["allocated", "signed", "sent", "mined"] as const
/** How a node's response to a sent transaction is classified; src/engine/chain/send-errors.ts explains each value. */
export const sendOutcomes = [
  "known",
  "nonce_low",
  "nonce_high",
  "underpriced",
  "fee_too_low",
  "fee_too_high",
  "gas_too_low",
  "no_funds",
  "wait",
  "rate_limited",
  "refused",
  "unclear",
  "no_answer",
] as const
export const publishableKeyModes = ["live", "sandbox"] as const
export const webhookEndpointStatuses = ["enabled", "paused"] as const
export const webhookDeliveryStatuses = ["delivered", "failed"] as const
