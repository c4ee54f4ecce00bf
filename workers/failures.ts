import type { EffectFailure } from "../machines/effect.ts"

/**
 * The `failure.code` of collections, units, claims, transfers and chip replacements that the chain refused, with
 * what an integrator can do. `claim.superseded` and `transfer.superseded` are the machines' own.
 */
export const failureCodes = {
  "collection.deployment_reverted":
    "The chain refused the contract; the operator of the service can retry it.",
  "unit.issuance_reverted": "The chain refused the issuance; the operator of the service can retry it.",
  "claim.already_claimed": "Somebody else claimed the unit first. Read its owner from the chain.",
  "chip_replacement.locked":
    "The unit was claimed meanwhile, which locks its chip. It keeps the chip it has.",
  "chip_replacement.reverted": "The chain refused the swap. The unit keeps its chip: replace it again.",
} as const

/** A failure with its documented sentence and, for support, what was seen. */
export function failure(code: keyof typeof failureCodes, seen: string): EffectFailure {
  return { code, message: `${failureCodes[code]} (${seen})` }
}
