import type { Queries } from "./database.ts"

/** One database transaction at work: what asks it, when it happens, and the request that caused it. */
export type Turn = {
  readonly tx: Queries
  readonly at: Date
  readonly request_id: string | null
  /** Tells the workers of a queue, once this is durable, that there is work. Losing the call costs a second. */
  readonly wake: (queue: string) => void
}
