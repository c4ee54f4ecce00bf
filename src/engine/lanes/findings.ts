import { DatabaseUnavailable } from "../../db/database.ts"
import type { TransactionRow } from "../../db/schema.ts"
import { loggable } from "../../platform/log.ts"
import { least } from "../chain/extremes.ts"
import { ChainUnreachable } from "../chain/rpc.ts"
import type { HeldLane } from "./held-lane.ts"
import { LeaseLost } from "./leases.ts"

/** What a step of a lane's round found. The round joins the findings of its steps and acts on them. */
export type Findings = {
  /** Why the lane must stop until an operator has looked at it. Open transactions are still watched. */
  readonly halt: string | null
  /** Why nothing new is sent in this round, although nothing is wrong with the open transactions. */
  readonly pause: string | null
  /** What an operator should know about this round, most important first. */
  readonly notices: readonly string[]
  /** The lowest cost that a node refused as too high for one transaction, in wei. */
  readonly refused_cost: bigint | null
  /** The first error; the next round retries what failed. */
  readonly failure: Error | null
}

export const nothing: Findings = { halt: null, pause: null, notices: [], refused_cost: null, failure: null }

/** Returns a finding that an operator should know and that stops nothing. */
export function noticed(notice: string): Findings {
  return { ...nothing, notices: [notice] }
}

/** Joins findings. Of several halts, pauses or failures the first counts. */
export function join(...found: Findings[]): Findings {
  return found.reduce(
    (sum, each) => ({
      halt: sum.halt ?? each.halt,
      pause: sum.pause ?? each.pause,
      notices: [...sum.notices, ...each.notices],
      refused_cost: lesser(sum.refused_cost, each.refused_cost),
      failure: sum.failure ?? each.failure,
    }),
    nothing,
  )
}

function lesser(one: bigint | null, other: bigint | null): bigint | null {
  if (one === null || other === null) return one ?? other
  return least(one, other)
}

/** Runs a step's work for one transaction. A failure does not stop the other transactions. */
export async function attempt(
  lane: HeldLane,
  transaction: TransactionRow,
  work: () => Promise<Findings>,
): Promise<Findings> {
  try {
    return await work()
  } catch (error) {
    return failed(lane, transaction, error)
  }
}

/**
 * Returns the finding for an error with one transaction. Rethrows an error that means that the
 * lease or the database was lost.
 */
export function failed({ context }: HeldLane, { nonce, kind }: TransactionRow, error: unknown): Findings {
  if (error instanceof LeaseLost || error instanceof DatabaseUnavailable) throw error
  const { error: said } = loggable(error)
  if (!(error instanceof ChainUnreachable))
    return {
      ...noticed(`nonce ${nonce} (${kind}) could not be processed and is tried again: ${said}`),
      failure: error instanceof Error ? error : new Error(said),
    }
  context.log.debug({ nonce, ...loggable(error) }, "the chain is asked again in the next round")
  return { ...nothing, failure: error }
}
