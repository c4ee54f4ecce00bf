import { expect, test } from "bun:test"
import { DatabaseUnavailable } from "../../src/db/database.ts"
import type { TransactionRow } from "../../src/db/schema.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { attempt, join, nothing } from "../../src/engine/lanes/findings.ts"
import type { HeldLane } from "../../src/engine/lanes/held-lane.ts"
import { LeaseLost } from "../../src/engine/lanes/leases.ts"

test("of several findings the first reason counts, every notice, and the least cost that was refused", () => {
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

test("what goes wrong with one transaction is told, unless the lane or the database is lost", async () => {
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
  expect(notices[0]).toStartWith("nonce 4 (issueUnit) cannot be moved on and is tried again: ")
})
