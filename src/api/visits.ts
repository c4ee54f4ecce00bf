import { randomUUID } from "node:crypto"
import type { Visit } from "../http/answer.ts"
import type { Answer } from "../http/envelope.ts"
import type { Context } from "../platform/context.ts"
import { countRequest } from "../platform/metrics.ts"

/** A visit, and what its log line and span need. */
export type TimedVisit = Visit & { since: number; traceparent: string | null }

/** Gives a request its id; `headers` are those of its response. */
export function beginVisit(request: Request, headers: Visit["headers"], peer: Visit["peer"]): TimedVisit {
  return {
    request_id: `req_${randomUUID()}`,
    operation: null,
    caller: null,
    headers,
    readable_from: null,
    peer,
    since: performance.now(),
    traceparent: request.headers.get("traceparent"),
  }
}

/** One line and one span for each request; never a header, a body or the value of a parameter. */
export function logVisit(
  context: Context,
  visit: TimedVisit,
  { status, code }: Pick<Answer, "status" | "code">,
): void {
  const { request_id, operation, caller, since, traceparent } = visit
  const milliseconds = Math.round((performance.now() - since) * 100) / 100
  countRequest({ operation, status, code, milliseconds })
  context.log.info(
    {
      request_id,
      organization_id: caller?.organization_id ?? null,
      credential_id: caller?.credential_id ?? null,
      operation,
      status,
      code,
      milliseconds,
    },
    "request",
  )
  context.tracing.record({
    name: operation ?? "request",
    kind: "server",
    since,
    attributes: { "http.response.status_code": status, request_id, ...(code && { "error.type": code }) },
    is_failed: status >= 500,
    traceparent,
  })
}
