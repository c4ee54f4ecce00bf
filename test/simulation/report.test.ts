import { expect, test } from "bun:test"
import { tellFailure } from "./report.ts"

test("a run of many histories tells of a failure what was found, and how it is seen again", () => {
  const found = ["the history has not ended\n  at live", "one", "two", "three", "four", "five"]
  expect(tellFailure("0xb1", found)).toBe(
    [
      "fails: 0xb1",
      "  found  the history has not ended",
      ...["one", "two", "three"].map((fault) => `  found  ${fault}`),
      "  and 2 more",
      "  again  bun run simulate --seed 0xb1\n",
    ].join("\n"),
  )
  expect(tellFailure("0xb2", ["one"])).toBe(
    "fails: 0xb2\n  found  one\n  again  bun run simulate --seed 0xb2\n",
  )
})
