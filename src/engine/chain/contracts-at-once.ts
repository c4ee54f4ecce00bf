import type { Address } from "viem"
import { partsOf as inParts } from "../../platform/parts.ts"
import { saysTooManyContracts } from "./endpoint.ts"
import { createLearntSize } from "./learnt-size.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** How many contracts the providers of a chain accept in one request for logs. They reveal it only by refusing more. */
export type ContractsAtOnce = {
  /** Splits contracts into parts of that size. */
  partsOf(contracts: readonly Address[]): Address[][]
  /**
   * Asks the question, in smaller parts if it names more contracts than providers accept. Throws `ChainUnreachable`.
   */
  ask<T>(contracts: Address[], question: (some: Address[]) => Promise<T[]>): Promise<T[]>
}

const mostAtOnce = 500

/** Starts with the most that any request names, which most providers accept. */
export function createContractsAtOnce(): ContractsAtOnce {
  const size = createLearntSize(mostAtOnce)

  const partsOf = (contracts: readonly Address[]) => [...inParts(contracts, size.now())]

  async function ask<T>(contracts: Address[], question: (some: Address[]) => Promise<T[]>): Promise<T[]> {
    const asked = contracts.length
    try {
      const answer = await reach(() => question(contracts))
      size.wasAnswered(asked)
      return answer
    } catch (error) {
      if (asked === 1 || !(error instanceof ChainUnreachable) || !saysTooManyContracts(error.message))
        throw error
    }
    size.wasRefused(asked)
    const answers: T[] = []
    for (const part of partsOf(contracts)) answers.push(...(await ask(part, question)))
    return answers
  }

  return { partsOf, ask }
}
