import type { Database, Queries } from "./database.ts"
import type { ChipRow, TapRow } from "./schema.ts"

/** One database transaction at work: its queries, its time, and the request that caused it. */
export type Turn = {
  readonly tx: Queries
  /** For the few statements that differ. */
  readonly engine: Database["engine"]
  readonly at: Date
  readonly request_id: string | null
  /** Wakes a queue's workers once this transaction is durable. A lost call delays the work by a second. */
  readonly wake: (queue: string) => void
  /** Adds what happened to the event feed, in this database transaction. */
  readonly tell: Tell
}

export type Tell = (turn: Turn, news: News) => Promise<void>

/**
 * What happened: an actor changed state (`from` is null at its start), a tap was recorded, a unit changed owner, or a
 * chip's tamper wire was first read as opened.
 */
export type News = StepNews | TapNews | OwnerNews | TamperNews

export type StepNews = { machine: string; id: string; from: string | null; to: string }
export type TapNews = { tap: TapRow; collection_id: string | null }
type OwnerNews = { new_owner_of: string }
export type TamperNews = { opened: Pick<ChipRow, "chip_id" | "organization_id"> }
