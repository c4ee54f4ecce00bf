import type { Address } from "viem"
import { partsOf as inParts } from "../../platform/parts.ts"
import { saysTooManyContracts } from "./endpoint.ts"
import { growth } from "./log-ranges.ts"
import { ChainUnreachable, reach } from "./rpc.ts"

/** Of how many contracts the providers of one chain answer with logs at once: they say so only by refusing more. */
export type ContractsAtOnce = {
  /** Contracts in parts of so many. */
  partsOf(contracts: readonly Address[]): Address[][]
  /** What is asked of contracts, in smaller parts where they are more than providers answer for. Throws `ChainUnreachable`. */
  ask<T>(contracts: Address[], question: (some: Address[]) => Promise<T[]>): Promise<T[]>
}

const mostAtOnce = 500

/** Begins with as many as most providers take; what is learnt of providers is kept while the process lives. */
export function createContractsAtOnce(): ContractsAtOnce {
  let size = mostAtOnce

  const partsOf = (contracts: readonly Address[]) => [...inParts(contracts, size)]

  async function ask<T>(contracts: Address[], question: (some: Address[]) => Promise<T[]>): Promise<T[]> {
    const asked = contracts.length
    try {
      const answer = await reach(() => question(contracts))
      if (asked === size) size = Math.min(size + Math.max(Math.floor(size / Number(growth)), 1), mostAtOnce)
      return answer
    } catch (error) {
      if (asked === 1 || !(error instanceof ChainUnreachable) || !saysTooManyContracts(error.message))
        throw error
    }
    size = Math.min(size, Math.floor(asked / 2))
    const answers: T[] = []
    for (const part of partsOf(contracts)) answers.push(...(await ask(part, question)))
    return answers
  }

  return { partsOf, ask }
}
