import type { ErrorCode } from "../errors.ts"

/** What a page on a code says beside what the catalogue knows. */
export type ErrorText = {
  happened: string
  /** What to do, a step in each sentence. */
  fix: string
  /** The operation whose example is a request that works. */
  operation: string
  related: ErrorCode[]
}

export const errorTexts: Record<ErrorCode, ErrorText> = {
  "validation.failed": {
    happened:
      "The body, the address or a header does not have the form that the operation expects. Nothing was recorded. `details.fieldErrors` names the top-level fields that are wrong and `details.formErrors` what is wrong with the request as a whole.",
    fix: "Read `details` and correct the fields it names. Unknown fields and parameters are refused too, so check their spelling. A cursor is valid only for the list and filters it came from.",
    operation: "createTap",
    related: ["request.unsupported_media_type", "request.too_large"],
  },
  "auth.unauthorized": {
    happened:
      "The `Authorization` header is missing or malformed, the key is unknown or revoked, or the credential is of a kind that this operation does not accept.",
    fix: "Send exactly one header `Authorization: Bearer <token>`. The message says which kind the operation needs: an API key starts with `end_sk_`, a session token with `end_sess_`, a publishable key with `end_pk_live_`. Claims and transfers are made with a session token, never with an API key.",
    operation: "getSettings",
    related: ["session_token.invalid_or_expired", "auth.forbidden"],
  },
  "auth.forbidden": {
    happened:
      "The credential is valid and does not permit this: the page's origin is not on the organization's list, or a publishable key asked for a `dry_run`.",
    fix: "For calls from a browser, register the page's origin with `PUT /v1/settings/cors-origins`; it takes effect within a minute. Send `dry_run` from your server, with an API key.",
    operation: "replaceCorsOrigins",
    related: ["auth.unauthorized", "session_token.wrong_chip"],
  },
  "session_token.invalid_or_expired": {
    happened:
      "The session token is unknown, was revoked, or its time is over. Sessions last 600 seconds unless a tap asked for another `ttl`.",
    fix: "Let the person tap the chip again and use the new session token. A token cannot be made longer or recovered.",
    operation: "createTap",
    related: ["auth.unauthorized", "session_token.wrong_chip"],
  },
  "session_token.wrong_chip": {
    happened:
      "The session belongs to another chip than the one that this unit has. It may be a session for another unit, or the unit's chip was replaced since the tap.",
    fix: "Compare `scope.unit_id` of the session with the unit in the address. Tap the unit's own chip and use the session token of that tap.",
    operation: "getCurrentSessionToken",
    related: ["session_token.invalid_or_expired", "unit.not_found"],
  },
  "not_found.resource": {
    happened: "No operation has this address.",
    fix: "Compare the path with the list of operations. All but the service's own begin with `/v1`, and none ends with a slash.",
    operation: "getWelcome",
    related: ["request.method_not_allowed", "unit.not_found", "chip.not_found"],
  },
  "request.method_not_allowed": {
    happened: "The address exists and does not answer to this method.",
    fix: "Use one of the methods that the `Allow` header names.",
    operation: "listUnits",
    related: ["not_found.resource"],
  },
  "request.too_large": {
    happened: "The body is larger than 64 KiB.",
    fix: "Send less at once: pair fewer chips in one bulk request, or keep large attributes elsewhere and store their address.",
    operation: "pairChipsInBulk",
    related: ["validation.failed"],
  },
  "request.unsupported_media_type": {
    happened: "The body is not announced as plain JSON, or it is compressed.",
    fix: "Send `Content-Type: application/json` and the body as it is, in UTF-8.",
    operation: "createUnit",
    related: ["validation.failed"],
  },
  "rate_limit.exceeded": {
    happened:
      "More requests came than the limit of this credential, chip or address allows. Nothing was recorded. Refused credentials and refused `e` values have limits of their own.",
    fix: "Wait as many seconds as `Retry-After` says and send the same request again. Spread bulk work, and watch `X-RateLimit-Remaining`.",
    operation: "listTaps",
    related: ["quota.exceeded", "auth.unauthorized"],
  },
  "quota.exceeded": {
    happened:
      "The organization has as many units, collections, chips or taps in this month as the operator allows. Sending it again does not help.",
    fix: "Ask the operator of the service for a larger quota.",
    operation: "getSettings",
    related: ["rate_limit.exceeded"],
  },
  "idempotency.key_conflict": {
    happened:
      "The `Idempotency-Key` was used within 24 hours for another operation, another address or another body.",
    fix: "Make a new key for each new thing you create, and send exactly the same body when you retry. A UUID for each intent works well.",
    operation: "createUnit",
    related: ["idempotency.in_progress"],
  },
  "idempotency.in_progress": {
    happened: "An earlier request with the same `Idempotency-Key` is still being answered.",
    fix: "Wait as many seconds as `Retry-After` says and send the same request again: it gets the answer of the first one.",
    operation: "createUnit",
    related: ["idempotency.key_conflict"],
  },
  "collection.not_found": {
    happened: "Your organization has no collection with this id.",
    fix: "Look it up in the list, by your own `external_id` if you gave one. Check that the API key belongs to the right organization.",
    operation: "listCollections",
    related: ["collection.not_active", "not_found.resource"],
  },
  "collection.already_exists": {
    happened: "Your organization has a collection with this `external_id`.",
    fix: "Use the one that exists, or choose another `external_id`. To make retries safe, send an `Idempotency-Key`.",
    operation: "listCollections",
    related: ["unit.already_exists", "idempotency.key_conflict"],
  },
  "collection.not_active": {
    happened:
      "The collection's contract is still being deployed, or its deployment failed, so chips cannot be paired to its units yet.",
    fix: "Poll the collection until `contract.status` is `active`, which takes seconds to minutes. When it is `failed`, ask the operator, who can try it again.",
    operation: "getCollection",
    related: ["collection.not_found", "unit.issuance_pending"],
  },
  "unit.not_found": {
    happened:
      "Your organization has no unit with this id. A tap answers this when the chip is genuine and has no unit: it was never paired, or was retired by a chip replacement.",
    fix: "Look the unit up by your own `external_id`. For a tap, look at the chip: its `unit` is null while it is not paired.",
    operation: "listUnits",
    related: ["chip.not_found", "collection.not_found"],
  },
  "unit.already_exists": {
    happened: "Your organization has a unit with this `external_id`.",
    fix: "Use the one that exists, or choose another `external_id`. To make retries safe, send an `Idempotency-Key`.",
    operation: "listUnits",
    related: ["collection.already_exists", "idempotency.key_conflict"],
  },
  "unit.not_minted": {
    happened: "The unit was never issued as a token, because no chip has been paired to it.",
    fix: "Pair a chip to the unit and poll the unit until `collection.token.status` is `active`. Then send the request again.",
    operation: "pairChip",
    related: ["unit.issuance_pending"],
  },
  "unit.issuance_pending": {
    happened: "A chip is paired and the unit's token is being issued on chain.",
    fix: "Poll the unit until `collection.token.status` is `active`, then send the request again. A unit that is pending for more than a few minutes is a matter for support.",
    operation: "getUnit",
    related: ["unit.not_minted", "collection.not_active"],
  },
  "chip.not_found": {
    happened: "Your organization has no chip with this id.",
    fix: "Check the ten hexadecimal digits. Encoded chips are imported by the operator before they can be paired; test chips are made by pairing with `is_test`.",
    operation: "listChips",
    related: ["unit.not_found", "chip.already_paired"],
  },
  "chip.invalid_e_value": {
    happened:
      "The value of `e` was not made by this chip, or `c` does not belong to it. The chip's counter did not move.",
    fix: "Send `chip_id`, `e` and `c` exactly as the tap URL carries them, all from the same tap, with upper-case digits. If that is what you did, treat the tap as a forgery.",
    operation: "createTestTap",
    related: ["chip.already_scanned", "chip.not_found"],
  },
  "chip.already_scanned": {
    happened:
      "The value of `e` is authentic and not new: it, or a later one of the same chip, was recorded before. A copied or reloaded tap URL looks like this.",
    fix: "Tap the chip again and send the new value. To retry after a lost answer, send the same `Idempotency-Key`: then you get the answer of the first request, session token included.",
    operation: "createTestTap",
    related: ["chip.invalid_e_value", "idempotency.in_progress"],
  },
  "chip.not_a_test_chip": {
    happened: "Test helpers work with test chips only; this chip is hardware.",
    fix: "Use a chip whose `is_test` is true; pair one with `is_test` if you have none. A real chip emits its values when it is scanned.",
    operation: "createTestTap",
    related: ["chip.not_found"],
  },
  "chip.already_paired": {
    happened:
      "The chip, or the unit, is paired already, or the chip was retired or is reserved for a chip replacement.",
    fix: "Look at the unit's `chip_id` and at the chip's `unit`. To give a unit another chip, create a chip replacement.",
    operation: "getUnit",
    related: ["chip.not_found", "chip_replacement.in_progress"],
  },
  "chip.bulk_mixed_collections": {
    happened: "The units of the bulk request belong to more than one collection. Nothing was paired.",
    fix: "Send one bulk request for each collection.",
    operation: "pairChipsInBulk",
    related: ["chip.bulk_pending", "unit.not_found"],
  },
  "chip.bulk_pending": {
    happened: "An earlier bulk request of the same collection is still being issued. Nothing was paired.",
    fix: "Wait until the units of the earlier request are active, as `Retry-After` suggests, and send this one again.",
    operation: "getUnit",
    related: ["chip.bulk_mixed_collections", "unit.issuance_pending"],
  },
  "claim.not_found": {
    happened: "The unit has no claim with this id.",
    fix: "Use the `id` and the `unit_id` that the creation of the claim answered.",
    operation: "createClaim",
    related: ["unit.not_found", "transfer.not_found"],
  },
  "claim.in_progress": {
    happened: "A claim or a transfer of this unit is open.",
    fix: "Poll it until it is final. When it ends `expired` or `failed`, create a new claim.",
    operation: "getClaim",
    related: ["transfer.in_progress", "claim.already_claimed"],
  },
  "claim.already_to_recipient": {
    happened: "The recipient owns the unit already, so there is nothing to do.",
    fix: "Show it as claimed. If somebody else should have it, its owner makes a transfer.",
    operation: "createTransfer",
    related: ["claim.already_claimed"],
  },
  "claim.already_claimed": {
    happened: "The unit was claimed before, by somebody other than this recipient.",
    fix: "The owner hands it on with a transfer.",
    operation: "createTransfer",
    related: ["claim.already_to_recipient", "chip_replacement.locked"],
  },
  "claim.owner_unknown": {
    happened:
      "The chain could not be read, or the token is not in the service's custody and nobody is known to own it. Nothing was recorded.",
    fix: "Wait as many seconds as `Retry-After` says and send the request again.",
    operation: "createClaim",
    related: ["transfer.owner_unknown", "claim.already_claimed"],
  },
  "transfer.not_found": {
    happened: "The unit has no transfer with this id.",
    fix: "Use the `id` and the `unit_id` that the creation of the transfer answered.",
    operation: "createTransfer",
    related: ["unit.not_found", "claim.not_found"],
  },
  "transfer.in_progress": {
    happened: "A transfer or a claim of this unit is open.",
    fix: "Let the owner send the transaction of the open transfer, or wait 30 minutes until it expires. Then create a new one.",
    operation: "getTransfer",
    related: ["claim.in_progress"],
  },
  "transfer.already_to_recipient": {
    happened: "The recipient owns the unit already, so there is nothing to do.",
    fix: "Check the recipient's address.",
    operation: "createTransfer",
    related: ["claim.already_to_recipient"],
  },
  "transfer.owner_unknown": {
    happened:
      "The unit has not been claimed, so it has no owner who could hand it on, or the chain could not be read.",
    fix: "Claim the unit first. If it is claimed, wait as many seconds as `Retry-After` says and send the request again.",
    operation: "createClaim",
    related: ["claim.owner_unknown", "unit.not_minted"],
  },
  "chip_replacement.not_found": {
    happened: "The unit has no chip replacement with this id.",
    fix: "Use the `id` and the `unit_id` that the creation of the chip replacement answered.",
    operation: "createChipReplacement",
    related: ["unit.not_found"],
  },
  "chip_replacement.in_progress": {
    happened:
      "A chip replacement of this unit is open, and until it is final neither its chip nor its owner may change.",
    fix: "Poll it until it is `confirmed` or `failed`, then send the request again.",
    operation: "getChipReplacement",
    related: ["claim.in_progress", "chip.already_paired"],
  },
  "chip_replacement.locked": {
    happened:
      "The unit is claimed. The contract locks its chip for ever, so that nobody can move the proof of a thing away from its owner.",
    fix: "Nothing can be done for this unit. Replace chips before units are claimed.",
    operation: "getUnit",
    related: ["claim.already_claimed"],
  },
  "internal.error": {
    happened:
      "Something went wrong on the side of the service, or with status 503 its database is away for the moment.",
    fix: "Send the same request again with the same `Idempotency-Key`, after `Retry-After` where it is set, else with growing pauses. When it stays, tell support the `request_id`.",
    operation: "getHealth",
    related: ["rate_limit.exceeded", "idempotency.in_progress"],
  },
}
