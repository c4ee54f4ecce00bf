import { expect, test } from "bun:test"
import fc from "fast-check"
import { createFirstPlaces } from "../../src/resources/chip-stock/first-places.ts"

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
const digits = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 56n - 1n }),
  fc.bigInt({ min: 0n, max: 40n }),
  // Equal in their lower half, which must not make two of them collide.
  fc.bigInt({ min: 0n, max: 40n }).map((value) => value << 40n),
)

test(`with the seed ${seed}, the first position of each value is found as with a Map`, () => {
  fc.assert(
    fc.property(fc.array(digits, { maxLength: 2_000, size: "max" }), (values) => {
      const places = createFirstPlaces()
      const known = new Map<bigint, number>()
      for (const [index, value] of values.entries()) {
        expect(places.note(value.toString(16).padStart(14, "0"), index + 1)).toBe(known.get(value) ?? null)
        if (!known.has(value)) known.set(value, index + 1)
      }
    }),
    { seed, numRuns: 25 },
  )
})

test("each of fifty thousand consecutive IDs is found at its first position, in either case", () => {
  const places = createFirstPlaces()
  const ids = Array.from({ length: 50_000 }, (_, index) => (0x0400000000 + index * 0x100).toString(16))
  for (const [index, id] of ids.entries()) expect(places.note(id, index + 1)).toBeNull()
  for (const [index, id] of ids.entries()) expect(places.note(id.toUpperCase(), 1)).toBe(index + 1)
})
