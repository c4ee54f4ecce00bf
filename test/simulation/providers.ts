import type { Hex } from "viem"
import { headOf, readTransaction, type SimulatedChain } from "./chain/chain.ts"
import { answerRpc, isHashed, RpcRefusal, type View, wholeView } from "./chain/json-rpc.ts"
import type { ProviderMood } from "./faults.ts"
import { depths } from "./ground.ts"
import type { Said, Serve } from "./seams/line.ts"
import type { Stream } from "./streams.ts"

/** A provider of the chain, in some mood. */
export type Provider = {
  url: string
  mood: ProviderMood | "well"
  /** The least that it admits to know while its mood lasts. */
  known: number
  serve: Serve
}

/**
 * How many blocks a lagging provider is behind, and at most each of several nodes that share the requests to one URL.
 */
const lag = 5
const mostNodeLag = 3

/** `onSend` sees every transaction before the pool does. */
export function createProvider(
  url: string,
  chain: SimulatedChain,
  chance: Stream,
  onSend: (hash: Hex) => Promise<void>,
): Provider {
  const provider: Provider = { url, mood: "well", known: 0, serve }

  async function serve(body: unknown): Promise<Said> {
    const outage = outageOf(provider.mood, chance)
    if (outage) return outage
    const view = viewOf(provider, chain, chance)
    const answers = Array.isArray(body)
      ? await inOrder(body as RpcCall[], (call) => answer(call, view))
      : await answer(body as RpcCall, view)
    if (provider.mood === "lost_answers" && chance.happens(0.5)) return { status: 504, body: "" }
    return { status: 200, body: JSON.stringify(answers) }
  }

  async function answer({ id, method, params = [] }: RpcCall, view: View): Promise<object> {
    if (method === "eth_sendRawTransaction") {
      const { hash } = await readTransaction(params[0] as Hex)
      await onSend(hash)
      if (provider.mood === "swallows") return { jsonrpc: "2.0", id, result: hash }
    }
    const refusal = refusalOf(provider.mood, method, chance)
    if (refusal) return { jsonrpc: "2.0", id, error: refusal }
    if (provider.mood === "short_ranges" && method === "eth_getLogs" && isLong(params[0] as BlockRange))
      return { jsonrpc: "2.0", id, error: tooLong }
    if (provider.mood === "empty_answers" && mayBeMissing.includes(method) && chance.happens(0.5))
      return { jsonrpc: "2.0", id, result: null }
    const forgotten = provider.mood === "forgetful" ? await forgottenOf(chain, view, method, params) : null
    if (forgotten) return { jsonrpc: "2.0", id, error: chance.pick(forgotten) }
    try {
      return { jsonrpc: "2.0", id, result: await answerRpc(chain, view, method, params) }
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error
      const { code, message, data } = error
      return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } }
    }
  }
  return provider
}

type RpcCall = { id: number; method: string; params?: unknown[] }

async function inOrder(calls: RpcCall[], answer: (call: RpcCall) => Promise<object>): Promise<object[]> {
  const answers: object[] = []
  for (const call of calls) answers.push(await answer(call))
  return answers
}

function viewOf({ mood, known }: Provider, chain: SimulatedChain, chance: Stream): View {
  const whole = wholeView(chain)
  if (mood === "behind") return behind(whole, lag)
  if (mood === "many_nodes") return behind(whole, chance.below(mostNodeLag + 1))
  // Of several nodes that share the requests to one URL, some follow another fork, though never from below what is final.
  const isDivided = mood === "two_forks" && whole.head - known < depths.finality_depth
  const isElsewhere = mood === "other_fork" || (isDivided && chance.happens(0.5))
  return isElsewhere ? { known: Math.min(known, whole.known), head: whole.head } : whole
}

function behind({ head }: View, blocks: number): View {
  const height = Math.max(0, head - blocks)
  return { known: height, head: height }
}

/** Puts a provider into a mood, from the chain's current block on. */
export function setMood(provider: Provider, mood: Provider["mood"], chain: SimulatedChain): void {
  provider.mood = mood
  provider.known = Math.max(0, headOf(chain).number - 2)
}

/** A response that is not JSON-RPC's own. Real examples; some have a JSON-RPC body with an error status. */
function outageOf(mood: Provider["mood"], chance: Stream): Said | null {
  if (mood === "silent" && chance.happens(0.6)) return "silent"
  if (mood === "unavailable" && chance.happens(0.7)) return chance.pick(unavailable)
  if (mood === "limited" && chance.happens(0.7)) return chance.pick(limited)
  if (mood === "out_of_credit") return chance.pick(outOfCredit)
  return null
}

function bodyOf(code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } })
}

const unavailable: Said[] = [
  { status: 503, body: "<html><body>503 Service Temporarily Unavailable</body></html>" },
  { status: 502, body: "" },
  { status: 503, body: bodyOf(-32000, "no backends available for method") },
  { status: 200, body: "<html>maintenance</html>" },
]
const limited: Said[] = [
  { status: 429, body: "Too Many Requests" },
  { status: 429, body: bodyOf(429, "Your app has exceeded its compute units per second capacity") },
  { status: 200, body: bodyOf(-32005, "daily request count exceeded, request rate limited") },
]
const outOfCredit: Said[] = [
  { status: 402, body: bodyOf(-32001, "Payment required: the plan's monthly credits are used up") },
  { status: 403, body: bodyOf(-32052, "API key is not allowed to access blockchain") },
  { status: 401, body: bodyOf(-32001, "Unauthorized") },
]

function refusalOf(mood: Provider["mood"], method: string, chance: Stream) {
  if (mood === "internal_errors" && chance.happens(0.4)) return { code: -32603, message: "Internal error" }
  if (mood !== "strange_words" || !chance.happens(0.4)) return null
  const words = method === "eth_sendRawTransaction" ? strangeToSend : strangeToAsk
  return { code: -32000, message: chance.pick(words) }
}

/** Responses of nodes to a transaction that mean no more than "try again". */
const strangeToSend = [
  "txpool is full",
  "account limit exceeded: pooled 16 txs",
  "in-flight transaction limit reached for delegated accounts",
  "[0xabc]: rejected due to 0x being identified as a spammer",
  "INTERNAL_ERROR: could not replace existing tx",
  "backend is syncing",
]
const strangeToAsk = [
  "header not found",
  "missing trie node (path )",
  "request timed out",
  "backend is syncing",
]

/** The response of a node that keeps only recent state and logs; null if it still has what is requested. */
async function forgottenOf(chain: SimulatedChain, view: View, method: string, params: readonly unknown[]) {
  const isOld = (block: unknown) =>
    typeof block === "string" && block.startsWith("0x") && view.head - Number(block) >= depths.finality_depth
  const numberOf = async (hash: Hex) => {
    const block = await answerRpc(chain, view, "eth_getBlockByHash", [hash, false])
    return (block as { number: Hex } | null)?.number
  }
  if (asksForState.includes(method)) {
    const place = params[1]
    return isOld(isHashed(place) ? await numberOf(place.blockHash) : place) ? oldStates : null
  }
  if (method !== "eth_getLogs") return null
  const { fromBlock, blockHash } = params[0] as BlockRange & { blockHash?: Hex }
  return isOld(blockHash === undefined ? fromBlock : await numberOf(blockHash)) ? oldLogs : null
}

/** Methods whose second parameter is the block they read. */
const asksForState = ["eth_call", "eth_getTransactionCount", "eth_getBalance", "eth_getCode"]

/** In the words of geth, its path scheme, reth, Besu and Erigon. */
const oldStates = [
  { code: -32000, message: "missing trie node 3e7a (path ) state 0x3e7a is not available, not found" },
  { code: -32000, message: "historical state 3e7a is not available" },
  { code: -32000, message: "no state available for block 9" },
  { code: -32603, message: "World state unavailable" },
  { code: -32000, message: "state at block #9 is pruned" },
]
const oldLogs = [
  { code: 4444, message: "pruned history unavailable" },
  { code: -32000, message: "history has been pruned for this block" },
]

type BlockRange = { fromBlock?: Hex; toBlock?: Hex }

/** A single block by hash is never too long. */
function isLong({ fromBlock, toBlock }: BlockRange): boolean {
  return fromBlock !== undefined && toBlock !== undefined && Number(toBlock) - Number(fromBlock) > 1
}

const tooLong = { code: -32000, message: "requested too many blocks from 0 to 9, maximum is set to 2" }

/** Methods for which `null` is an answer. */
const mayBeMissing = [
  "eth_getTransactionReceipt",
  "eth_getBlockByNumber",
  "eth_getBlockByHash",
  "eth_getTransactionByHash",
]
