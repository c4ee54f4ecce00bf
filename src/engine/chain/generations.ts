import { type Address, decodeFunctionResult, encodeFunctionData } from "viem"
import { collectionAbi, factoryAbi } from "./contracts.generated.ts"
import { ChainUnreachable, type Rpc, unlessReverted } from "./rpc.ts"

/** Which contracts a factory deploys: 1, those in `contracts/first/`; 2, those in `contracts/`. */
export type Generation = 1 | 2

/** The factory that deployed a collection. */
export type Origin = { factory: Address; generation: Generation }

/** The generations of a chain's contracts; each factory is asked once. */
export type Generations = {
  /** Returns the configured factory's generation; until the factory has responded, the presumed one, 2 by default. */
  known(): Generation
  /** Sets the generation that is presumed of the configured factory until it has responded. */
  presume(generation: Generation): void
  /** Throws `ChainUnreachable`. */
  ofFactory(factory: Address): Promise<Generation>
  /**
   * Returns the origin of a collection, which an earlier factory may have deployed, or of a factory
   * itself. Throws `ChainUnreachable`.
   */
  originOf(contract: Address): Promise<Origin>
}

export function createGenerations(rpc: Rpc, configured: Address): Generations {
  const ofFactories = new Map<Address, Generation>()
  const origins = new Map<Address, Origin>()
  let presumed: Generation = 2

  async function ofFactory(factory: Address): Promise<Generation> {
    const known = ofFactories.get(factory)
    if (known) return known
    const asked = await askFactory(rpc, factory)
    ofFactories.set(factory, asked)
    return asked
  }

  async function originOf(contract: Address): Promise<Origin> {
    const known = origins.get(contract)
    if (known) return known
    const named = await factoryOf(rpc, contract)
    // A reorganization may have removed the collection for now, so this is not remembered.
    if (named === null) return { factory: configured, generation: await ofFactory(configured) }
    const origin = { factory: named, generation: await ofFactory(named) }
    origins.set(contract, origin)
    return origin
  }

  return {
    known: () => ofFactories.get(configured) ?? presumed,
    presume(generation) {
      presumed = generation
    },
    ofFactory,
    originOf,
  }
}

/** Factories of the first generation lack the function `generation`, so the call reverts. */
async function askFactory(rpc: Rpc, factory: Address): Promise<Generation> {
  const call = { to: factory, data: encodeFunctionData({ abi: factoryAbi, functionName: "generation" }) }
  const answer = await unlessReverted(() => rpc.call(call), null)
  if (answer === null) return 1
  if (!answer.data) throw new ChainUnreachable(`there is no factory at ${factory} yet`)
  return 2
}

/** Returns the factory that a contract names; null if there is no contract now. */
async function factoryOf(rpc: Rpc, contract: Address): Promise<Address | null> {
  const question = { abi: collectionAbi, functionName: "factory" } as const
  const call = { to: contract, data: encodeFunctionData(question) }
  const answer = await unlessReverted(() => rpc.call(call), null)
  // The call reverts on a factory, which is its own origin.
  if (answer === null) return contract
  return answer.data ? decodeFunctionResult({ ...question, data: answer.data }) : null
}
