import type { Address } from "viem"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { most } from "../../src/engine/chain/extremes.ts"
import { newestConfirmed, newestSince } from "../../src/engine/chain/headers.ts"
import { issuedOn } from "../../src/engine/chain/issued.ts"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { unlessReverted } from "../../src/engine/chain/rpc.ts"
import { tokenAt } from "../../src/engine/chain/token-at.ts"

type Token = { contract: Address; serial: bigint }
export type TokenState = Awaited<ReturnType<typeof tokenAt>>

/**
 * Reads a token at the confirmation depth; null if it was not issued by then. Newer blocks may be undone, and the
 * transactions of others are not watched. `seen` is a block that the chain has. Throws `ChainUnreachable`.
 */
export async function tokenAtDepth(chain: ConnectedChain, token: Token, seen: bigint) {
  const confirmed = await newestConfirmed(chain, seen)
  if (confirmed < 0n) return null
  return await tokenBy(chain, token, confirmed)
}

/**
 * Reads a token at the newest block; null if it is not issued there. Reads by number, so that a provider without that
 * block refuses. Throws `ChainUnreachable`.
 */
export async function tokenNow(chain: ConnectedChain, token: Token) {
  return await tokenBy(chain, token, await newestSince(chain.headers, 0n))
}

/** Reads a token at a block; null if it was not issued by then. Throws `ChainUnreachable`. */
async function tokenBy(chain: ConnectedChain, token: Token, blockNumber: bigint) {
  // If there is no contract, reading the token would look as if the provider were behind.
  if ((await issuedOn(chain, token.contract, blockNumber)) < token.serial) return null
  return await unlessReverted(() => tokenAt(chain, token, blockNumber), null)
}

/** Returns whether a token is claimed at the confirmation depth. */
export async function isClaimedAtDepth(chain: ConnectedChain, token: Token, seen: bigint): Promise<boolean> {
  const then = await tokenAtDepth(chain, token, seen)
  return then !== null && then.owner !== null
}

/**
 * Returns whether something is so of a token as long as a block that was seen stays in the chain. If nodes have pruned
 * that state, reads it at the confirmation depth.
 */
export async function isSoAsFinal(
  chain: ConnectedChain,
  token: Token,
  seen: bigint,
  isSo: (then: TokenState) => boolean,
): Promise<boolean> {
  const isSoIn = (then: TokenState | null) => then !== null && isSo(then)
  const block = most(seen, await chain.headers.finalHeight())
  const asked = await unlessForgotten(async () => isSoIn(await tokenBy(chain, token, block)))
  return asked ?? isSoIn(await tokenAtDepth(chain, token, seen))
}
