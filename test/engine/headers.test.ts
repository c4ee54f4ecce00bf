import { describe, expect, test } from "bun:test"
import { createPublicClient, custom, type Hex, numberToHex, pad } from "viem"
import { createHeaderChain } from "../../src/engine/chain/headers.ts"
import { ChainUnreachable, type Rpc } from "../../src/engine/chain/rpc.ts"

const settings = { finality_depth: 16, block_time_seconds: 2, use_finalized_tag: false }

describe("the newest block", () => {
  test("is requested once per block time by callers with nothing open, however many there are", async () => {
    const { headers, chain, asked } = openChain(settings)
    for (let lap = 0; lap < 400; lap++) {
      chain.milliseconds += 100
      chain.head = BigInt(100 + Math.floor(lap / 20))
      await Promise.all([headers.followIdly(), headers.followIdly(), headers.followIdly()])
    }
    expect(asked.length).toBeLessThanOrEqual(20)
  })

  test("is never older than a block time for them", async () => {
    const { headers, chain } = openChain(settings)
    await headers.followIdly()
    chain.head += 1n
    chain.milliseconds += 2_000
    expect((await headers.followIdly()).number).toBe(chain.head)
  })

  test("is requested less and less often for them on a stalled chain, and often again once it continues", async () => {
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

  test("is requested at once for callers with open work, however long the chain stalled", async () => {
    const { headers, chain } = openChain(settings)
    for (let lap = 0; lap < 100; lap++) {
      chain.milliseconds += 2_000
      await headers.followIdly()
    }
    chain.head += 1n
    chain.milliseconds += 250
    expect((await headers.follow()).number).toBe(chain.head)
  })

  test("is at most a quarter of a second old for callers with open work", async () => {
    const { headers, chain, asked } = openChain(settings)
    await headers.follow()
    chain.milliseconds += 249
    await headers.follow()
    expect(asked).toHaveLength(1)
    chain.head += 1n
    chain.milliseconds += 1
    expect((await headers.follow()).number).toBe(chain.head)
  })

  test("includes its base fee", async () => {
    const { headers } = openChain(settings)
    expect((await headers.follow()).base_fee_per_gas).toBe(7n)
  })
})

describe("the final height", () => {
  const tagged = { ...settings, use_finalized_tag: true }

  test("follows from the depth if the chain's finalized tag is not used", async () => {
    const { headers, asked } = openChain(settings)
    expect(await headers.finalHeight()).toBe(100n - 16n + 1n)
    expect(asked).not.toContain("finalized")
  })

  test("is the chain's finalized block, requested a few times per finality depth", async () => {
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

  test("follows from the depth if the chain has no finalized block", async () => {
    const { headers, chain } = openChain(tagged)
    chain.finalized = null
    expect(await headers.finalHeight()).toBe(85n)
  })

  test("follows from the depth if the chain's finalized block is stuck", async () => {
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

test("a future block is not requested", async () => {
  const { headers, asked } = openChain(settings)
  await headers.follow()
  await expect(headers.at(101n)).rejects.toBeInstanceOf(ChainUnreachable)
  expect(asked).toEqual(["latest"])
})

test("what was cached about a block that is replaced meanwhile is dropped with the next newest block", async () => {
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

describe("after blocks that were not followed", () => {
  const fast = { finality_depth: 7_200, block_time_seconds: 0.25, use_finalized_tag: false }

  test("the newest one is known at once, and the others are requested when they are needed", async () => {
    const { headers, chain, asked } = openChain(fast)
    await headers.follow()
    Object.assign(chain, { head: 2_500n, milliseconds: 600_000 })
    asked.length = 0
    expect((await headers.follow()).number).toBe(2_500n)
    expect(asked).toEqual(["latest"])
    expect((await headers.at(1_300n)).hash).toBe(hashOf(1_300n, 0n))
    expect(asked).toHaveLength(2)
  })

  test("one that was replaced meanwhile is not part of the chain", async () => {
    const { headers, chain } = openChain(fast)
    await headers.follow()
    Object.assign(chain, { head: 101n, milliseconds: 1_000 })
    await headers.follow()
    Object.assign(chain, { head: 2_500n, milliseconds: 600_000, branch: 1n, fork: 101n })
    await headers.follow()
    expect((await headers.at(100n)).hash).toBe(hashOf(100n, 0n))
    expect((await headers.at(101n)).hash).toBe(hashOf(101n, 1n))
  })

  test("those replaced further down than is walked are not part of the chain either", async () => {
    const { headers, chain, asked } = openChain(fast)
    for (; chain.head < 300n; chain.head += 1n) {
      chain.milliseconds += 250
      await headers.follow()
    }
    Object.assign(chain, { milliseconds: chain.milliseconds + 250, branch: 1n, fork: 150n })
    asked.length = 0
    await headers.follow()
    expect(asked.length).toBeLessThanOrEqual(64)
    expect((await headers.at(149n)).hash).toBe(hashOf(149n, 0n))
    expect((await headers.at(150n)).hash).toBe(hashOf(150n, 1n))
  })

  test("a few are requested together, even if a response takes longer than a block", async () => {
    const { headers, chain, answer } = openChain(fast)
    await headers.follow()
    chain.latency = 260
    for (let lap = 0; lap < 200; lap++) {
      chain.milliseconds += 125
      const since = chain.milliseconds
      await answer(headers.follow())
      expect(chain.milliseconds - since).toBeLessThanOrEqual(2 * chain.latency)
    }
    expect(chain.head).toBeGreaterThan(400n)
    Object.assign(chain, { milliseconds: chain.milliseconds + 10_000 })
    const since = chain.milliseconds
    await answer(headers.follow())
    expect(chain.milliseconds - since).toBeLessThanOrEqual(7 * chain.latency)
  })

  test("blocks of another branch, which a node returns by number, are not taken for ancestors of the newest one", async () => {
    const { headers, chain, asked } = openChain(fast)
    await headers.follow()
    Object.assign(chain, { head: 110n, milliseconds: 2_500, branch: 1n, fork: 99n, branch_by_number: 0n })
    await headers.follow()
    asked.length = 0
    for (let number = 101n; number <= 110n; number++)
      expect((await headers.at(number)).hash).toBe(hashOf(number, 1n))
    expect(asked).toEqual([])
  })

  test("what was read is not requested again if one request failed", async () => {
    const { headers, chain, asked } = openChain(fast)
    await headers.follow()
    Object.assign(chain, { head: 140n, milliseconds: 10_000, fails_at: 115n })
    await expect(headers.follow()).rejects.toBeInstanceOf(ChainUnreachable)
    Object.assign(chain, { head: 141n, milliseconds: 10_250, fails_at: null })
    asked.length = 0
    await headers.follow()
    const numbers = asked.filter((which) => which !== "latest").map((which) => BigInt(which) % 2n ** 64n)
    expect(numbers.toSorted()).toEqual([115n, 140n])
  })
})

describe("a block older than what a process has followed", () => {
  const fast = { finality_depth: 7_200, block_time_seconds: 0.25, use_finalized_tag: false }
  const follow = async ({ headers, chain }: ReturnType<typeof openChain>) => {
    Object.assign(chain, { head: chain.head + 1n, milliseconds: chain.milliseconds + 250 })
    await headers.follow()
  }

  test("is requested less and less often while nothing changes", async () => {
    const opened = openChain(fast)
    const { headers, asked } = opened
    await headers.follow()
    for (let block = 0; block < 1_000; block++) {
      expect((await headers.at(50n)).hash).toBe(hashOf(50n, 0n))
      await follow(opened)
    }
    expect(asked.filter((which) => which === numberToHex(50n)).length).toBeLessThanOrEqual(12)
  })

  test("is requested again as soon as blocks are replaced that may include it", async () => {
    const opened = openChain(fast)
    const { headers, chain } = opened
    await headers.follow()
    for (let block = 0; block < 20; block++) {
      await headers.at(50n)
      await follow(opened)
    }
    Object.assign(chain, { branch: 1n, fork: 50n })
    await follow(opened)
    expect((await headers.at(50n)).hash).toBe(hashOf(50n, 1n))
  })

  test("is requested again at the next block if a node on another fork may have returned it", async () => {
    const opened = openChain(fast)
    const { headers, chain } = opened
    await headers.follow()
    chain.branch_by_number = 1n
    expect((await headers.at(50n)).hash).toBe(hashOf(50n, 1n))
    chain.branch_by_number = null
    await follow(opened)
    expect((await headers.at(50n)).hash).toBe(hashOf(50n, 0n))
  })
})

type FakeChain = {
  head: bigint
  finalized: bigint | null
  milliseconds: number
  /** The current branch: the blocks from `fork` on were replaced. */
  branch: bigint
  fork: bigint
  /** The branch that the node uses for requests by number; null for the same. */
  branch_by_number: bigint | null
  /** The block for which requests fail. */
  fails_at: bigint | null
  /** How long a response takes within `answer`, in milliseconds of the chain's clock; blocks are mined meanwhile. */
  latency: number
  /** What a response waits for after it was determined. */
  slowness: Promise<void> | null
}

/** A chain in memory with a clock of its own; `asked` records each request's block. */
function openChain(given: typeof settings) {
  const chain: FakeChain = {
    ...{ head: 100n, finalized: 90n, milliseconds: 0 },
    ...{ branch: 0n, fork: 0n, branch_by_number: null },
    ...{ fails_at: null, latency: 0, slowness: null },
  }
  const asked: string[] = []
  const waiting: { due: number; resolve: () => void }[] = []
  function blockOf(which: string) {
    if (which === "latest") return blockAt(chain.head, chain)
    if (which === "finalized") return chain.finalized === null ? null : blockAt(chain.finalized, chain)
    const number = BigInt(which) % 2n ** 64n
    if (number === chain.fails_at) throw new Error("too many requests")
    // By hash, whose last digits are the number and whose first ones the branch, or by number.
    const branch = which.length === 66 ? BigInt(which) >> 64n : (chain.branch_by_number ?? chain.branch)
    return blockAt(number, { ...chain, branch })
  }
  async function request({ params }: { params: [string] }) {
    const [which] = params
    asked.push(which)
    const block = blockOf(which)
    await chain.slowness
    if (chain.latency === 0) return block
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ due: chain.milliseconds + chain.latency, resolve })
    await promise
    return block
  }
  /** Advances the time until there is a response. */
  async function answer(question: Promise<unknown>): Promise<void> {
    let isOver = false
    const over = question.finally(() => {
      isOver = true
    })
    for (;;) {
      // By then everything that follows from the earlier responses is done.
      await new Promise(setImmediate)
      if (isOver) break
      chain.milliseconds = Math.min(...waiting.map(({ due }) => due))
      chain.head = 100n + BigInt(Math.floor(chain.milliseconds / (1_000 * given.block_time_seconds)))
      for (const { due, resolve } of waiting.splice(0)) {
        if (due <= chain.milliseconds) resolve()
        else waiting.push({ due, resolve })
      }
    }
    await over
  }
  const rpc = createPublicClient({ transport: custom({ request }, { retryCount: 0 }), cacheTime: 0 }) as Rpc
  return { headers: createHeaderChain(rpc, given, () => chain.milliseconds), chain, asked, answer }
}

function hashOf(number: bigint, branch: bigint): Hex {
  return pad(numberToHex((branch << 64n) + number), { size: 32 })
}

/** A block whose hash is its branch and its number. */
function blockAt(number: bigint, { branch, fork }: { branch: bigint; fork: bigint }) {
  const branchAt = (height: bigint) => (height < fork ? 0n : branch)
  return {
    number: numberToHex(number),
    hash: hashOf(number, branchAt(number)),
    parentHash: hashOf(number - 1n, branchAt(number - 1n)),
    timestamp: "0x1",
    baseFeePerGas: "0x7",
    transactions: [],
  }
}
