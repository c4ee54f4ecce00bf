import type { ErrorEntries } from "./entry.ts"

/** What stands in the way of claims, transfers and chip replacements. */
export const ownershipErrors = {
  "claim.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such claim.",
    happened: "The unit has no claim with this id.",
    fix: "Use the `id` and the `unit_id` that the creation of the claim answered.",
    operation: "createClaim",
    related: ["unit.not_found", "transfer.not_found"],
  },
  "claim.in_progress": {
    status: 409,
    retryable: true,
    title: "A claim of this unit is on its way.",
    happened:
      "The service is sending a claim of this unit, or this session has 5 open claims that a wallet could send. An authorization that nobody sends stands in nobody else's way.",
    fix: "Poll the claim until it is final. When it ends `expired` or `failed`, create a new claim.",
    operation: "getClaim",
    related: ["transfer.in_progress", "claim.already_claimed"],
  },
  "claim.already_to_recipient": {
    status: 409,
    retryable: false,
    title: "The recipient owns this unit already.",
    happened: "The recipient owns the unit already, so there is nothing to do.",
    fix: "Show it as claimed. If somebody else should have it, its owner makes a transfer.",
    operation: "createTransfer",
    related: ["claim.already_claimed"],
  },
  "claim.already_claimed": {
    status: 409,
    retryable: false,
    title: "The unit is claimed already.",
    happened: "The unit was claimed before, by somebody other than this recipient.",
    fix: "The owner hands it on with a transfer.",
    operation: "createTransfer",
    related: ["claim.already_to_recipient", "chip_replacement.locked"],
  },
  "claim.owner_unknown": {
    status: 409,
    retryable: true,
    title: "The unit's owner cannot be read from the chain.",
    happened:
      "The chain could not be read, or the token is not in the service's custody and nobody is known to own it, or it has another chip on chain, which a claim would lock for ever. Nothing was recorded.",
    fix: "Wait as many seconds as `Retry-After` says and send the request again. Where it says none, tell the operator of the service, who finds the unit by `operator chain compare`.",
    operation: "createClaim",
    related: ["transfer.owner_unknown", "claim.already_claimed"],
  },
  "transfer.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such transfer.",
    happened: "The unit has no transfer with this id.",
    fix: "Use the `id` and the `unit_id` that the creation of the transfer answered.",
    operation: "createTransfer",
    related: ["unit.not_found", "claim.not_found"],
  },
  "transfer.in_progress": {
    status: 409,
    retryable: true,
    title: "This session has too many open transfers of this unit.",
    happened:
      "This session has 5 open transfers of this unit. Several transfers may be open: the contract lets one of them through and the others end `failed` with `transfer.superseded`.",
    fix: "Let the owner send the transaction of an open transfer, or wait 30 minutes until they expire. Or tap again.",
    operation: "getTransfer",
    related: ["transfer.owner_unknown", "claim.in_progress"],
  },
  "transfer.already_to_recipient": {
    status: 409,
    retryable: false,
    title: "The recipient owns this unit already.",
    happened: "The recipient owns the unit already, so there is nothing to do.",
    fix: "Check the recipient's address.",
    operation: "createTransfer",
    related: ["claim.already_to_recipient"],
  },
  "transfer.owner_unknown": {
    status: 409,
    retryable: true,
    title: "The unit has no owner that the chain can name.",
    happened:
      "The unit has not been claimed, so it has no owner who could hand it on, its claim is on its way, or the chain could not be read.",
    fix: "Claim the unit first. If the answer has `Retry-After`, wait as many seconds and send the request again.",
    operation: "createClaim",
    related: ["claim.owner_unknown", "unit.not_minted"],
  },
  "chip_replacement.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such chip replacement.",
    happened: "The unit has no chip replacement with this id.",
    fix: "Use the `id` and the `unit_id` that the creation of the chip replacement answered.",
    operation: "createChipReplacement",
    related: ["unit.not_found"],
  },
  "chip_replacement.in_progress": {
    status: 409,
    retryable: true,
    title: "A chip replacement of this unit is open.",
    happened:
      "A chip replacement of this unit is open, and until it is final neither its chip nor its owner may change.",
    fix: "Poll it until it is `confirmed` or `failed`, then send the request again.",
    operation: "getChipReplacement",
    related: ["claim.in_progress", "chip.already_paired"],
  },
  "chip_replacement.locked": {
    status: 409,
    retryable: false,
    title: "The unit is claimed: its chip is locked for ever.",
    happened:
      "The unit is claimed. The contract locks its chip for ever, so that nobody can move the proof of a thing away from its owner.",
    fix: "Replace chips before units are claimed. A claimed unit takes only a chip that the chain has for it already, which the service has forgotten; else nothing can be done.",
    operation: "getUnit",
    related: ["claim.already_claimed"],
  },
} as const satisfies ErrorEntries
