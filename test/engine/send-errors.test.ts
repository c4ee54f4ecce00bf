import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { saysTooMuch } from "../../src/engine/chain/endpoint.ts"
import {
  bestVerdict,
  classifySendError,
  type SendOutcome,
  type SendVerdict,
} from "../../src/engine/chain/send-errors.ts"
import nodeWords from "./vectors/node-words.json"

describe("a node's response to a transaction", () => {
  for (const { node, words, outcome } of nodeWords)
    test(`“${words}” (${node}) means ${outcome}`, () => {
      expect(classifySendError(words.toLowerCase())).toBe(outcome as SendOutcome)
      expect(saysTooMuch(words.toLowerCase())).toBe(false)
    })
})

describe("an unknown message", () => {
  const inventedWord = fc
    .array(fc.constantFrom(..."bcdfghjklmnpqrstvwxz"), { minLength: 4, maxLength: 12 })
    .map((letters) => letters.join(""))

  test("is unclear, whatever it is", () => {
    fc.assert(
      fc.property(fc.array(inventedWord, { minLength: 1, maxLength: 8 }), (words) => {
        expect(classifySendError(words.join(" "))).toBe("unclear")
      }),
    )
  })

  test.each([
    "header not found",
    "missing trie node 5f",
    "unknown transaction",
    "method not found",
    "context deadline exceeded",
    "internal error",
    "unauthorized: inactive app",
    "query returned more than 10000 results",
    "Access denied: your IP is banned",
    "eth_gasPrice is not permitted on your plan",
    "range 1000000 exceeds limit of 10000",
    "socket hang up",
    "",
  ])("such as “%s” is unclear", (words) => {
    expect(classifySendError(words)).toBe("unclear")
  })

  test("around a revert does not hide the revert", () => {
    fc.assert(
      fc.property(inventedWord, fc.constantFrom(...nodeWords), (word, { words }) => {
        expect(classifySendError(`${word}: execution reverted: ${words.toLowerCase()}`)).toBe("refused")
      }),
    )
  })
})

describe("several nodes' verdicts on the same bytes", () => {
  const outcomes = [...new Set(nodeWords.map(({ outcome }) => outcome as SendOutcome))]
  const verdict = fc
    .constantFrom<SendOutcome>(...outcomes, "unclear", "no_answer")
    .map((outcome) => ({ outcome, said: outcome }))

  test("combine to the same result in any order", () => {
    fc.assert(
      fc.property(fc.array(verdict, { minLength: 1 }), (verdicts) => {
        expect(bestVerdict(verdicts)).toEqual(bestVerdict(verdicts.toReversed()))
      }),
    )
  })

  test("mean that the bytes are in flight as soon as one pool has them", () => {
    fc.assert(
      fc.property(fc.array(verdict), (verdicts) => {
        const taken = { outcome: "known", said: null } as const
        expect(bestVerdict([...verdicts, taken]).outcome).toBe("known")
      }),
    )
  })

  test("prefer a known message to an unknown one, in its original words", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<SendOutcome>(...outcomes),
        fc.shuffledSubarray(nothingLearnt),
        (outcome, rest) => {
          if (outcome === "rate_limited") return
          expect(bestVerdict([...rest, { outcome, said: "its words" }])).toEqual({
            outcome,
            said: "its words",
          })
        },
      ),
    )
  })

  test("are silence if no node was asked", () => {
    expect(bestVerdict([])).toEqual({ outcome: "no_answer", said: null })
  })
})

const nothingLearnt: SendVerdict[] = [
  { outcome: "rate_limited", said: "slow down" },
  { outcome: "unclear", said: "brrr" },
  { outcome: "no_answer", said: "timed out" },
]
