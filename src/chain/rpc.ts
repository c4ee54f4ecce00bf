import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  decodeErrorResult,
  defineChain,
  type Hex,
  isHex,
  type PublicClient,
  RpcRequestError,
  type Transport,
} from "viem"
import type { ChainConfig } from "../config.ts"
import { collectionAbi, factoryAbi } from "./contracts.generated.ts"

/** Reads of one chain, over all its configured providers. */
export type Rpc = PublicClient

export function createRpc(chain: ChainConfig, transport: Transport): Rpc {
  return createPublicClient({
    chain: defineChain({
      id: chain.chain_id,
      name: chain.name,
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
      rpcUrls: { default: { http: chain.rpc_urls } },
    }),
    transport,
    cacheTime: 0,
  })
}

/** No provider of the chain answers now. */
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

/** Asks the chain; answers, or throws `CallReverted` or `ChainUnreachable`, never with an RPC address in the text. */
export async function reach<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof ChainUnreachable || error instanceof CallReverted) throw error
    throw revertOf(error) ?? new ChainUnreachable(rawMessage(error))
  }
}

/** What the node itself said, lower case and without addresses of providers; viem's own wording is not to be trusted. */
export function rawMessage(error: unknown): string {
  const innermost = error instanceof BaseError ? error.walk() : error
  const said = innermost as { details?: unknown; message?: unknown } | null
  return String(said?.details || said?.message || innermost)
    .toLowerCase()
    .replaceAll(/https?:\/\/\S+/g, "(provider)")
    .slice(0, 300)
}

/** Whether no node said anything: the line failed, or the answer was none of JSON-RPC. */
export function isSilence(error: unknown): boolean {
  return !(error instanceof BaseError) || !error.walk((cause) => cause instanceof RpcRequestError)
}

function revertOf(error: unknown): CallReverted | null {
  if (!(error instanceof BaseError)) return null
  const revert = error.walk((cause) => cause instanceof ContractFunctionRevertedError)
  if (revert instanceof ContractFunctionRevertedError)
    return new CallReverted(revert.data?.errorName ?? revert.reason ?? "no reason")
  if (!rawMessage(error).includes("execution reverted")) return null
  return new CallReverted(reasonIn(error) ?? "no reason")
}

/** The name of the contracts' error in the bytes with which a call reverted. */
function reasonIn(error: BaseError): string | null {
  const answer = error.walk((cause) => isHex((cause as { data?: unknown }).data)) as { data: Hex } | null
  if (!answer) return null
  try {
    return decodeErrorResult({ abi: [...collectionAbi, ...factoryAbi], data: answer.data }).errorName
  } catch {
    return null
  }
}
