import type { ErrorEntry } from "./error-codes/entry.ts"
import { ownershipErrors } from "./error-codes/ownership.ts"
import { internalErrors, requestErrors } from "./error-codes/requests.ts"
import { thingErrors } from "./error-codes/things.ts"

const all = { ...requestErrors, ...thingErrors, ...ownershipErrors, ...internalErrors }

export type ErrorCode = keyof typeof all

/** Every error code of the API, in the order of the documentation. */
export const errorCatalogue: Record<ErrorCode, ErrorEntry<ErrorCode>> = all

/** An error that the caller can act on. The message defaults to the code's title and never contains a secret. */
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

/**
 * An error that waiting does not end, although its code is usually temporary. The response does not suggest a retry.
 */
export class LastingRefusal extends ApiError {
  override name = "LastingRefusal"
}

/** An error that ends by itself, in `milliseconds_left` at the latest. */
export class TooSoon extends ApiError {
  override name = "TooSoon"
  constructor(
    code: ErrorCode,
    message: string,
    readonly milliseconds_left: number,
  ) {
    super(code, message)
  }
}

export type ErrorDetails = { formErrors: string[]; fieldErrors: Record<string, string[]> }

/** Returns `validation.failed` for one top-level field. */
export function fieldError(field: string, message: string): ApiError {
  return new ApiError("validation.failed", undefined, { formErrors: [], fieldErrors: { [field]: [message] } })
}

/** Returns `validation.failed` for the request as a whole. */
export function formError(message: string): ApiError {
  return new ApiError("validation.failed", undefined, { formErrors: [message], fieldErrors: {} })
}
