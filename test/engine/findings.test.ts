import { afterEach, expect, mock, spyOn, test } from "bun:test"
import { DatabaseUnavailable } from "../../src/db/database.ts"
import type { TransactionRow } from "../../src/db/schema.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import type { Job, Jobs } from "../../src/engine/jobs/job.ts"
import { attempt, join, nothing } from "../../src/engine/lanes/findings.ts"
import { giveResults } from "../../src/engine/lanes/give-results.ts"
import type { HeldLane, Judged } from "../../src/engine/lanes/held-lane.ts"
import { LeaseLost } from "../../src/engine/lanes/leases.ts"
import type { Seen } from "../../src/engine/lanes/look.ts"
import { spellMilliseconds } from "../../src/engine/lanes/turns.ts"
import { newId } from "../../src/platform/ids.ts"
import { openForEachTest } from "../harness/by-hand.ts"

const open = openForEachTest()
afterEach(() => mock.restore())

test("of several findings the first reason, every notice and the least rejected cost count", () => {
  const [early, late] = [new Error("early"), new Error("late")]
  const found = join(
    { ...nothing, notices: ["one"], refused_cost: 5n },
    { halt: "first", pause: "poor", notices: ["two", "three"], refused_cost: 3n, failure: early },
    { halt: "second", pause: "poorer", notices: [], refused_cost: 4n, failure: late },
    nothing,
  )
  expect(found).toEqual({
    ...{ halt: "first", pause: "poor", notices: ["one", "two", "three"] },
    ...{ refused_cost: 3n, failure: early },
  })
  expect(join()).toEqual(nothing)
})

test("an error of one transaction is reported unless the lane or the database is lost", async () => {
  const lane = { context: { log: { debug() {} } } } as unknown as HeldLane
  const fail = (error: Error) =>
    attempt(lane, { nonce: 4, kind: "issueUnit" } as TransactionRow, () => Promise.reject(error))
  for (const lost of [new LeaseLost("gone"), new DatabaseUnavailable("gone")])
    await expect(fail(lost)).rejects.toBe(lost)
  const silent = new ChainUnreachable("nobody answers")
  expect(await fail(silent)).toEqual({ ...nothing, failure: silent })
  const odd = new Error("odd")
  const { notices, failure } = await fail(odd)
  expect(failure).toBe(odd)
  expect(notices[0]).toStartWith("nonce 4 (issueUnit) could not be processed and is tried again: ")
})

test.each([
  { block_time_seconds: 1, long: 20n, some: 10n },
  // Ten blocks are two and a half seconds: work that waits for that many is no longer waiting for it.
  { block_time_seconds: 0.25, long: 50n, some: 20n },
])(
  "a transaction that waits for finality does not delay results that are already deep enough, with a block time of $block_time_seconds s",
  async (at) => {
    const { block_time_seconds, long, some } = at
    const { lane, seenAt, judged } = await minedLong(block_time_seconds)
    const seen = [await seenAt(1, long), await seenAt(2, some), await seenAt(3, 2n)]
    await giveResults(lane, seen, new Map())
    expect(judged).toEqual([2, 3, 1])
  },
)

test("transactions take turns if a round has time for one only, new ones first", async () => {
  const { lane, seenAt, judged } = await minedLong(1, 1_000)
  const seen = [await seenAt(1, 4n), await seenAt(2, 3n), await seenAt(3, 2n)]
  const rounds = [seen, seen, seen, [...seen, await seenAt(4, 2n)], seen, seen]
  let before: Judged = new Map()
  for (const each of rounds) ({ judged: before } = await giveResults(lane, each, before))
  expect(judged).toEqual([1, 2, 3, 4, 1, 2])
  expect(before.size).toBe(seen.length)
})

/** A lane that notes which transactions it judges, each of which takes so long by the process's clock. */
async function minedLong(block_time_seconds: number, milliseconds = 0) {
  const hand = await open({ confirmation_depth: 2, finality_depth: 90, block_time_seconds })
  await hand.mine(60)
  const { client } = hand.stage.anvil
  const head = await client.getBlockNumber()
  const seenAt = async (nonce: number, depth: bigint) => {
    const { number, hash: block_hash } = await client.getBlock({ blockNumber: head - depth + 1n })
    const place = { hash: `0x${nonce}`, block_number: Number(number), block_hash }
    const receipt = { blockHash: block_hash, status: "reverted" }
    const transaction = { id: newId(), nonce, kind: "relayClaim", status: "mined", attempts: [] }
    return { transaction, mined: { place, receipt } } as unknown as Seen
  }
  const judged: number[] = []
  const now = performance.now.bind(performance)
  spyOn(performance, "now").mockImplementation(() => now() + judged.length * milliseconds)
  const results = async (...[, , { transaction }]: Parameters<Job["results"]>) => {
    judged.push(transaction.nonce)
    throw new ChainUnreachable("slow")
  }
  const [own] = hand.lanes
  const jobs = { ...own.jobs, relayClaim: { ...own.jobs.relayClaim, results } } as Jobs
  return { lane: { ...own, jobs, head } as unknown as HeldLane, seenAt, judged }
}

test("a round spends at least half a second on giving results, even if a quarter of a block is shorter", () => {
  const spells = [12, 2, 1, 0.25].map((block_time_seconds) => spellMilliseconds({ block_time_seconds }))
  expect(spells).toEqual([3_000, 500, 500, 500])
})
