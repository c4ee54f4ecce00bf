import type { ErrorEntry } from "./error-codes/entry.ts"
import { ownershipErrors } from "./error-codes/ownership.ts"
import { internalErrors, requestErrors } from "./error-codes/requests.ts"
import { thingErrors } from "./error-codes/things.ts"

const all = { ...requestErrors, ...thingErrors, ...ownershipErrors, ...internalErrors }

export type ErrorCode = keyof typeof all

/** Every error code that a caller can meet, in the order in which people are shown them. */
export const errorCatalogue: Record<ErrorCode, ErrorEntry<ErrorCode>> = all

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

/** A refusal that no waiting ends, though others with its code pass by themselves: nobody is told to retry. */
export class LastingRefusal extends ApiError {
  override name = "LastingRefusal"
}

/** A refusal that ends by itself: how long it will last at the most. */
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

/** `validation.failed` for one top-level field. */
export function fieldError(field: string, message: string): ApiError {
  return new ApiError("validation.failed", undefined, { formErrors: [], fieldErrors: { [field]: [message] } })
}

/** `validation.failed` for the request as a whole. */
export function formError(message: string): ApiError {
  return new ApiError("validation.failed", undefined, { formErrors: [message], fieldErrors: {} })
}
