/** Every error code a caller can meet: its status, and whether the same request may succeed later. */
export const errorCatalogue = {
  "validation.failed": {
    status: 400,
    retryable: false,
    title: "The request does not have the expected form.",
  },
  "auth.unauthorized": {
    status: 401,
    retryable: false,
    title: "The credential is missing, malformed or of the wrong kind.",
  },
  "auth.forbidden": { status: 403, retryable: false, title: "The credential does not permit this." },
  "session_token.invalid_or_expired": {
    status: 401,
    retryable: false,
    title: "The session token is unknown, expired or revoked.",
  },
  "session_token.wrong_chip": {
    status: 403,
    retryable: false,
    title: "The session token belongs to another chip.",
  },
  "not_found.resource": { status: 404, retryable: false, title: "There is nothing at this address." },
  "request.method_not_allowed": {
    status: 405,
    retryable: false,
    title: "This address does not answer to this method.",
  },
  "request.too_large": { status: 413, retryable: false, title: "The body is larger than 64 KiB." },
  "request.unsupported_media_type": { status: 415, retryable: false, title: "The body is not plain JSON." },
  "rate_limit.exceeded": { status: 429, retryable: true, title: "Too many requests; wait and try again." },
  "quota.exceeded": { status: 403, retryable: false, title: "The organization has used up its quota." },
  "idempotency.key_conflict": {
    status: 409,
    retryable: false,
    title: "The idempotency key was used for another request.",
  },
  "idempotency.in_progress": {
    status: 409,
    retryable: true,
    title: "A request with this idempotency key is still running.",
  },
  "collection.not_found": { status: 404, retryable: false, title: "There is no such collection." },
  "collection.already_exists": {
    status: 409,
    retryable: false,
    title: "A collection with this external_id exists.",
  },
  "collection.not_active": {
    status: 409,
    retryable: false,
    title: "The collection's contract is not active.",
  },
  "unit.not_found": { status: 404, retryable: false, title: "There is no such unit." },
  "unit.already_exists": { status: 409, retryable: false, title: "A unit with this external_id exists." },
  "unit.not_minted": {
    status: 409,
    retryable: false,
    title: "The unit has not been issued: pair a chip first.",
  },
  "unit.issuance_pending": { status: 409, retryable: true, title: "The unit is still being issued." },
  "chip.not_found": { status: 404, retryable: false, title: "There is no such chip." },
  "chip.invalid_e_value": {
    status: 422,
    retryable: false,
    title: "The value of e, or of c, is not from this chip.",
  },
  "chip.already_scanned": {
    status: 409,
    retryable: false,
    title: "The value of e, or a later one, was used before.",
  },
  "chip.not_a_test_chip": { status: 422, retryable: false, title: "This works with test chips only." },
  "chip.already_paired": { status: 409, retryable: false, title: "The chip or the unit is paired already." },
  "chip.bulk_mixed_collections": {
    status: 422,
    retryable: false,
    title: "All units of a bulk pairing belong to one collection.",
  },
  "chip.bulk_pending": {
    status: 409,
    retryable: true,
    title: "An earlier bulk pairing of the collection is still being issued.",
  },
  "claim.not_found": { status: 404, retryable: false, title: "There is no such claim." },
  "claim.in_progress": { status: 409, retryable: true, title: "A claim or transfer of this unit is open." },
  "claim.already_to_recipient": {
    status: 409,
    retryable: false,
    title: "The recipient owns this unit already.",
  },
  "claim.already_claimed": { status: 409, retryable: false, title: "The unit is claimed already." },
  "claim.owner_unknown": {
    status: 409,
    retryable: true,
    title: "The unit's owner cannot be read from the chain.",
  },
  "transfer.not_found": { status: 404, retryable: false, title: "There is no such transfer." },
  "transfer.in_progress": {
    status: 409,
    retryable: true,
    title: "A transfer or claim of this unit is open.",
  },
  "transfer.already_to_recipient": {
    status: 409,
    retryable: false,
    title: "The recipient owns this unit already.",
  },
  "transfer.owner_unknown": {
    status: 409,
    retryable: true,
    title: "The unit has no owner that the chain can name.",
  },
  "chip_replacement.not_found": {
    status: 404,
    retryable: false,
    title: "There is no such chip replacement.",
  },
  "chip_replacement.in_progress": {
    status: 409,
    retryable: true,
    title: "A chip replacement of this unit is open.",
  },
  "chip_replacement.locked": {
    status: 409,
    retryable: false,
    title: "The unit is claimed: its chip is locked for ever.",
  },
  "internal.error": {
    status: 500,
    retryable: true,
    title: "Something unexpected happened; try again later.",
  },
} as const satisfies Record<string, { status: number; retryable: boolean; title: string }>

export type ErrorCode = keyof typeof errorCatalogue

/** A refusal that the caller can act on. The message defaults to the code's title and never holds a secret. */
export class ApiError extends Error {
  override name = "ApiError"
  constructor(
    readonly code: ErrorCode,
    message: string = errorCatalogue[code].title,
    readonly details: ErrorDetails | null = null,
  ) {
    super(message)
  }
}

export type ErrorDetails = { formErrors: string[]; fieldErrors: Record<string, string[]> }

/** `validation.failed` for one top-level field. */
export function fieldError(field: string, message: string): ApiError {
  return new ApiError("validation.failed", undefined, { formErrors: [], fieldErrors: { [field]: [message] } })
}

/** `validation.failed` for the request as a whole. */
export function formError(message: string): ApiError {
  return new ApiError("validation.failed", undefined, { formErrors: [message], fieldErrors: {} })
}
