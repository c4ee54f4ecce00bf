import { describe, expect, test } from "bun:test"
import { createPublicClient, custom, type Hex, numberToHex, pad } from "viem"
import { createHeaderChain } from "../../src/engine/chain/headers.ts"
import { ChainUnreachable, type Rpc } from "../../src/engine/chain/rpc.ts"

const settings = { finality_depth: 16, block_time_seconds: 2, use_finalized_tag: false }

describe("the newest block", () => {
  test("is asked for once in a block's time by those with nothing open, however many ask", async () => {
    const { headers, chain, asked } = openChain(settings)
    for (let lap = 0; lap < 400; lap++) {
      chain.milliseconds += 100
      chain.head = BigInt(100 + Math.floor(lap / 20))
      await Promise.all([headers.followIdly(), headers.followIdly(), headers.followIdly()])
    }
    expect(asked.length).toBeLessThanOrEqual(20)
  })

  test("is never older than a block's time for them", async () => {
    const { headers, chain } = openChain(settings)
    await headers.followIdly()
    chain.head += 1n
    chain.milliseconds += 2_000
    expect((await headers.followIdly()).number).toBe(chain.head)
  })

  test("is asked for less and less by them on a chain that stands still, and often again once it goes on", async () => {
    const { headers, chain, asked } = openChain(settings)
    const askedIn = async (blockTimes: number) => {
      const before = asked.length
      for (let lap = 0; lap < blockTimes * 20; lap++) {
        chain.milliseconds += 100
        await headers.followIdly()
      }
      return asked.length - before
    }
    await headers.followIdly()
    expect(await askedIn(4)).toBe(4)
    await askedIn(60)
    expect(await askedIn(80)).toBe(10)
    chain.head += 1n
    await askedIn(8)
    expect(await askedIn(4)).toBeGreaterThanOrEqual(3)
  })

  test("is asked for at once by those who wait, however long a chain stood still", async () => {
    const { headers, chain } = openChain(settings)
    for (let lap = 0; lap < 100; lap++) {
      chain.milliseconds += 2_000
      await headers.followIdly()
    }
    chain.head += 1n
    chain.milliseconds += 250
    expect((await headers.follow()).number).toBe(chain.head)
  })

  test("is a quarter of a second old at the most for those who wait", async () => {
    const { headers, chain, asked } = openChain(settings)
    await headers.follow()
    chain.milliseconds += 249
    await headers.follow()
    expect(asked).toHaveLength(1)
    chain.head += 1n
    chain.milliseconds += 1
    expect((await headers.follow()).number).toBe(chain.head)
  })

  test("comes with its base fee", async () => {
    const { headers } = openChain(settings)
    expect((await headers.follow()).base_fee_per_gas).toBe(7n)
  })
})

describe("what is final", () => {
  const tagged = { ...settings, use_finalized_tag: true }

  test("is told by the depth where the chain is not asked", async () => {
    const { headers, asked } = openChain(settings)
    expect(await headers.finalHeight()).toBe(100n - 16n + 1n)
    expect(asked).not.toContain("finalized")
  })

  test("is what the chain says, asked a few times in a finality depth", async () => {
    const { headers, chain, asked } = openChain({ ...tagged, finality_depth: 160 })
    for (let block = 1n; block <= 100n; block++) {
      chain.head = 1_000n + block
      chain.finalized = 900n + block
      chain.milliseconds += 2_000
      await headers.follow()
      expect(await headers.finalHeight()).toBeGreaterThanOrEqual(chain.finalized - 10n)
    }
    expect(asked.filter((which) => which === "finalized")).toHaveLength(10)
  })

  test("is told by the depth where the chain has no such block", async () => {
    const { headers, chain } = openChain(tagged)
    chain.finalized = null
    expect(await headers.finalHeight()).toBe(85n)
  })

  test("is told by the depth where what the chain calls final stands still", async () => {
    const { headers, chain } = openChain(tagged)
    chain.finalized = 100n - 33n
    expect(await headers.finalHeight()).toBe(85n)
  })

  test("is never above the newest block", async () => {
    const { headers, chain } = openChain(tagged)
    chain.finalized = 5_000n
    expect(await headers.finalHeight()).toBe(100n)
  })
})

test("a block that is not there yet is not asked for", async () => {
  const { headers, asked } = openChain(settings)
  await headers.follow()
  await expect(headers.at(101n)).rejects.toBeInstanceOf(ChainUnreachable)
  expect(asked).toEqual(["latest"])
})

test("what was answered of a block that is replaced meanwhile is forgotten with the next newest block", async () => {
  const { headers, chain } = openChain(settings)
  await headers.follow()
  const { promise, resolve } = Promise.withResolvers<void>()
  chain.slowness = promise
  const before = headers.at(95n)
  chain.slowness = null
  Object.assign(chain, { head: 101n, branch: 1n, milliseconds: 2_000 })
  await headers.follow()
  resolve()
  const replaced = await before
  expect((await headers.at(95n)).hash).not.toBe(replaced.hash)
})

type FakeChain = {
  head: bigint
  finalized: bigint | null
  milliseconds: number
  /** Another one: all blocks were replaced. */
  branch: bigint
  /** What an answer waits for that is given by now. */
  slowness: Promise<void> | null
}

/** A chain in memory, with a clock of its own; `asked` has what each question was for. */
function openChain(given: typeof settings) {
  const chain: FakeChain = { head: 100n, finalized: 90n, milliseconds: 0, branch: 0n, slowness: null }
  const asked: string[] = []
  async function request({ params }: { params: [string] }) {
    const [which] = params
    asked.push(which)
    const { branch, slowness } = chain
    await slowness
    if (which === "latest") return blockAt(chain.head, branch)
    if (which === "finalized") return chain.finalized === null ? null : blockAt(chain.finalized, branch)
    // By number, or by a hash, whose last digits are the number.
    return blockAt(BigInt(which) % 2n ** 64n, branch)
  }
  const rpc = createPublicClient({ transport: custom({ request }, { retryCount: 0 }), cacheTime: 0 }) as Rpc
  return { headers: createHeaderChain(rpc, given, () => chain.milliseconds), chain, asked }
}

/** Its hash is its branch and its number. */
function blockAt(number: bigint, branch: bigint) {
  const hashOf = (height: bigint): Hex => pad(numberToHex((branch << 64n) + height), { size: 32 })
  return {
    number: numberToHex(number),
    hash: hashOf(number),
    parentHash: hashOf(number - 1n),
    timestamp: "0x1",
    baseFeePerGas: "0x7",
    transactions: [],
  }
}
