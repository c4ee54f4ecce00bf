/** Why work failed for good: a stable code, and a message for people. */
export type EffectFailure = { code: string; message: string }

/** Every `failure.code`, with what happened and what an integrator can do about it. */
export const failures = {
  "collection.deployment_reverted":
    "The chain rejected the deployment of the contract; the operator of the service can retry it.",
  "unit.issuance_reverted": "The chain rejected the issuance; the operator of the service can retry it.",
  "claim.already_claimed": "Somebody else claimed the unit first. Read its owner from the chain.",
  "claim.superseded":
    "The unit was claimed in another way, or got another chip, before this claim was on chain.",
  "transfer.superseded": "The unit changed owner in another way before this authorization was used.",
  "chip_replacement.locked":
    "The unit was claimed meanwhile, which locks its chip. It keeps the chip it has.",
  "chip_replacement.reverted":
    "The chain rejected the chip replacement. The unit keeps its chip: ask for another replacement.",
  "metadata_refresh.reverted": "The chain rejected the metadata refresh. Ask for another one.",
  "webhook_endpoint.given_up":
    "The endpoint accepted none of ten attempts to deliver one event within three days. Repair it and enable it again.",
  "internal.error": "The work ended in an unexpected way.",
} as const

export type FailureCode = keyof typeof failures

/** Returns a failure with its documented message and, for support, what was observed. */
export function failure(code: FailureCode, seen: string | null = null): EffectFailure {
  return { code, message: seen === null ? failures[code] : `${failures[code]} (${seen})` }
}

/** Returns the failure in an `xstate.error.actor.*` event; `internal.error` if it has no code or no message. */
export function failureOf(error: unknown): EffectFailure {
  if (error && typeof error === "object" && "code" in error && "message" in error)
    return { code: String(error.code), message: String(error.message) }
  return failure("internal.error")
}
