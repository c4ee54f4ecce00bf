import {
  AbiDecodingZeroDataError,
  BaseError,
  createPublicClient,
  decodeErrorResult,
  defineChain,
  isHex,
  type PublicClient,
  RpcRequestError,
  type Transport,
} from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"
import { collectionAbi, deskAbi, factoryAbi } from "./contracts.generated.ts"
import { firstCollectionAbi } from "./first-contracts.generated.ts"
import { isRevertText } from "./send-errors.ts"

/** Reads one chain through all its configured providers. */
export type Rpc = PublicClient

export function createRpc(chain: ChainConfig, transport: Transport): Rpc {
  return createPublicClient({
    chain: defineChain({
      id: chain.chain_id,
      name: chain.name,
      nativeCurrency: { name: chain.coin_symbol, symbol: chain.coin_symbol, decimals: chain.coin_decimals },
      rpcUrls: { default: { http: chain.rpc_urls } },
    }),
    transport,
    cacheTime: 0,
    ...onlyAsked,
  })
}

/** Keeps a client from fetching what a contract's error names, any URL or file, as of a provider that lies (EIP-3668). */
export const onlyAsked = { ccipRead: false } as const

/** No provider of the chain responds now. */
export class ChainUnreachable extends Error {
  override name = "ChainUnreachable"
}

/** The chain answered that a call would revert; `reason` is the contract's error, such as `AlreadyClaimed`. */
export class CallReverted extends Error {
  override name = "CallReverted"
  constructor(readonly reason: string) {
    super(`the call reverts with ${reason}`)
  }
}

/** Asks the chain. Throws `CallReverted` or `ChainUnreachable`, never with a provider URL in the message. */
export async function reach<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof ChainUnreachable || error instanceof CallReverted) throw error
    throw revertOf(error) ?? new ChainUnreachable(rawMessage(error))
  }
}

/** Like `reach`, but returns `otherwise` if the call reverts. */
export async function unlessReverted<T, U>(ask: () => Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await reach(ask)
  } catch (error) {
    if (error instanceof CallReverted) return otherwise
    throw error
  }
}

/**
 * Returns what the node itself said, in lower case and without provider URLs, because viem's rewording can be wrong.
 */
export function rawMessage(error: unknown): string {
  const innermost = error instanceof BaseError ? error.walk() : error
  if (innermost instanceof AbiDecodingZeroDataError) return noContract
  const said = innermost as { details?: unknown; message?: unknown; data?: unknown } | null
  const message = String(said?.details || said?.message || innermost)
  return [message, ...wordsIn(said?.data)]
    .join(": ")
    .toLowerCase()
    .replaceAll(/https?:\/\/\S+/g, "(provider)")
    .slice(0, 300)
}

const noContract =
  "there is no contract where there was one: a provider is behind, or a reorganization removed it"

/**
 * Returns the texts in an error's `data`, where Nethermind, Conflux, Tenderly and others say what is wrong, under a
 * message such as "invalid params"; most nodes put bytes there.
 */
export function wordsIn(data: unknown): string[] {
  const said = data && typeof data === "object" ? Object.values(data) : [data]
  return said.filter((each) => typeof each === "string" && each.includes(" "))
}

/** Returns whether a node says that a call reverts, by the code that geth and its forks use or in words. */
export function isRevert(refusal: RpcRequestError): boolean {
  return refusal.code === revertCode || isRevertText(rawMessage(refusal))
}

const revertCode = 3

/** viem takes every internal error of a node for a revert, so the node's own words decide. */
function revertOf(error: unknown): CallReverted | null {
  if (!(error instanceof BaseError)) return null
  const refusal = error.walk((cause) => cause instanceof RpcRequestError)
  if (!(refusal instanceof RpcRequestError) || !isRevert(refusal)) return null
  return new CallReverted(reasonIn(refusal) ?? "no reason")
}

const contractErrors = [...collectionAbi, ...factoryAbi, ...deskAbi, ...firstCollectionAbi] as const

/** Returns the name of the contract error in the bytes that a call reverted with. */
function reasonIn({ data }: RpcRequestError): string | null {
  const [bytes] = /0x[0-9a-f]*/i.exec(JSON.stringify(data) ?? "") ?? []
  if (!isHex(bytes)) return null
  try {
    return decodeErrorResult({ abi: contractErrors, data: bytes }).errorName
  } catch {
    return null
  }
}
