import type { Queries } from "./database.ts"
import type { ChipRow, TapRow } from "./schema.ts"

/** One database transaction at work: how to query it, its time, and the request that caused it. */
export type Turn = {
  readonly tx: Queries
  readonly at: Date
  readonly request_id: string | null
  /** Tells a queue's workers, once this is durable, that there is work. A lost call costs a second. */
  readonly wake: (queue: string) => void
  /** Puts what happened into the feed of events, in this database transaction. */
  readonly tell: Tell
}

export type Tell = (turn: Turn, news: News) => Promise<void>

/**
 * What happened: an actor went from one state, null at its start, to another; a tap was recorded; a unit changed owner;
 * or a chip's wire said for the first time that it was opened.
 */
export type News = StepNews | TapNews | OwnerNews | TamperNews

export type StepNews = { machine: string; id: string; from: string | null; to: string }
export type TapNews = { tap: TapRow; collection_id: string | null }
type OwnerNews = { new_owner_of: string }
export type TamperNews = { opened: Pick<ChipRow, "chip_id" | "organization_id"> }
