import { expect, test } from "bun:test"
import { within } from "../../src/platform/deadline.ts"

test("an answer in time is given, and so is a failure in time", async () => {
  expect(await within(Promise.resolve(7), 60_000, "too late")).toBe(7)
  await expect(within(Promise.reject(new Error("it broke")), 60_000, "too late")).rejects.toThrow("it broke")
})

test("what does not answer in time is given up in the caller's words, and may fail later unheard", async () => {
  const late = Promise.withResolvers<never>()
  await expect(within(late.promise, 1, "the chain is silent")).rejects.toThrow("the chain is silent")
  late.reject(new Error("nobody hears this"))
  // An unheard rejection fails the test on the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve))
})
