import type { Context } from "../context.ts"
import { DatabaseUnavailable, driverError } from "../db/database.ts"
import { ApiError, type ErrorCode, type ErrorDetails, errorCatalogue } from "../errors.ts"
import { loggable } from "../log.ts"

/** An answer before it becomes a response: what differs from one request to the next. */
export type Answer = {
  status: number
  /** JSON text; null for a response without a body. */
  body: string | null
  headers: Record<string, string>
  /** The error's code; null for a success. */
  code: ErrorCode | null
}

/** The one form of every refusal. What the caller cannot act on becomes `internal.error`, and is logged. */
export function errorAnswer(context: Context, error: unknown, requestId: string): Answer {
  if (error instanceof ApiError) return refusal(context, error, errorCatalogue[error.code].status, requestId)
  const cause = driverError(error)
  const isTemporary = cause instanceof DatabaseUnavailable
  const stack = cause instanceof Error ? cause.stack : undefined
  context.log.error(
    { request_id: requestId, ...loggable(error), stack },
    isTemporary ? "the database is unavailable" : "a request failed",
  )
  return refusal(context, new ApiError("internal.error"), isTemporary ? 503 : 500, requestId)
}

function refusal(context: Context, error: ApiError, status: number, requestId: string): Answer {
  const { code, message, details } = error
  return {
    status,
    code,
    headers: { ...challenge(status), ...retryAfter(code, status) },
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

const maxMessages = 20

/** At most 20 messages: a body with a thousand mistakes does not get a thousand answers. */
function shortened(details: ErrorDetails | null): ErrorDetails {
  const { formErrors, fieldErrors } = details ?? { formErrors: [], fieldErrors: {} }
  let room = maxMessages - formErrors.length
  const fields: [string, string[]][] = []
  for (const [field, messages] of Object.entries(fieldErrors)) {
    if (room <= 0) break
    fields.push([field, messages.slice(0, room)])
    room -= messages.length
  }
  return { formErrors: formErrors.slice(0, maxMessages), fieldErrors: Object.fromEntries(fields) }
}

function challenge(status: number): Record<string, string> {
  return status === 401 ? { "www-authenticate": "Bearer" } : {}
}

/** Whole seconds. What waits for the chain takes longer than what waits for another request. */
function retryAfter(code: ErrorCode, status: number): Record<string, string> {
  const isWorthWaiting = status === 503 || (status === 409 && errorCatalogue[code].retryable)
  if (!isWorthWaiting) return {}
  return { "retry-after": code === "idempotency.in_progress" ? "1" : "5" }
}
