import {
  type Address,
  type Hex,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerializedEIP1559,
  toHex,
} from "viem"

/** What goes wrong between the service and its chain; can be changed during a run. */
export type Faults = {
  /** Every n-th transaction reaches the pool, and its sender gets no response. */
  lose_every: number
  /** One of n transactions, irregularly, is rejected with 503. */
  refuse_every: number
  /** Every second request for a receipt fails. */
  receipt_errors: boolean
  /** How far the provider lags behind the newest block. */
  lag_blocks: number
  /** Whether it returns a different hash for every block. */
  is_forked: boolean
  /** For 300 ms of every second, every request gets 429. */
  limits: boolean
  /** Its response to every request, as a JSON-RPC error with an HTTP status. */
  says_always: { status: number; code: number; message: string } | null
  /** Its response to every transaction, which is then not forwarded. */
  says_to_sends: string | null
  /** Whether it accepts every transaction and forwards none. */
  swallows: boolean
  /** It rejects transactions with a lower gas limit. */
  least_gas: number
}

/** The tip that every provider suggests, in wei: anvil's own suggestion follows what the test's wallets pay. */
export const advisedTip = 1_000_000_000n

export const noFaults: Faults = {
  lose_every: 0,
  refuse_every: 0,
  receipt_errors: false,
  lag_blocks: 0,
  is_forked: false,
  limits: false,
  says_always: null,
  says_to_sends: null,
  swallows: false,
  least_gas: 0,
}

export type ProviderProxy = {
  url: string
  faults: Faults
  /** Transactions that passed through, whatever became of them. */
  sent: { hash: Hex; sender: Address; to: Address | null; nonce: number }[]
  /** How many requests it received. */
  asked: number
  /** How often the newest block was requested, which begins each round of a worker. */
  looks: number
  /** How often each fault occurred. */
  struck: number
  stop(): Promise<void>
}

type Call = { jsonrpc: "2.0"; id: number; method: string; params?: unknown[] }

/**
 * A provider in front of anvil that enforces the rules of public pools, which anvil does not: a replacement raises
 * both fees by ten percent, a sender has at most sixteen transactions, and nonces ahead of a gap are rejected.
 * `onSend` sees every transaction before the pool does.
 */
export function startProxy(anvilUrl: string, onSend: (hash: Hex) => Promise<void>): ProviderProxy {
  const proxy: Omit<ProviderProxy, "url" | "stop"> = {
    faults: { ...noFaults },
    sent: [],
    asked: 0,
    looks: 0,
    struck: 0,
  }
  let sends = 0
  let receipts = 0
  // By sender and nonce, because anvil drops what costs less than the next block, and public pools do not.
  const taken = new Map<string, TransactionSerializedEIP1559>()

  async function answer(request: Request): Promise<Response> {
    const { faults } = proxy
    proxy.asked += 1
    if (faults.limits && performance.now() % 1_000 < 300) {
      proxy.struck += 1
      return new Response("slow down", { status: 429 })
    }
    const call = (await request.json()) as Call
    if (call.params?.[0] === "latest") proxy.looks += 1
    if (faults.says_always) {
      proxy.struck += 1
      const { status, code, message } = faults.says_always
      return refused(call, code, message, status)
    }
    if (call.method === "eth_sendRawTransaction") return await take(call)
    if (
      call.method === "eth_getTransactionReceipt" &&
      faults.receipt_errors &&
      scattered(receipts++) % 2 === 0
    ) {
      proxy.struck += 1
      return refused(call, -32603, "internal error")
    }
    if (call.method === "eth_maxPriorityFeePerGas")
      return Response.json({ ...call, result: toHex(advisedTip) })
    if (faults.lag_blocks > 0) return await answerLate(call, faults.lag_blocks)
    const said = await ask(anvilUrl, call)
    return Response.json(faults.is_forked ? otherFork(call, said) : said)
  }

  async function take(call: Call): Promise<Response> {
    const { faults } = proxy
    const raw = String(call.params?.[0]) as TransactionSerializedEIP1559
    const hash = keccak256(raw)
    await onSend(hash)
    sends += 1
    if (faults.refuse_every > 0 && scattered(sends) % faults.refuse_every === 0) {
      proxy.struck += 1
      return new Response("no", { status: 503 })
    }
    const sender = await recoverTransactionAddress({ serializedTransaction: raw })
    const { nonce = 0, to = null, gas = 0n } = parseTransaction(raw)
    const words =
      gas < faults.least_gas
        ? `intrinsic gas too low: gas ${gas}, minimum needed ${faults.least_gas}`
        : faults.says_to_sends
    if (words !== null || faults.swallows) proxy.struck += 1
    if (words !== null) return refused(call, -32000, words)
    if (faults.swallows) return Response.json({ ...call, result: hash })
    proxy.sent.push({ hash, sender, to, nonce })
    const place = `${sender} ${nonce}`
    const refusal = await poolRefusal(anvilUrl, sender, raw, taken.get(place))
    if (refusal) return refused(call, -32000, refusal)
    const said = (await ask(anvilUrl, call)) as { error?: unknown }
    if (!said.error) taken.set(place, raw)
    if (faults.lose_every > 0 && sends % faults.lose_every === 0) {
      proxy.struck += 1
      return new Response("", { status: 504 })
    }
    return Response.json(said)
  }

  /** A provider that does not know the newest blocks. */
  async function answerLate(call: Call, lag: number): Promise<Response> {
    proxy.struck += 1
    const head = BigInt(await result(anvilUrl, "eth_blockNumber", []))
    const known = head > BigInt(lag) ? head - BigInt(lag) : 0n
    const tag = `0x${known.toString(16)}`
    if (call.method === "eth_blockNumber") return Response.json({ ...call, result: tag })
    const params = (call.params ?? []).map((param) =>
      param === "latest" || param === "pending" ? tag : param,
    )
    if (call.method === "eth_getBlockByNumber" && BigInt(String(params[0])) > known)
      return Response.json({ ...call, result: null })
    const said = (await ask(anvilUrl, { ...call, params })) as { result?: { blockNumber?: Hex } }
    if (call.method === "eth_getTransactionReceipt" && BigInt(said.result?.blockNumber ?? 0) > known)
      return Response.json({ ...call, result: null })
    return Response.json(said)
  }

  function otherFork(call: Call, said: unknown): unknown {
    if (!call.method.startsWith("eth_getBlockBy")) return said
    proxy.struck += 1
    const { result: block } = said as { result: { hash: Hex; parentHash: Hex } | null }
    if (!block) return said
    return {
      ...call,
      result: { ...block, hash: keccak256(block.hash), parentHash: keccak256(block.parentHash) },
    }
  }

  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer })
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${server.port}`,
    stop: () => server.stop(true),
  })
}

/** Irregular numbers, the same in every run, that do not always hit the same sender. */
function scattered(count: number): number {
  return Math.imul(count, 2_654_435_761) >>> 20
}

async function ask(url: string, call: Call): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(call),
  })
  return await response.json()
}

async function result(url: string, method: string, params: unknown[]): Promise<Hex> {
  const said = await ask(url, { jsonrpc: "2.0", id: 1, method, params })
  return (said as { result: Hex }).result
}

function refused({ id }: Call, code: number, message: string, status = 200): Response {
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status })
}

type Pooled = { hash: Hex }
type PoolContent = Record<"pending" | "queued", Record<string, Record<string, Pooled>>>

const placesPerSender = 16

/** Why a public pool rejects a transaction; null if it accepts it. */
async function poolRefusal(
  url: string,
  sender: Address,
  raw: TransactionSerializedEIP1559,
  before: TransactionSerializedEIP1559 | undefined,
): Promise<string | null> {
  const wanted = parseTransaction(raw)
  const nonce = wanted.nonce ?? 0
  const used = Number(await result(url, "eth_getTransactionCount", [sender, "latest"]))
  if (nonce < used) return "nonce too low"
  const content = (await ask(url, { jsonrpc: "2.0", id: 1, method: "txpool_content", params: [] })) as {
    result: PoolContent
  }
  const pool = new Map<number, Pooled>()
  for (const part of [content.result.pending, content.result.queued])
    for (const [address, byNonce] of Object.entries(part))
      if (address.toLowerCase() === sender.toLowerCase())
        for (const [at, pooled] of Object.entries(byNonce)) pool.set(Number(at), pooled)
  const present = pool.get(nonce)
  if (present?.hash === keccak256(raw)) return "already known"
  if (before && before !== raw && !isRaised(parseTransaction(before), wanted))
    return "replacement transaction underpriced"
  if (present) return null
  if (pool.size >= placesPerSender) return "txpool is full: the sender has sixteen transactions"
  for (let below = used; below < nonce; below++)
    if (!pool.has(below)) return `nonce too high: ${below} is missing, gapped transactions are refused`
  return null
}

type Fees = { maxFeePerGas?: bigint | undefined; maxPriorityFeePerGas?: bigint | undefined }

function isRaised(before: Fees, wanted: Fees): boolean {
  const isMore = (one = 0n, other = 0n) => one * 10n >= other * 11n
  return (
    isMore(wanted.maxFeePerGas, before.maxFeePerGas) &&
    isMore(wanted.maxPriorityFeePerGas, before.maxPriorityFeePerGas)
  )
}
