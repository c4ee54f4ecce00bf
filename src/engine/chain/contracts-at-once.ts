import type { Address } from "viem"
import { partsOf as inParts } from "../../platform/parts.ts"
import { saysTooManyContracts } from "./endpoint.ts"
import { createLearntSize } from "./learnt-size.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** Of how many contracts the providers of one chain answer with logs at once: they say so only by refusing more. */
export type ContractsAtOnce = {
  /** Contracts in parts of so many. */
  partsOf(contracts: readonly Address[]): Address[][]
  /** What is asked of contracts, in smaller parts where they are more than providers answer for. Throws `ChainUnreachable`. */
  ask<T>(contracts: Address[], question: (some: Address[]) => Promise<T[]>): Promise<T[]>
}

const mostAtOnce = 500

/** Begins with as many as most providers take. */
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
