import { afterEach, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { type Address, encodeAbiParameters, encodeEventTopics, type Hex, numberToHex, pad } from "viem"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { createLogRanges } from "../../src/engine/chain/log-ranges.ts"
import { searchCollectionLogs } from "../../src/engine/chain/logs.ts"
import { createProviders } from "../../src/engine/chain/providers.ts"
import { ChainUnreachable, createRpc } from "../../src/engine/chain/rpc.ts"
import { chainSettings } from "../harness/chain-settings.ts"

const address: Address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
const finality_depth = 4

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

describe("a search through a collection's logs", () => {
  test("runs from the newest block down to the deployment, in ranges no larger than configured", async () => {
    const { chain, asked } = startChain({ log_range_blocks: 10, lowest_allowed: 21n }, [25n])
    const found = await searchCollectionLogs(chain, searchFrom(95n, 25), (logs) => logs.length > 0)
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual([25n])
    expect(asked.toSorted((one, other) => Number(other.last - one.last))).toEqual([
      { first: 86n, last: 95n },
      { first: 76n, last: 85n },
      { first: 66n, last: 75n },
      { first: 56n, last: 65n },
      { first: 46n, last: 55n },
      { first: 36n, last: 45n },
      { first: 26n, last: 35n },
      { first: 21n, last: 25n },
    ])
  })

  test("stops once it has found enough", async () => {
    const { chain, asked } = startChain({ log_range_blocks: 10, lowest_allowed: 1n }, [5n, 980n])
    const found = await searchCollectionLogs(chain, searchFrom(1_000n, 5), (logs) => logs.length > 0)
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual([980n])
    expect(asked).toHaveLength(5)
  })

  test("makes one request if the newest blocks contain enough", async () => {
    const { chain, asked } = startChain({ log_range_blocks: 10, lowest_allowed: 1n }, [5n, 995n])
    await searchCollectionLogs(chain, searchFrom(1_000n, 5), (logs) => logs.length > 0)
    expect(asked).toEqual([{ first: 991n, last: 1_000n }])
  })

  test("learns the provider's range limit once, and reads no more blocks than it needs", async () => {
    const { chain, asked } = startChain({ log_range_blocks: 10_000, lowest_allowed: 0n, most_blocks: 10 }, [
      99_995n,
    ])
    const search = () => searchCollectionLogs(chain, searchFrom(100_000n, null), (logs) => logs.length > 0)
    for (const questions of [11, 12]) {
      expect((await search()).map(({ blockNumber }) => blockNumber)).toEqual([99_995n])
      expect(asked).toHaveLength(questions)
    }
  })

  test("misses nothing if one of several concurrent ranges has too many logs", async () => {
    const blocks = [95n, 85n, 74n, 73n, 72n, 65n]
    const { chain } = startChain({ log_range_blocks: 10, lowest_allowed: 0n, most_logs: 2 }, blocks)
    const found = await searchCollectionLogs(chain, searchFrom(99n, null), () => false)
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual(blocks)
  })

  test("uses smaller ranges if a response is too long, as from an own node without a limit", async () => {
    const blocks = [95n, 90n, 88n, 84n]
    const { chain } = startChain({ log_range_blocks: 10, lowest_allowed: 0n, log_bytes: 6_000_000 }, blocks)
    const found = await searchCollectionLogs(chain, searchFrom(99n, null), () => false)
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual(blocks)
  })

  test("shrinks to the range that its provider can read in time", async () => {
    const { chain } = startChain({ log_range_blocks: 80, lowest_allowed: 0n, most_in_time: 10 }, [95n, 4n])
    const search = () => searchCollectionLogs(chain, searchFrom(99n, null), () => false)
    for (const next of [20n, 10n]) {
      await expect(search()).rejects.toBeInstanceOf(ChainUnreachable)
      expect(chain.log_ranges.size()).toBe(next)
    }
    expect((await search()).map(({ blockNumber }) => blockNumber)).toEqual([95n, 4n])
  }, 30_000)

  test("grows back to the configured range once the provider accepts it", async () => {
    const { chain, limits } = startChain({ log_range_blocks: 100, lowest_allowed: 0n, most_blocks: 10 }, [])
    await searchCollectionLogs(chain, searchFrom(100n, null), () => false)
    expect(chain.log_ranges.size()).toBeLessThanOrEqual(11n)
    limits.most_blocks = Infinity
    await searchCollectionLogs(chain, searchFrom(5_000n, null), () => false)
    expect(chain.log_ranges.size()).toBe(100n)
  })

  test("runs down to the first block if the deployment block is unknown", async () => {
    const { chain } = startChain({ log_range_blocks: 10, lowest_allowed: 0n }, [0n])
    const found = await searchCollectionLogs(chain, searchFrom(95n, null), () => false)
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual([0n])
  })

  test("fails as unreachable if the provider accepts no range at all", async () => {
    const { chain } = startChain({ log_range_blocks: 10, lowest_allowed: 50n }, [])
    await expect(searchCollectionLogs(chain, searchFrom(95n, null), () => false)).rejects.toThrow(
      "range refused",
    )
  })

  test("finds each log exactly once, newest first, wherever the logs are and however small the provider's limits", async () => {
    const drawn = fc.record({
      blocks: fc.uniqueArray(fc.bigInt(0n, 300n), { maxLength: 12 }),
      newest: fc.bigInt(0n, 300n),
      deployed: fc.option(fc.integer({ min: 0, max: 300 })),
      size: fc.integer({ min: 1, max: 80 }),
      most_blocks: fc.integer({ min: 1, max: 80 }),
      most_logs: fc.integer({ min: 1, max: 12 }),
      is_reversed: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(drawn, async ({ blocks, newest, deployed, size, ...most }) => {
        const lowest = BigInt(Math.max((deployed ?? 0) - finality_depth, 0))
        const { chain, close } = startChain(
          { log_range_blocks: size, lowest_allowed: lowest, ...most },
          blocks,
        )
        const found = await searchCollectionLogs(chain, searchFrom(newest, deployed), () => false)
        await close()
        const wanted = blocks.filter((block) => block >= lowest && block <= newest)
        expect(found.map(({ blockNumber }) => blockNumber)).toEqual(
          wanted.sort((one, other) => Number(other - one)),
        )
      }),
      { numRuns: 40 },
    )
  })
})

function searchFrom(newest_block: bigint, deployed_block: number | null) {
  return { address, deployed_block, newest_block, event_name: "Issued" } as const
}

type Range = { first: bigint; last: bigint }

type Limits = {
  log_range_blocks: number
  lowest_allowed: bigint
  most_blocks?: number
  most_logs?: number
  /** Requests for more blocks than this get no response. */
  most_in_time?: number
  /** Whether responses have the newest log first. */
  is_reversed?: boolean
  /** How long the response is for each log. */
  log_bytes?: number
}

/** A provider with one issuance in each of some blocks, which rejects ranges as public providers do. */
function startChain(
  {
    log_range_blocks,
    lowest_allowed,
    log_bytes = 0,
    most_in_time = Infinity,
    is_reversed = false,
    ...most
  }: Limits,
  blocks: bigint[],
) {
  const limits = { most_blocks: Infinity, most_logs: Infinity, ...most }
  const asked: Range[] = []
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { id, params } = (await request.json()) as {
        id: number
        params: [{ fromBlock: Hex; toBlock: Hex }]
      }
      const range = { first: BigInt(params[0].fromBlock), last: BigInt(params[0].toBlock) }
      asked.push(range)
      const isTaken =
        range.first >= lowest_allowed &&
        range.last - range.first < log_range_blocks &&
        range.last >= range.first
      const { most_blocks, most_logs } = limits
      const refusal = (message: string, data?: string) =>
        Response.json({ jsonrpc: "2.0", id, error: { code: -32_602, message, data } })
      if (!isTaken) return refusal("range refused")
      if (range.last - range.first >= most_blocks)
        return refusal(`eth_getLogs is limited to a ${most_blocks} range`)
      if (range.last - range.first >= most_in_time) await new Promise(() => {})
      const inRange = blocks.filter((block) => block >= range.first && block <= range.last)
      if (inRange.length > most_logs)
        return refusal("invalid params", `Query returned more than ${most_logs} results.`)
      const result = inRange.sort((one, other) => Number(one - other)).map(issuanceIn)
      if (is_reversed) result.reverse()
      const filler = " ".repeat(result.length * log_bytes)
      return new Response(`${JSON.stringify({ jsonrpc: "2.0", id, result })}${filler}`)
    },
  })
  const close = () => server.stop(true)
  closers.push(close)
  const config = {
    ...chainSettings,
    rpc_urls: [`http://127.0.0.1:${server.port}`],
    factory_address: address,
    finality_depth,
    log_range_blocks,
  }
  // Short only where a timeout is awaited, as a busy machine exceeds it as well.
  const timeout_milliseconds = most_in_time === Infinity ? 60_000 : 1_500
  const rpc = createRpc(config, createProviders(config, { timeout_milliseconds }).transport)
  return { chain: { config, rpc, log_ranges: createLogRanges(config) }, asked, limits, close }
}

function issuanceIn(block: bigint) {
  return {
    address,
    topics: encodeEventTopics({ abi: collectionAbi, eventName: "Issued", args: { first: block } }),
    data: encodeAbiParameters([{ type: "bytes" }], ["0x0000000001"]),
    blockNumber: numberToHex(block),
    blockHash: pad(numberToHex(block), { size: 32 }),
    transactionHash: pad(numberToHex(block), { size: 32 }),
    transactionIndex: "0x0",
    logIndex: "0x0",
    removed: false,
  }
}
