import { expect, test } from "bun:test"
import { within } from "../../src/platform/deadline.ts"

test("a result in time is returned, and an error in time is thrown", async () => {
  expect(await within(Promise.resolve(7), 60_000, "too late")).toBe(7)
  await expect(within(Promise.reject(new Error("it broke")), 60_000, "too late")).rejects.toThrow("it broke")
})

test("work that misses its deadline rejects with the caller's message, and may fail later without effect", async () => {
  const late = Promise.withResolvers<never>()
  await expect(within(late.promise, 1, "the chain is silent")).rejects.toThrow("the chain is silent")
  late.reject(new Error("nobody hears this"))
  // An unhandled rejection would fail the test in the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve))
})
