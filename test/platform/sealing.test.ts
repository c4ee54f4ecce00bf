import { expect, test } from "bun:test"
import { derivedKey, SEAL_BYTES, SealBroken, sealBytes, unsealBytes } from "../../src/platform/sealing.ts"
import { neverRotated } from "../harness/secret.ts"

const secret = neverRotated("secret")
const row = Buffer.from("row 1")

test("a key depends only on secret and purpose, however many others were derived meanwhile", () => {
  const first = Buffer.from(derivedKey("secret", "purpose"))
  const others = Array.from({ length: 100 }, (_, index) => derivedKey(`secret ${index}`, "purpose"))
  expect(new Set([first, ...others].map((key) => key.toString("hex"))).size).toBe(101)
  expect(derivedKey("secret", "purpose").equals(first)).toBe(true)
  expect(derivedKey("secret", "another").equals(first)).toBe(false)
})

test("sealed bytes have a fixed overhead, and open to the original, even if that is empty", () => {
  for (const length of [0, 1, 32, 1_000]) {
    const bytes = crypto.getRandomValues(Buffer.alloc(length))
    const sealed = sealBytes(secret, "purpose", row, bytes)
    expect(sealed.length).toBe(length + SEAL_BYTES)
    expect(unsealBytes(secret, "purpose", row, sealed).equals(bytes)).toBe(true)
    expect(() => unsealBytes(secret, "purpose", Buffer.from("row 2"), sealed)).toThrow(SealBroken)
    expect(() => unsealBytes(secret, "purpose", row, sealed.subarray(1))).toThrow(SealBroken)
  }
})
