import type { TransactionRow } from "../../db/schema.ts"
import type { Context } from "../../platform/context.ts"
import type { Effect } from "../jobs/job.ts"

/** Records what became of a transaction, and which requests asked for it, in the log and as a span. */
export function noteStep(
  context: Context,
  step: { name: "allocate" | "confirm"; since: number; outcome: string },
  { id, lane_id, kind, nonce }: TransactionRow,
  members: Pick<Effect, "request_id">[],
): void {
  const fields = { lane_id, transaction_id: id, kind, nonce, request_ids: requestsOf(members) }
  context.log.info(fields, `the transaction is ${step.outcome}`)
  noteSpan(context, `${kind}.${step.name}`, step.since, { ...fields, outcome: step.outcome })
}

/** Records a send as a span only, because the same bytes may be sent often. */
export function traceSend(
  context: Context,
  since: number,
  { id, lane_id, kind, nonce }: TransactionRow,
  outcome: string,
): void {
  noteSpan(context, `${kind}.send`, since, { lane_id, transaction_id: id, kind, nonce, outcome })
}

/** Records what a chain's blocks said about an authorization. */
export function noteSettled(
  context: Context,
  since: number,
  { effect_id, request_id }: { effect_id: string; request_id: string | null },
  outcome: string,
): void {
  const request_ids = request_id ? [request_id] : []
  context.log.info({ effect_id, outcome, request_ids }, "the chain has settled the authorization")
  noteSpan(context, "watchAuthorization.settle", since, { effect_id, outcome, request_ids })
}

function requestsOf(members: Pick<Effect, "request_id">[]): string[] {
  return [...new Set(members.flatMap(({ request_id }) => request_id ?? []))]
}

function noteSpan(
  { tracing }: Context,
  name: string,
  since: number,
  attributes: Record<string, string | number | string[]>,
): void {
  tracing.record({ name, kind: "internal", since, attributes, is_failed: false, traceparent: null })
}
