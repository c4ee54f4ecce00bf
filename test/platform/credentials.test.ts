import { expect, test } from "bun:test"
import { createHash } from "node:crypto"
import fc from "fast-check"
import type { CredentialKind } from "../../src/platform/caller.ts"
import { hashOf, isWellFormed, kindOf, newCredential } from "../../src/platform/credentials.ts"

const prefixes: Record<CredentialKind, string> = {
  api_key: "end_sk_",
  session_token: "end_sess_",
  publishable_key: "end_pk_live_",
}
const kinds = Object.keys(prefixes) as CredentialKind[]

test("a new credential has its kind's prefix and 39 base62 characters", () => {
  for (const kind of kinds)
    expect(newCredential(kind).token).toMatch(new RegExp(`^${prefixes[kind]}[0-9A-Za-z]{39}$`))
})

test("a new credential is of its kind and well formed", () => {
  for (const kind of kinds) {
    const { token } = newCredential(kind)
    expect(kindOf(token)).toBe(kind)
    expect(isWellFormed(token)).toBe(true)
  }
})

test("no two of a thousand credentials are equal", () => {
  expect(new Set(Array.from({ length: 1000 }, () => newCredential("api_key").token)).size).toBe(1000)
})

test("every character of the alphabet is drawn about equally often", () => {
  const drawn = new Map<string, number>()
  for (let index = 0; index < 2000; index++)
    for (const character of newCredential("session_token").token.slice("end_sess_".length, -6))
      drawn.set(character, (drawn.get(character) ?? 0) + 1)
  const expected = (2000 * 33) / 62
  expect(drawn.size).toBe(62)
  // Eight standard deviations: a fair draw fails this once in 10^13 runs.
  for (const count of drawn.values()) expect(Math.abs(count - expected)).toBeLessThan(8 * Math.sqrt(expected))
})

test("the stored hash is the SHA-256 of the whole token", () => {
  const { token, hash } = newCredential("api_key")
  expect(hash).toBe(createHash("sha256").update(token).digest("hex"))
  expect(hashOf(token)).toBe(hash)
})

test("the hint shows at most four characters of the token", () => {
  const { token, hint } = newCredential("api_key")
  expect(hint).toBe(`end_sk_…${token.slice(-4)}`)
})

test("any changed character of the secret part is detected", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...kinds),
      fc.nat(38),
      fc.constantFrom(..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
      (kind, position, character) => {
        const { token } = newCredential(kind)
        const index = prefixes[kind].length + position
        fc.pre(token[index] !== character)
        expect(isWellFormed(token.slice(0, index) + character + token.slice(index + 1))).toBe(false)
      },
    ),
  )
})

test("one kind's characters are rejected with another kind's prefix", () => {
  const characters = newCredential("api_key").token.slice("end_sk_".length)
  expect(isWellFormed(`end_sess_${characters}`)).toBe(false)
})

test("no arbitrary text is well-formed", () => {
  fc.assert(
    fc.property(fc.constantFrom("", ...Object.values(prefixes)), fc.string(), (prefix, text) => {
      expect(isWellFormed(prefix + text)).toBe(false)
    }),
  )
})

test("text without a known prefix is of no kind", () => {
  for (const text of [
    "",
    "end_",
    "END_SK_x",
    "Bearer end_sk_x",
    "eyJhbGciOiJFUzI1NiJ9.e30.x",
    "end_pk_sandbox_x",
  ])
    expect(kindOf(text)).toBeNull()
})
