import { afterEach, describe, expect, test } from "bun:test"
import { createPublicClient } from "viem"
import { createProviders } from "../src/chain/providers.ts"
import { classifySendError } from "../src/chain/send-errors.ts"

type Call = { id: number; method: string }
type FakeProvider = { url: string; asked: string[]; answer: (call: Call) => Response | Promise<Response> }

const servers: Bun.Server<undefined>[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true)
})

const says = (result: unknown) => (call: Call) => Response.json({ jsonrpc: "2.0", id: call.id, result })
const refuses = (code: number, message: string) => (call: Call) =>
  Response.json({ jsonrpc: "2.0", id: call.id, error: { code, message } })
const fails = (status: number) => () => new Response("", { status })

function startProvider(answer: FakeProvider["answer"]): FakeProvider {
  const provider: FakeProvider = { url: "", asked: [], answer }
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const call = (await request.json()) as Call
      provider.asked.push(call.method)
      return await provider.answer(call)
    },
  })
  servers.push(server)
  provider.url = `http://127.0.0.1:${server.port}`
  return provider
}

function clientOf(...providers: FakeProvider[]) {
  const { transport, ...rest } = createProviders(
    providers.map(({ url }) => url),
    1_000,
  )
  return { client: createPublicClient({ transport, cacheTime: 0 }), ...rest }
}

describe("several providers", () => {
  test("the next one is asked when the first does not answer", async () => {
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    expect(await clientOf(broken, good).client.getBlockNumber()).toBe(7n)
  })

  test("the next one is asked when an answer begins and never ends", async () => {
    const endless = () => new Response(new ReadableStream({ start: (body) => body.enqueue('{"jsonrpc":') }))
    const [stalled, good] = [startProvider(endless), startProvider(says("0x7"))]
    expect(await clientOf(stalled, good).client.getBlockNumber()).toBe(7n)
  })

  test("one that failed five times is asked last", async () => {
    const [broken, good] = [startProvider(fails(500)), startProvider(says("0x7"))]
    const { client } = clientOf(broken, good)
    for (let round = 0; round < 8; round++) await client.getBlockNumber()
    expect(broken.asked).toHaveLength(5)
  })

  test("a word of the chain about a nonce is passed on, and is nobody's fault", async () => {
    const [first, second] = [startProvider(refuses(-32_603, "nonce too low")), startProvider(says("0x7"))]
    const { client } = clientOf(first, second)
    for (let round = 0; round < 8; round++)
      await expect(client.getBlockNumber()).rejects.toThrow("nonce too low")
    expect(second.asked).toEqual([])
  })

  test("an internal error is asked of another one, without a mark against the first", async () => {
    const [first, second] = [startProvider(refuses(-32_603, "internal error")), startProvider(says("0x7"))]
    const { client } = clientOf(first, second)
    for (let round = 0; round < 8; round++) expect(await client.getBlockNumber()).toBe(7n)
    expect(first.asked).toHaveLength(8)
  })

  test.each([
    ["the status 429", fails(429)],
    ["the code -32005", refuses(-32_005, "limit exceeded")],
  ])("one that says %s is left in peace for a while", async (_what, answer) => {
    const limited = startProvider(answer)
    const { client } = clientOf(limited)
    for (let round = 0; round < 5; round++) await client.getBlockNumber().catch(() => {})
    expect(limited.asked).toHaveLength(1)
  })

  test("one that is more than three blocks behind is asked after the others", async () => {
    const [behind, ahead] = [startProvider(says("0x3")), startProvider(says("0x8"))]
    const { client, rank } = clientOf(behind, ahead)
    expect(await client.getBlockNumber()).toBe(3n)
    await rank()
    expect(await client.getBlockNumber()).toBe(8n)
  })

  test("a block's hash is asked of all of them, and one that does not have it yet says null", async () => {
    const providers = [
      startProvider(says({ hash: "0x01" })),
      startProvider(says(null)),
      startProvider(fails(500)),
    ]
    expect(await clientOf(...providers).blockHashes(5n)).toEqual(["0x01", null])
  })
})

describe("what a node says to a transaction", () => {
  test.each([
    ["execution reverted: invalid nonce too low", "refused"],
    ["already known", "known"],
    ["transaction already imported", "known"],
    ["nonce too low: next nonce 5, tx nonce 4", "nonce_low"],
    ["nonce too high", "nonce_high"],
    ["replacement transaction underpriced", "underpriced"],
    ["max fee per gas less than block base fee: address 0x", "fee_too_low"],
    ["insufficient funds for gas * price + value", "no_funds"],
    ["429 too many requests", "rate_limited"],
    ["intrinsic gas too low", "refused"],
    ["socket hang up", "unclear"],
  ] as const)("“%s” means %s", (text, outcome) => {
    expect(classifySendError(text)).toBe(outcome)
  })
})
