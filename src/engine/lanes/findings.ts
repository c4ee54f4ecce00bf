import { DatabaseUnavailable } from "../../db/database.ts"
import type { TransactionRow } from "../../db/schema.ts"
import { loggable } from "../../platform/log.ts"
import { least } from "../chain/extremes.ts"
import { ChainUnreachable } from "../chain/rpc.ts"
import type { HeldLane } from "./held-lane.ts"
import { LeaseLost } from "./leases.ts"

/** What a step of a lane's round found. The round joins its steps' findings and acts on them. */
export type Findings = {
  /** Why the lane must stop until a person has looked at it. What is on its way is still watched. */
  readonly halt: string | null
  /** Why nothing new is sent in this round, although nothing is wrong with what is on its way. */
  readonly pause: string | null
  /** What a person should know of this round, most important first. */
  readonly notices: readonly string[]
  /** The least that a node found too much for one transaction, in wei. */
  readonly refused_cost: bigint | null
  /** The first thing that failed; the next round tries it again. */
  readonly failure: Error | null
}

export const nothing: Findings = { halt: null, pause: null, notices: [], refused_cost: null, failure: null }

/** Something that a person should know, and that stops nothing. */
export function noticed(notice: string): Findings {
  return { ...nothing, notices: [notice] }
}

/** Joins findings; of several reasons the first counts. */
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

/** Does a step's work for one transaction. A failure stops no other transaction. */
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

/** What went wrong with one transaction. Throws the error where it means that the lane or the database was lost. */
export function failed({ context }: HeldLane, { nonce, kind }: TransactionRow, error: unknown): Findings {
  if (error instanceof LeaseLost || error instanceof DatabaseUnavailable) throw error
  const { error: said } = loggable(error)
  if (!(error instanceof ChainUnreachable))
    return {
      ...noticed(`nonce ${nonce} (${kind}) cannot be moved on and is tried again: ${said}`),
      failure: error instanceof Error ? error : new Error(said),
    }
  context.log.debug({ nonce, ...loggable(error) }, "is asked again")
  return { ...nothing, failure: error }
}
