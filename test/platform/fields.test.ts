import { expect, test } from "bun:test"
import { TypeCompiler } from "@sinclair/typebox/compiler"
import fc from "fast-check"
import { canonicalRedirect, checkAttributes, name } from "../../src/platform/fields.ts"
import { symbolFrom } from "../../src/resources/collections/symbol.ts"

const isName = TypeCompiler.Compile(name)

test("a name is any well-formed text of 1 to 256 UTF-16 units without control characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      const expected = text.length >= 1 && text.length <= 256 && !/\p{Cc}/u.test(text)
      expect(isName.Check(text)).toBe(expected)
    }),
  )
})

test.each(["", "\ud800", "a\udc00", "tab\t", "line\n", "\u0085", "x".repeat(257)])(
  "%j is not a name",
  (text) => {
    expect(isName.Check(text)).toBe(false)
  },
)

test.each([
  ["https://example.com", "https://example.com/"],
  ["HTTPS://Example.COM:443/a/../b?x=é#f", "https://example.com/b?x=%C3%A9#f"],
  ["https://exämple.com/", "https://xn--exmple-cua.com/"],
  ["http://localhost:3000/x", "http://localhost:3000/x"],
  ["http://127.0.0.1", "http://127.0.0.1/"],
])("the redirect %s is stored as %s", (given, kept) => {
  expect(canonicalRedirect(given)).toBe(kept)
})

test.each([
  "",
  "/path",
  "//example.com",
  "example.com",
  "javascript:alert(1)",
  "data:text/html,x",
  "ftp://example.com",
  "http://example.com",
  "http://localhost.example.com",
  "https:example.com",
  "https:/example.com",
  "https:///example.com",
  "https://",
  "https://user@example.com",
  "https://user:password@example.com",
  "https://@example.com",
  "https:\\\\example.com",
  "https://example.com\\x",
  " https://example.com",
  "https://example.com ",
  "https://example.com/a b",
  "https://example.com/\n",
  "https://exam\tple.com",
  "https://example.com/\u0000",
  "https://example.com/\ud800",
  "https://example.com/\u00a0",
  "https://example.com:99999",
  "https://exa%20mple.com",
  `https://example.com/${"x".repeat(2_029)}`,
  `https://example.com/${"é".repeat(1_000)}`,
])("the redirect %j is rejected", (given) => {
  expect(() => canonicalRedirect(given)).toThrow("is not valid")
})

test("an accepted redirect is accepted again, unchanged", () => {
  fc.assert(
    fc.property(
      fc.webUrl({ validSchemes: ["https"], withFragments: true, withQueryParameters: true }),
      (url) => {
        const kept = canonicalRedirect(url)
        expect(canonicalRedirect(kept)).toBe(kept)
      },
    ),
  )
})

const nested = (levels: number): Record<string, unknown> =>
  levels === 1 ? {} : { inner: nested(levels - 1) }

test("attributes have at most 8 levels", () => {
  expect(() => checkAttributes(nested(8))).not.toThrow()
  expect(() => checkAttributes(nested(9))).toThrow("is not valid")
})

test("attributes have at most 16 KiB of JSON, counted in bytes", () => {
  const frame = JSON.stringify({ a: "" }).length
  expect(() => checkAttributes({ a: "x".repeat(16_384 - frame) })).not.toThrow()
  expect(() => checkAttributes({ a: "x".repeat(16_385 - frame) })).toThrow("is not valid")
  expect(() => checkAttributes({ a: "é".repeat(8_192) })).toThrow("is not valid")
})

test.each([
  { a: "\0" },
  { "\0": 1 },
  { a: ["\ud800"] },
  { "\udc00": 1 },
  { a: { b: Number.POSITIVE_INFINITY } },
])("attributes that no database can store are rejected", (attributes) => {
  expect(() => checkAttributes(attributes)).toThrow("is not valid")
})

test.each([
  ["Autumn Winter", "AW"],
  ["spring summer twenty six collection", "SSTS"],
  ["Archive", "A"],
  ["Édition 7", "É7"],
  ["(limited) [edition]", "LIMI"],
  ["東京 時計", "東時"],
  ["𐐨𐐨 𐐨 𐐨", "𐐀𐐀"],
  ["— !", "UNIT"],
])("the symbol of %s is %s", (given, symbol) => {
  expect(symbolFrom(given)).toBe(symbol)
})

test("a derived symbol has 1 to 4 UTF-16 units and no lone surrogate", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 40 }), (text) => {
      const symbol = symbolFrom(text)
      expect(symbol.length).toBeWithin(1, 5)
      expect(symbol.isWellFormed()).toBe(true)
    }),
  )
})
