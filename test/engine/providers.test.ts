import { afterEach, describe, expect, test } from "bun:test"
import fc from "fast-check"
import {
  type Address,
  createPublicClient,
  encodeErrorResult,
  http,
  type PublicClient,
  parseAbi,
  zeroAddress,
} from "viem"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { surelyHeld } from "../../src/engine/chain/headers.ts"
import { createProviders, type Timing } from "../../src/engine/chain/providers.ts"
import { CallReverted, ChainUnreachable, createRpc, reach } from "../../src/engine/chain/rpc.ts"
import type { ChainConfig } from "../../src/platform/chain-settings.ts"
import { createPlaces, type Places } from "../../src/platform/places.ts"

type Call = { id: number; method: string; params?: unknown[] }
type FakeProvider = { url: string; asked: Call[]; answer: (call: Call) => Response | Promise<Response> }

const servers: Bun.Server<undefined>[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true)
})

const says = (result: unknown) => (call: Call) => Response.json({ jsonrpc: "2.0", id: call.id, result })
const refuses =
  (code: number, message: string, status = 200, data?: unknown) =>
  (call: Call) =>
    Response.json({ jsonrpc: "2.0", id: call.id, error: { code, message, data } }, { status })
const usedUp = refuses(429, "monthly capacity limit exceeded", 429)
const fails = (status: number) => () => new Response("", { status })
const isSilent = () => new Promise<Response>(() => {})

function startProvider(answer: FakeProvider["answer"]): FakeProvider {
  const provider: FakeProvider = { url: "", asked: [], answer }
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const call = (await request.json()) as Call
      provider.asked.push(call)
      return await provider.answer(call)
    },
  })
  servers.push(server)
  provider.url = `http://127.0.0.1:${server.port}`
  return provider
}

type Options = Partial<Timing> & {
  send_url?: string
  places?: Places
  block_time_seconds?: number
  finality_depth?: number
}

function clientOf(
  providers: FakeProvider[],
  { send_url, places, block_time_seconds = 1, finality_depth = 65, ...timing }: Options = {},
) {
  const { transport, ...rest } = createProviders(
    {
      rpc_urls: providers.map(({ url }) => url),
      send_url: send_url ?? null,
      block_time_seconds,
      finality_depth,
    },
    { timeout_milliseconds: 60_000, ...timing },
    places,
  )
  return { client: createPublicClient({ transport, cacheTime: 0 }), ...rest }
}

/** Each is a separate request, unlike the block number. */
const gasPrice = (client: PublicClient) => client.request({ method: "eth_gasPrice" })

const logsToBlock8 = (client: PublicClient) =>
  client.request({ method: "eth_getLogs", params: [{ fromBlock: "0x4", toBlock: "0x8" }] })

/** A clock that advances when it is told to. */
function startClock() {
  const clock = { milliseconds: 1_000_000, now: () => clock.milliseconds }
  return clock
}

describe("the next provider is asked if the first one's response is no answer:", () => {
  const endless = () => new Response(new ReadableStream({ start: (body) => body.enqueue('{"jsonrpc":') }))
  const noAnswers: [what: string, answer: FakeProvider["answer"]][] = [
    ["the status 500", fails(500)],
    ["a response that never ends", endless],
    ["an HTML page", () => new Response("<html>down for maintenance</html>")],
    ["an empty body", () => new Response("")],
    ["JSON that is not a JSON-RPC response", () => Response.json({ ok: true })],
    ["null", () => Response.json(null)],
    ["a JSON-RPC error with status 402", refuses(-32_000, "payment required", 402)],
    ["a JSON-RPC error with status 403", refuses(-32_001, "inactive app", 403)],
    ["a JSON-RPC error with status 429", refuses(-32_007, "15/second request limit reached", 429)],
    ["a JSON-RPC error with status 503", refuses(-32_011, "no backends available for method", 503)],
    ["a pool error with status 500", refuses(-32_000, "nonce too low", 500)],
    ["a revert with status 503", refuses(3, "execution reverted", 503)],
    ["a rate limit with status 200", refuses(-32_007, "15/second request limit reached")],
    ["a full pool", refuses(-32_000, "txpool is full")],
    ["-32601", refuses(-32_601, "the method does not exist")],
    ["-32603", refuses(-32_603, "internal error")],
    ["header not found", refuses(-32_000, "header not found")],
    ["missing trie node", refuses(-32_000, "missing trie node 5f (path )")],
    ["a plan without the method", refuses(35, "method is not available on freetier")],
    ["an error without a message", () => Response.json({ error: {} })],
    ["an error that is a string", () => Response.json({ error: "forbidden" })],
  ]
  for (const [what, answer] of noAnswers)
    test(what, async () => {
      const [broken, good] = [startProvider(answer), startProvider(says("0x7"))]
      expect(await clientOf([broken, good]).client.getBlockNumber()).toBe(7n)
    })

  test("the status 500 with a body that never ends, of which only a little is read", async () => {
    const page = new Uint8Array(1_024 * 1_024).fill(32)
    const pages = () => new ReadableStream({ pull: (body) => body.enqueue(page) })
    const broken = startProvider(() => new Response(pages(), { status: 500 }))
    const answer = await clientOf([broken], { timeout_milliseconds: 2_000 })
      .client.getBlockNumber()
      .catch((error) => error)
    expect(answer.details).toStartWith("HTTP 500: ")
  })

  const status = fc.integer({ min: 400, max: 599 })
  const code = fc.integer({ min: -33_000, max: 5_000 }).filter((number) => number !== 3)
  const riddle = fc
    .array(fc.constantFrom(..."bcdfghjklmnpqrstvwxz "), { minLength: 1, maxLength: 40 })
    .map((letters) => letters.join(""))

  test("any message with any status of 400 or above", async () => {
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    await fc.assert(
      fc.asyncProperty(status, code, fc.string(), async (httpStatus, rpcCode, words) => {
        broken.answer = refuses(rpcCode, words, httpStatus)
        expect(await clientOf([broken, good]).client.getBlockNumber()).toBe(7n)
      }),
      { numRuns: 60 },
    )
  })

  test("an unknown message with any code", async () => {
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    await fc.assert(
      fc.asyncProperty(code, riddle, async (rpcCode, words) => {
        broken.answer = refuses(rpcCode, words)
        expect(await clientOf([broken, good]).client.getBlockNumber()).toBe(7n)
      }),
      { numRuns: 60 },
    )
  })
})

describe("a provider that is slow", () => {
  const slowly = (milliseconds: number, result: unknown) => async (call: Call) => {
    await Bun.sleep(milliseconds)
    return says(result)(call)
  }

  test("is not waited for: the next one is asked in parallel", async () => {
    const [silent, good] = [startProvider(isSilent), startProvider(says("0x7"))]
    const { client } = clientOf([silent, good], { timeout_milliseconds: 60_000, patience_milliseconds: 10 })
    expect(await client.getBlockNumber()).toBe(7n)
  })

  test("is not waited for if all are asked", async () => {
    const [silent, good] = [startProvider(isSilent), startProvider(says({ hash: "0x01" }))]
    const providers = clientOf([silent, good], { timeout_milliseconds: 60_000, patience_milliseconds: 10 })
    expect(await providers.blockHashes(5n)).toEqual(["0x01"])
  })

  test("is waited for if no other one answers a request to all", async () => {
    const [slow, broken] = [startProvider(slowly(60, { hash: "0x01" })), startProvider(fails(500))]
    expect(await clientOf([slow, broken], { patience_milliseconds: 10 }).blockHashes(5n)).toEqual(["0x01"])
  })

  test("delays no verdict on a raw transaction", async () => {
    const [silent, full] = [startProvider(isSilent), startProvider(refuses(-32_000, "txpool is full"))]
    const { send } = clientOf([silent, full], { timeout_milliseconds: 60_000, patience_milliseconds: 10 })
    expect(await send("0x02abcd")).toEqual({ outcome: "wait", said: "txpool is full" })
  })

  test("is asked last from then on, until it responds", async () => {
    const order: string[] = []
    const isOver = Promise.withResolvers<void>()
    const slow = startProvider(async (call) => {
      order.push("slow")
      await isOver.promise
      return says("0x8")(call)
    })
    const quick = startProvider((call) => {
      order.push("quick")
      return says("0x7")(call)
    })
    // So long that the quick one never exceeds it, however busy the machine is.
    const { client, health } = clientOf([slow, quick], { patience_milliseconds: 1_500 })
    const askedMeanwhile = async () => {
      order.length = 0
      await client.getBlockNumber()
      return [...order]
    }
    expect(await askedMeanwhile()).toEqual(["slow", "quick"])
    expect(await askedMeanwhile()).toEqual(["quick"])
    expect(await askedMeanwhile()).toEqual(["quick"])
    isOver.resolve()
    await until(() => health().every(({ state }) => state === "healthy"))
    expect(await askedMeanwhile()).toEqual(["slow"])
  })

  test("is still listened to if the next one fails or is slower", async () => {
    for (const other of [fails(500), isSilent]) {
      const second = startProvider(other)
      const slow = startProvider(async (call) => {
        await until(() => second.asked.length > 0)
        await Bun.sleep(50)
        return says("0x7")(call)
      })
      const { client } = clientOf([slow, second], { patience_milliseconds: 10 })
      expect(await client.getBlockNumber()).toBe(7n)
      expect(second.asked).toHaveLength(1)
    }
  })

  test("is asked alone while it responds in time", async () => {
    const [quick, second] = [startProvider(says("0x7")), startProvider(says("0x7"))]
    const { client } = clientOf([quick, second], {
      timeout_milliseconds: 60_000,
      patience_milliseconds: 60_000,
    })
    for (let round = 0; round < 20; round++) await client.getBlockNumber()
    expect(second.asked).toEqual([])
  })
})

describe("a provider with more requests than it may have at once", () => {
  test("gets the rest once it has responded", async () => {
    const isOver = Promise.withResolvers<void>()
    const slow = startProvider(async (call) => {
      await isOver.promise
      return says("0x7")(call)
    })
    const quick = startProvider(says("0x8"))
    const places = createPlaces(12)
    const asked = Array.from({ length: 20 }, () => gasPrice(clientOf([slow], { places }).client))
    await until(() => slow.asked.length === 6)
    expect(await gasPrice(clientOf([quick], { places }).client)).toBe("0x8")
    expect(slow.asked).toHaveLength(6)
    isOver.resolve()
    expect(await Promise.all(asked)).toEqual(Array(20).fill("0x7"))
  })

  test("that is silent fails within the timeout", async () => {
    const silent = startProvider(isSilent)
    const { client } = clientOf([silent], { timeout_milliseconds: 50, places: createPlaces(2) })
    const asked = Array.from({ length: 8 }, () => reach(() => gasPrice(client)))
    for (const ended of await Promise.allSettled(asked))
      expect(ended).toMatchObject({ status: "rejected", reason: expect.any(ChainUnreachable) })
    expect(silent.asked.length).toBeLessThan(8)
  })
})

describe("a known answer is returned, and does not count against the provider:", () => {
  const answers: [what: string, answer: FakeProvider["answer"], words: string][] = [
    ["a revert by its code", refuses(3, "something of the contract"), "something of the contract"],
    ["a revert by its message", refuses(-32_000, "execution reverted"), "execution reverted"],
    ["a revert from Nethermind", refuses(-32_015, "VM execution error."), "VM execution error."],
  ]
  const blockNumber = (client: PublicClient) => client.getBlockNumber()
  const isPassedOn = async (
    answer: FakeProvider["answer"],
    words: string,
    ask: (client: PublicClient) => Promise<unknown>,
  ) => {
    const [first, second] = [startProvider(answer), startProvider(says("0x7"))]
    const { client, health } = clientOf([first, second])
    for (let round = 0; round < 8; round++) await expect(ask(client)).rejects.toThrow(words)
    expect(second.asked).toEqual([])
    expect(health()[0]).toEqual({ number: 1, state: "healthy", troubled_seconds: 0, said: null })
  }
  for (const [what, answer, words] of answers) test(what, () => isPassedOn(answer, words, blockNumber))

  test("a pool's response to a raw transaction", () =>
    isPassedOn(refuses(-32_603, "nonce too low"), "nonce too low", (client) =>
      client.sendRawTransaction({ serializedTransaction: "0x02abcd" }),
    ))
})

describe("an error about sending a transaction is no answer to a call:", () => {
  test.each([
    // Nodes of OP Stack chains based on reth, in 2026, and geth's first release with that limit.
    ["eth_estimateGas", "intrinsic gas too high"],
    ["eth_call", "err: transaction gas limit too high (cap: 16777216, tx: 50000000) (supplied gas 50000000)"],
  ])("%s, to which the first one says “%s”, is repeated at the next one", async (method, words) => {
    const [first, second] = [startProvider(refuses(-32_000, words)), startProvider(says("0x7"))]
    const { client, health } = clientOf([first, second])
    expect(await client.request({ method, params: [] } as never)).toBe("0x7" as never)
    expect(health()[0]).toMatchObject({ state: "resting", said: words.toLowerCase() })
  })
})

describe("a read of a contract", () => {
  const token = {
    address: `0x${"11".repeat(20)}` as Address,
    abi: collectionAbi,
    functionName: "ownerOf",
  } as const

  test("that ends in an internal error of the node is not taken for a revert", async () => {
    const { client } = clientOf([startProvider(refuses(-32_603, "internal error"))])
    const asked = reach(() => client.readContract({ ...token, args: [1n] }))
    await expect(asked).rejects.toThrow(new ChainUnreachable("internal error"))
  })

  test("that returns nothing is explained in words for operators", async () => {
    const { client } = clientOf([startProvider(says("0x"))])
    const asked = reach(() => client.readContract({ ...token, args: [1n] }))
    await expect(asked).rejects.toThrow(
      new ChainUnreachable(
        "there is no contract where there was one: a provider is behind, or a reorganization removed it",
      ),
    )
  })

  test.each([
    ["geth", 3, "execution reverted", ""],
    ["besu", -32_000, "Execution reverted", ""],
    ["nethermind", -32_015, "VM execution error.", "Reverted "],
  ])("that reverts on %s names the contract's error", async (_client, code, words, before) => {
    const bytes = encodeErrorResult({ abi: collectionAbi, errorName: "NotIssued", args: [1n] })
    const { client } = clientOf([startProvider(refuses(code, words, 200, `${before}${bytes}`))])
    const asked = reach(() => client.readContract({ ...token, args: [1n] }))
    await expect(asked).rejects.toEqual(new CallReverted("NotIssued"))
  })
})

describe("a provider that fails", () => {
  test("is asked last, for twice as long each time", async () => {
    const clock = startClock()
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    const { client } = clientOf([broken, good], { now: clock.now })
    const askedAfter: number[] = []
    for (const end = clock.milliseconds + 20_000; clock.milliseconds < end; clock.milliseconds += 500) {
      const before = broken.asked.filter(({ method }) => method === "eth_getBlockByNumber").length
      await client.getBlock().catch(() => {})
      if (broken.asked.length > before) askedAfter.push(clock.milliseconds - 1_000_000)
    }
    expect(askedAfter).toEqual([0, 1_000, 3_000, 7_000, 15_000])
  })

  test("is still asked if no other one answers", async () => {
    const [one, other] = [startProvider(fails(500)), startProvider(fails(500))]
    const { client } = clientOf([one, other])
    await client.getBlockNumber().catch(() => {})
    one.answer = says("0x7")
    expect(await client.getBlockNumber()).toBe(7n)
  })

  test("is still asked, where all are, if the others throttle", async () => {
    const [back, limited] = [startProvider(fails(500)), startProvider(fails(429))]
    const { client, askAll } = clientOf([back, limited])
    await client.getBlockNumber().catch(() => {})
    back.answer = says("0x7")
    expect(await askAll({ method: "eth_blockNumber" })).toEqual(["0x7"])
  })

  test("counts as healthy again as soon as it answers any request", async () => {
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    const { client, rank, health } = clientOf([broken, good])
    await client.getBlockNumber()
    broken.answer = says("0x8")
    expect(health()[0]).toMatchObject({ state: "resting", said: "http 500: " })
    await rank()
    expect(await client.getBlockNumber()).toBe(8n)
  })

  test("counts as failed once if many requests failed at the same time", async () => {
    const clock = startClock()
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    const { client, health } = clientOf([broken, good], { now: clock.now })
    await Promise.all(Array.from({ length: 20 }, () => client.getBlockNumber()))
    clock.milliseconds += 1_000
    expect(health()[0]?.state).toBe("healthy")
  })

  test("with silence is not waited for again if all are asked", async () => {
    const [silent, good] = [startProvider(isSilent), startProvider(says({ hash: "0x01" }))]
    const { blockHashes, health } = clientOf([silent, good])
    expect(await blockHashes(5n)).toEqual(["0x01"])
    await until(() => health()[0]?.state === "resting")
    expect(await blockHashes(5n)).toEqual(["0x01"])
    expect(silent.asked).toHaveLength(1)
  })

  test("for an hour is gone: its vote is no longer needed, and that is reported", async () => {
    const clock = startClock()
    const [silent, good] = [startProvider(fails(502)), startProvider(says("0x7"))]
    const { client, health, voices } = clientOf([silent, good], { now: clock.now })
    await client.getBlockNumber()
    clock.milliseconds += 3_599_000
    expect(voices()).toBe(2)
    clock.milliseconds += 1_000
    expect(voices()).toBe(1)
    expect(health()[0]).toEqual({ number: 1, state: "gone", troubled_seconds: 3_600, said: "http 502: " })
  })

  test("only for what it does not know is not suspended, and is gone if it knows nothing for an hour", async () => {
    const clock = startClock()
    for (const [code, words] of [
      [-32_601, "the method does not exist/is not available"],
      [-32_602, "too many arguments, want at most 1"],
      [-32_004, "method not supported"],
      [-39_001, "unknown block"],
    ] as const) {
      const [lesser, good] = [startProvider(refuses(code, words)), startProvider(says("0x7"))]
      const { client, health, voices } = clientOf([lesser, good], { now: clock.now })
      for (let time = 0; time < 3; time++) expect(await client.getBlockNumber()).toBe(7n)
      expect(lesser.asked).toHaveLength(3)
      expect(health()[0]).toMatchObject({ state: "healthy", said: words })
      clock.milliseconds += 3_600_000
      expect(voices()).toBe(1)
      lesser.answer = says("0x8")
      expect([await client.getBlockNumber(), voices()]).toEqual([8n, 2])
    }
  })

  test("with an exhausted quota is gone after an hour, too", async () => {
    const clock = startClock()
    const providers = [
      startProvider(refuses(-32_000, "daily request limit reached")),
      startProvider(says("0x7")),
    ]
    const { client, voices } = clientOf(providers, { now: clock.now })
    for (let quarter = 0; quarter < 5; quarter++) {
      await client.getBlockNumber()
      clock.milliseconds += 900_000
    }
    expect(voices()).toBe(1)
  })

  test("counts again when it is back", async () => {
    const clock = startClock()
    const [back, good] = [startProvider(fails(502)), startProvider(says("0x7"))]
    const { client, rank, voices } = clientOf([back, good], { now: clock.now })
    await client.getBlockNumber()
    clock.milliseconds += 3_600_000
    back.answer = says("0x7")
    await rank()
    expect(voices()).toBe(2)
  })
})

describe("rate limiting", () => {
  test.each([
    ["the status 429", fails(429)],
    ["the code -32005", refuses(-32_005, "limit exceeded")],
    ["words", refuses(-32_000, "You've exceeded the RPS limit available on the current plan")],
  ])("in %s: the provider is left alone for a while", async (_what, answer) => {
    const limited = startProvider(answer)
    const { client } = clientOf([limited])
    for (let round = 0; round < 5; round++) await client.getBlockNumber().catch(() => {})
    expect(limited.asked).toHaveLength(1)
  })

  test.each([
    "query returned more than 10000 results. Try with this block range [0x1, 0x2]",
    "query returned more than 10000 results",
    "requested range exceeds limit",
    "range 1000000 exceeds limit of 10000",
    "Requested block range exceeds maximum RPC range limit",
    "query exceeds max block range 100000",
    "query exceeds max results 20000, retry with the range 23879634-23879696",
    "eth_getLogs is limited to a 10,000 range",
    "eth_getLogs is limited to 0 - 10000 blocks range",
    "eth_getLogs range is too large, max is 1k blocks",
    "ranges over 10000 blocks are not supported on freetier",
    "range 9009594 is bigger than range limit 2000",
    "query block range exceeds server limit, narrow your filter: 1000",
    "query returns too many logs, narrow your filter: 20000",
    "Too many logs requested. Max logs per response is 20000.",
    "logs matched by query exceeds limit of 10000",
    "block range is too wide",
    "exceed maximum block range: 5000",
    "Max range: 800",
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range",
    "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.",
    "requested too many blocks from 50331648 to 51380224, maximum is set to 2048",
    "maximum [from, to] blocks distance: 2000",
    "too wide blocks range, the limit is 100",
    "query returned more than allowed number of logs, try with smaller block range",
    "GetLogs query must be smaller than size 1024",
    "please limit the query to at most 1000 blocks",
    "backend response too large",
    "query timeout exceeded",
  ])("is not what “%s” means for logs, though the code is the same", async (words) => {
    const wide = startProvider(refuses(-32_005, words))
    const { client, health } = clientOf([wide])
    for (let round = 0; round < 5; round++) await client.getBlockNumber().catch(() => {})
    expect(wide.asked).toHaveLength(5)
    expect(health()[0]?.state).toBe("healthy")
  })

  test.each([
    "Query returned more than 50000 results. Try with this block range [0x1000000, 0x1080000].",
    "requested block range 16777217 exceeds the limit of 200; narrow your fromBlock/toBlock",
  ])(
    "nor is it what “%s” means in the data of an error, where Nethermind puts its message",
    async (words) => {
      const wide = startProvider(refuses(-32_602, "invalid params", 200, words))
      const { client, health } = clientOf([wide])
      await expect(reach(() => gasPrice(client))).rejects.toThrow(words.toLowerCase())
      expect(health()[0]).toMatchObject({ state: "healthy", troubled_seconds: 0, said: null })
    },
  )

  test.each([200, 400])(
    "nor is it what such a message means in the data of an error with status %d, where Tenderly puts it next to an ID",
    async (status) => {
      const words = "range 9009594 is bigger than range limit 2000"
      const data = { error_id: "4ed94073-0317-4648-a167-107fba5f44b3", payload: words }
      const wide = startProvider(refuses(-32_602, "invalid params", status, data))
      const { client, health } = clientOf([wide])
      await expect(reach(() => gasPrice(client))).rejects.toThrow(words)
      expect(health()[0]).toMatchObject({ state: "healthy", troubled_seconds: 0, said: null })
    },
  )

  test.each([400, 429])(
    "is not what such a message means with status %d, nor is it a failure",
    async (status) => {
      const words = "You can make eth_getLogs requests with up to a 10 block range."
      const wide = startProvider(refuses(-32_600, words, status))
      const { client, health } = clientOf([wide])
      await client.getBlockNumber().catch(() => {})
      expect(health()[0]?.state).toBe("healthy")
    },
  )
})

describe("several providers", () => {
  test("one that lags more than three blocks is asked after the others", async () => {
    const [behind, ahead] = [startProvider(says("0x3")), startProvider(says("0x8"))]
    const { client, rank, health } = clientOf([behind, ahead])
    expect(await client.getBlockNumber()).toBe(3n)
    await rank()
    expect(await client.getBlockNumber()).toBe(8n)
    expect(health().map(({ state }) => state)).toEqual(["behind", "healthy"])
  })

  test("are equal if blocks are fast and one lags by some blocks, which is only a moment", async () => {
    const block_time_seconds = 0.25
    for (const [head, state] of [
      ["0x70", "healthy"],
      ["0x6f", "behind"],
    ] as const) {
      const providers = [startProvider(says(head)), startProvider(says("0x80"))]
      const { rank, health } = clientOf(providers, { block_time_seconds })
      await rank()
      expect(health()[0]?.state).toBe(state)
    }
  })

  test("do not count as equal if one may lack what counts as confirmed by all, however fast blocks are", async () => {
    for (const block_time_seconds of [12, 1, 0.25, 0.1])
      for (const finality_depth of [1, 30]) {
        const best = 0x100n + surelyHeld({ finality_depth, block_time_seconds })
        const providers = [startProvider(says("0x100")), startProvider(says(`0x${best.toString(16)}`))]
        const { rank, health } = clientOf(providers, { block_time_seconds, finality_depth })
        await rank()
        expect(health()[0]?.state).toBe("behind")
      }
  })

  test("are ranked from time to time if more than the newest block is requested", async () => {
    const clock = startClock()
    const [one, other] = [startProvider(says("0x7")), startProvider(says("0x7"))]
    const { client } = clientOf([one, other], { now: clock.now })
    for (let second = 0; second < 60; second++) {
      clock.milliseconds += 1_000
      await client.getBlock().catch(() => {})
    }
    expect(other.asked).toEqual([])
    await client.getChainId()
    await until(() => other.asked.length > 0)
    expect(other.asked.map(({ method }) => method)).toEqual(["eth_blockNumber"])
  })

  test("are ranked some blocks apart for repeated requests", async () => {
    const clock = startClock()
    const [one, other] = [startProvider(says("0x7")), startProvider(says("0x7"))]
    const { rank, rankWhenDue } = clientOf([one, other], { now: clock.now })
    for (let second = 0; second < 60; second++) {
      clock.milliseconds += 1_000
      const before = other.asked.length
      for (let time = 0; time < 4; time++) rankWhenDue()
      // The round that is in progress.
      if (second % 4 === 3) await rank()
      expect(other.asked.length - before).toBe(second % 4 === 3 ? 1 : 0)
    }
  })

  test("one that answers a request is not outvoted by those that do not", async () => {
    for (const [code, words, isOfAll] of [
      [-32_600, "you can make eth_getLogs requests with up to a 10 block range", true],
      // Another provider may know it, so a request to all has to wait for that one.
      [-32_602, "too many arguments, want at most 1", false],
    ] as const) {
      const { client, askAll } = clientOf([usedUp, fails(500), refuses(code, words)].map(startProvider))
      for (let round = 0; round < 3; round++) {
        await expect(reach(() => gasPrice(client))).rejects.toThrow(words.toLowerCase())
        const said = isOfAll ? words.toLowerCase() : /monthly capacity|http 500/
        await expect(reach(() => askAll({ method: "eth_gasPrice" }))).rejects.toThrow(said)
      }
    }
  })

  test("one that has pruned a state does not speak for a busy one that may have it", async () => {
    const { client } = clientOf([usedUp, refuses(-32_000, "missing trie node 5f (path )")].map(startProvider))
    await expect(reach(() => gasPrice(client))).rejects.toThrow("monthly capacity limit exceeded")
  })

  test("one that lacks the last block of a range is not asked for its logs, of which it would leave out some", async () => {
    const at = (head: string) => (call: Call) => says(call.method === "eth_getLogs" ? [] : head)(call)
    const [ahead, behind] = [startProvider(fails(503)), startProvider(at("0x7"))]
    const { client } = clientOf([ahead, behind])
    await expect(reach(() => logsToBlock8(client))).rejects.toThrow("block 8 could not be found")
    expect(behind.asked.map(({ method }) => method)).toEqual(["eth_blockNumber"])
    ahead.answer = at("0x8")
    expect(await logsToBlock8(client)).toEqual([])
  })

  test("one that names no block as its newest is not asked for logs either, and the error says what it answered", async () => {
    for (const answer of [null, "0xzz", "0x", 7]) {
      const { client } = clientOf([says(answer), says(answer)].map(startProvider))
      const words = `answers eth_blocknumber with ${JSON.stringify(answer)}`
      await expect(reach(() => logsToBlock8(client))).rejects.toThrow(words)
    }
  })

  test("one that denies access for now is skipped for the next, whatever it calls that", async () => {
    for (const words of [
      "your IP is banned",
      "eth_gasPrice is not permitted on your plan",
      "not authorized to send",
    ]) {
      const { client } = clientOf([refuses(-32_000, words), says("0x10")].map(startProvider))
      expect(await gasPrice(client)).toBe("0x10")
    }
  })

  test("a block's hash is requested from all of them, and one that does not have the block yet returns null", async () => {
    const answers = [says({ hash: "0x01" }), says(null), fails(500)]
    expect(await clientOf(answers.map(startProvider)).blockHashes(5n)).toEqual(["0x01", null])
  })
})

describe("a raw transaction", () => {
  const raw = "0x02abcd"
  const taken = says(`0x${"ab".repeat(32)}`)

  test("goes to every provider", async () => {
    const providers = [startProvider(taken), startProvider(taken), startProvider(taken)]
    expect(await clientOf(providers).send(raw)).toEqual({ outcome: "known", said: null })
    await until(() => providers.every(({ asked }) => asked.length === 1))
    for (const { asked } of providers)
      expect(asked).toMatchObject([{ method: "eth_sendRawTransaction", params: [raw] }])
  })

  test("is in flight as soon as one pool has it, however long another one takes", async () => {
    const [silent, good] = [startProvider(isSilent), startProvider(taken)]
    const { send } = clientOf([silent, good], { timeout_milliseconds: 60_000 })
    expect(await send(raw)).toEqual({ outcome: "known", said: null })
  })

  test("goes to those that are not suspended", async () => {
    const [broken, good] = [startProvider(fails(500)), startProvider(taken)]
    const { client, send } = clientOf([broken, good])
    await client.getBlockNumber()
    await send(raw)
    expect(broken.asked.map(({ method }) => method)).toEqual(["eth_blockNumber"])
  })

  test("goes only to the private pool if there is one", async () => {
    const [open, hidden] = [startProvider(taken), startProvider(taken)]
    const { client, send } = clientOf([open], { send_url: hidden.url })
    await send(raw)
    await client.sendRawTransaction({ serializedTransaction: raw })
    expect(open.asked).toEqual([])
    expect(hidden.asked).toHaveLength(2)
  })

  type Told = [what: string, answers: FakeProvider["answer"][], outcome: string, said: string]
  const told: Told[] = [
    [
      "the best response",
      [refuses(-32_000, "txpool is full"), refuses(-32_000, "Nonce too low")],
      "nonce_low",
      "nonce too low",
    ],
    [
      "a known message before an unknown one",
      [refuses(-32_000, "gnarfl"), refuses(-32_000, "replacement transaction underpriced")],
      "underpriced",
      "replacement transaction underpriced",
    ],
    ["unknown messages", [refuses(-32_000, "gnarfl")], "unclear", "gnarfl"],
    [
      "a known message rather than Besu's code for it, which other nodes use for a limit",
      [refuses(-32_005, "Transaction gas limit exceeds block gas limit")],
      "refused",
      "transaction gas limit exceeds block gas limit",
    ],
    [
      "nothing, with an error status",
      [refuses(-32_000, "already known", 503)],
      "no_answer",
      "http 503: already known",
    ],
    [
      "a rate limit",
      [refuses(-32_007, "15/second request limit reached", 429)],
      "rate_limited",
      "http 429: 15/second request limit reached",
    ],
    ["nothing, from an empty body", [() => new Response("")], "no_answer", "the response is empty"],
  ]
  for (const [what, answers, outcome, said] of told)
    test(`that nobody accepted is judged by ${what}`, async () => {
      const { send } = clientOf(answers.map(startProvider))
      expect(await send(raw)).toEqual({ outcome, said } as Awaited<ReturnType<typeof send>>)
    })

  test("that reaches no provider gets silence, without any provider's URL", async () => {
    const gone = startProvider(taken)
    for (const server of servers.splice(0)) server.stop(true)
    const { outcome, said } = await clientOf([gone]).send(raw)
    expect(outcome).toBe("no_answer")
    expect(said).not.toContain(gone.url)
  })
})

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5)
}

test("a provider cannot make the service fetch a URL or read a file by an error that names it, as contracts may", async () => {
  const fetched: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      fetched.push(request.url)
      return Response.json({ data: "0x" })
    },
  })
  servers.push(server)
  const error =
    "error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callback, bytes extra)"
  const data = encodeErrorResult({
    abi: parseAbi([error]),
    args: [
      zeroAddress,
      [`http://127.0.0.1:${server.port}/{data}`, `file://${import.meta.path}`],
      "0x",
      "0x00000000",
      "0x",
    ],
  })
  const refuse = refuses(3, "execution reverted", 200, data)
  const provider = startProvider((call) => (provider.asked.length === 1 ? refuse(call) : says("0x")(call)))
  const chain = { chain_id: 1, name: "one", coin_name: "Ether", coin_symbol: "ETH", coin_decimals: 18 }
  const rpc = createRpc({ ...chain, rpc_urls: [provider.url] } as unknown as ChainConfig, http(provider.url))
  const asked = reach(() => rpc.call({ to: zeroAddress, data: "0x12345678" }))
  await expect(asked).rejects.toBeInstanceOf(CallReverted)
  expect(fetched).toEqual([])
  expect(provider.asked.map(({ method }) => method)).toEqual(["eth_call"])
})

test("a redirect of a provider is not followed: bytes for a private pool reach no other host", async () => {
  const elsewhere = startProvider(says(`0x${"12".repeat(32)}`))
  const provider = startProvider(() => Response.redirect(elsewhere.url, 307))
  const { send } = clientOf([provider])
  expect(await send("0x02")).toMatchObject({ outcome: "no_answer" })
  expect(elsewhere.asked).toEqual([])
})
