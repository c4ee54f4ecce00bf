import { type Address, isAddressEqual } from "viem"
import type { AuthorizerEnd } from "../../platform/chain.ts"
import { factoryAbi } from "./contracts.generated.ts"
import type { Origin } from "./generations.ts"
import type { Rpc } from "./rpc.ts"
import type { BlockPlace } from "./state-at.ts"

/** How long an authorization lasts. */
export const authorizationSeconds = 30 * 60

/** A chain, and the address of `AUTHORIZER_KEY`; null if it is unset. */
type Authorizing = { rpc: Rpc; chain_id: number; authorizer_address: Address | null }

/**
 * Returns when the collections of a factory stop accepting this service's authorizations, as of the given block or the
 * newest; null if no end is set. Throws what the provider says.
 */
export async function authorizerEnd(
  { rpc, chain_id, authorizer_address: ours }: Authorizing,
  { factory, generation }: Origin,
  block?: BlockPlace,
): Promise<AuthorizerEnd | null> {
  const question = { address: factory, abi: factoryAbi, ...block } as const
  const [named, isPaused] = await Promise.all([
    rpc.readContract({ ...question, functionName: "authorizer" }),
    generation === 2 && rpc.readContract({ ...question, functionName: "paused" }),
  ])
  const place = `factory ${factory} of chain ${chain_id}`
  const outcome = "claims and transfers by people's own wallets are refused until"
  if (isPaused) return { at: alreadyOver, text: `${place} is paused: ${outcome} its admin calls resume` }
  if (ours === null) {
    const text = `AUTHORIZER_KEY is not set, and the authorizer of ${place} is ${named}: ${outcome} the key of that address is set`
    return { at: alreadyOver, text }
  }
  if (isAddressEqual(named, ours)) return null
  const text = `AUTHORIZER_KEY is the key of ${ours}, but the authorizer of ${place} is ${named}: ${outcome} the factory's admin calls setAuthorizer, or the key is corrected`
  if (generation === 1) return { at: alreadyOver, text }
  const [previous, until] = await rpc.readContract({ ...question, functionName: "previousAuthorizer" })
  return { at: isAddressEqual(previous, ours) ? new Date(Number(until) * 1_000) : alreadyOver, text }
}

/** An end in the past: nothing is accepted now. */
const alreadyOver = new Date(0)
