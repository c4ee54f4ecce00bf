import { DatabaseUnavailable, driverError } from "../db/database.ts"
import type { Context } from "../platform/context.ts"
import {
  ApiError,
  type ErrorCode,
  type ErrorDetails,
  errorCatalogue,
  LastingRefusal,
  TooSoon,
} from "../platform/errors.ts"
import { loggable } from "../platform/log.ts"
import { Unavailable } from "../platform/unavailable.ts"
import { mostMessages } from "./validate.ts"

/** A response as data: the parts that differ between requests. */
export type Answer = {
  status: number
  /** JSON text; null for a response without a body. */
  body: string | null
  headers: Record<string, string>
  /** The error code; null for a success. */
  code: ErrorCode | null
}

/** A response with a binary body. */
export type FileAnswer = Omit<Answer, "body"> & { body: Uint8Array<ArrayBuffer> }

/** A response that is streamed. */
export type StreamAnswer = Omit<Answer, "body"> & { body: TextStream }

/** A stream of text. A reader that stops calls `end`, which takes effect at once, even while `next` is pending. */
export type TextStream = { next(): Promise<IteratorResult<string, void>>; end(): void }

/** Returns the response for any error. What the caller cannot act on becomes `internal.error` and is logged. */
export function errorAnswer(context: Context, error: unknown, requestId: string): Answer {
  if (error instanceof ApiError) return refusal(context, error, errorCatalogue[error.code].status, requestId)
  const cause = driverError(error)
  const isTemporary = cause instanceof DatabaseUnavailable || cause instanceof Unavailable
  const stack = cause instanceof Error ? cause.stack : undefined
  context.log.error(
    { request_id: requestId, ...loggable(error), stack },
    isTemporary ? "a request failed, because something that it needs is unavailable" : "a request failed",
  )
  return refusal(context, new ApiError("internal.error"), isTemporary ? 503 : 500, requestId)
}

function refusal(context: Context, error: ApiError, status: number, requestId: string): Answer {
  const { code, message, details } = error
  return {
    status,
    code,
    headers: { ...challenge(status), ...retryAfter(error, status) },
    body: JSON.stringify({
      error: {
        code,
        message,
        request_id: requestId,
        doc_url: `${context.config.docs_url}/errors/${code}`,
        ...(code === "validation.failed" && { details: shortened(details) }),
      },
    }),
  }
}

/** Limits the messages to `mostMessages`, those about the whole request first. */
function shortened(details: ErrorDetails | null): ErrorDetails {
  const { formErrors, fieldErrors } = details ?? { formErrors: [], fieldErrors: {} }
  let room = mostMessages - formErrors.length
  const fields: [string, string[]][] = []
  for (const [field, messages] of Object.entries(fieldErrors)) {
    if (room <= 0) break
    fields.push([field, messages.slice(0, room)])
    room -= messages.length
  }
  return { formErrors: formErrors.slice(0, mostMessages), fieldErrors: Object.fromEntries(fields) }
}

function challenge(status: number): Record<string, string> {
  return status === 401 ? { "www-authenticate": "Bearer" } : {}
}

/** Returns `Retry-After` in whole seconds. The chain takes longer than another request with the same key. */
function retryAfter(error: ApiError, status: number): Record<string, string> {
  const { code } = error
  if (error instanceof TooSoon)
    return { "retry-after": `${Math.max(1, Math.ceil(error.milliseconds_left / 1_000))}` }
  const isWorthWaiting = status === 503 || (status === 409 && errorCatalogue[code].retryable)
  if (!isWorthWaiting || error instanceof LastingRefusal) return {}
  return { "retry-after": code === "idempotency.in_progress" ? "1" : "5" }
}
