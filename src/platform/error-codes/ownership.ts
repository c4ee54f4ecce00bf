import type { ErrorEntries } from "./entry.ts"

/** Errors of claims, transfers and chip replacements. */
export const ownershipErrors = {
  "claim.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such claim.",
    happened: "The unit has no claim with this id.",
    fix: "Use the `id` and `unit_id` that were returned when the claim was created.",
    operation: "createClaim",
    related: ["unit.not_found", "transfer.not_found"],
  },
  "claim.in_progress": {
    status: 409,
    retryable: true,
    title: "A claim of this unit is in progress.",
    happened:
      "The service is sending a claim of this unit, or there are too many open claims for wallets to send: 5 of this session, or 50 of the unit from all sessions.",
    fix: "Poll the claim until it is final. If it ends `expired` or `failed`, create a new claim. With too many open claims for wallets, let the recipient send one of them, or wait until they expire after 30 minutes. With 5 of this session you can also tap again.",
    operation: "getClaim",
    related: ["transfer.in_progress", "claim.already_claimed"],
  },
  "claim.already_to_recipient": {
    status: 409,
    retryable: false,
    title: "The recipient already owns this unit.",
    happened: "The recipient already owns the unit, so there is nothing to do.",
    fix: "Show the unit as claimed. To give it to somebody else, its owner makes a transfer.",
    operation: "createTransfer",
    related: ["claim.already_claimed"],
  },
  "claim.already_claimed": {
    status: 409,
    retryable: false,
    title: "The unit is already claimed.",
    happened: "The unit has already been claimed, and its owner is not this recipient.",
    fix: "The owner can hand it on with a transfer.",
    operation: "createTransfer",
    related: ["claim.already_to_recipient", "chip_replacement.locked"],
  },
  "claim.owner_unknown": {
    status: 409,
    retryable: true,
    title: "The unit's owner cannot be read from the chain.",
    happened:
      "The chain could not be read; or the token is not in the service's custody, and its owner is not known; or the unit has another chip on chain, which a claim would lock for good. Nothing was recorded.",
    fix: "Wait for the number of seconds in `Retry-After` and send the request again. If there is no `Retry-After`, tell the operator of the service, who can find the cause with `operator chain compare`.",
    operation: "createClaim",
    related: ["transfer.owner_unknown", "claim.already_claimed"],
  },
  "transfer.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such transfer.",
    happened: "The unit has no transfer with this id.",
    fix: "Use the `id` and `unit_id` that were returned when the transfer was created.",
    operation: "createTransfer",
    related: ["unit.not_found", "claim.not_found"],
  },
  "transfer.in_progress": {
    status: 409,
    retryable: true,
    title: "This unit has too many open transfers.",
    happened:
      "There are too many open transfers of this unit: 5 of this session, or 50 from all sessions. Several may be open at once: the contract accepts one of them, and the others end `failed` with `transfer.superseded`.",
    fix: "Let the owner send the transaction of an open transfer, or wait until they expire after 30 minutes. With 5 of this session you can also tap again.",
    operation: "getTransfer",
    related: ["transfer.owner_unknown", "claim.in_progress"],
  },
  "transfer.already_to_recipient": {
    status: 409,
    retryable: false,
    title: "The recipient already owns this unit.",
    happened: "The recipient already owns the unit, so there is nothing to do.",
    fix: "Check the recipient's address.",
    operation: "createTransfer",
    related: ["claim.already_to_recipient"],
  },
  "transfer.owner_unknown": {
    status: 409,
    retryable: true,
    title: "The unit has no owner on chain, or its owner cannot be read.",
    happened:
      "The unit has no owner who could transfer it, because it has not been claimed or its claim is still in progress; or the chain could not be read.",
    fix: "If the response has `Retry-After`, wait for that number of seconds and send the request again. Otherwise claim the unit first.",
    operation: "createClaim",
    related: ["claim.owner_unknown", "unit.not_minted"],
  },
  "chip_replacement.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such chip replacement.",
    happened: "The unit has no chip replacement with this id.",
    fix: "Use the `id` and `unit_id` that were returned when the chip replacement was created.",
    operation: "createChipReplacement",
    related: ["unit.not_found"],
  },
  "chip_replacement.in_progress": {
    status: 409,
    retryable: true,
    title: "A chip replacement of this unit is in progress.",
    happened:
      "A chip replacement of this unit is in progress. Until it is final, neither the unit's chip nor its owner can change.",
    fix: "Poll the chip replacement until it is `confirmed` or `failed`, then send the request again.",
    operation: "getChipReplacement",
    related: ["claim.in_progress", "chip.already_paired"],
  },
  "chip_replacement.locked": {
    status: 409,
    retryable: false,
    title: "The unit is claimed, so its chip is locked for good.",
    happened:
      "The unit is claimed. The contract locks its chip for good, so that nobody can take the proof of authenticity away from the owner.",
    fix: "Replace chips before units are claimed. A claimed unit accepts only a chip that the chain already has for it, as after the service was restored from an older backup.",
    operation: "getUnit",
    related: ["claim.already_claimed"],
  },
} as const satisfies ErrorEntries
