import { expect, test } from "bun:test"
import { createCipheriv } from "node:crypto"
import fc from "fast-check"
import { unwrapChipKeys, wrapChipKeys } from "../../src/engine/sun/chip-keys.ts"
import { cmac } from "../../src/engine/sun/cmac.ts"
import { type SunChip, verifySun } from "../../src/engine/sun/message.ts"
import { createVirtualChip, emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { neverRotated } from "../harness/secret.ts"

// Drawn uniformly: two independent chips, a counter, and padding as a chip generates it.
const key = bytesOf(16)
const chips = fc.record({ uid: bytesOf(7), metaKey: key, fileKey: key })
const counters = fc.oneof(
  fc.integer({ min: 0, max: 0xffffff }),
  fc.constantFrom(0, 255, 256, 65535, 65536, 0xffffff),
)
const messages = fc.tuple(chips, counters, bytesOf(5)).map(([chip, counter, padding]) => ({
  chip,
  counter,
  message: emitSun(chip, counter, padding),
}))

test("any emitted message verifies to its counter, with c and without", () => {
  fc.assert(
    fc.property(messages, ({ chip, counter, message }) => {
      expect(verifySun(chip, message)).toEqual({ counter })
      expect(verifySun(chip, { e: message.e })).toEqual({ counter })
    }),
  )
})

test("flipping any bit of e invalidates it, with c and without", () => {
  fc.assert(
    fc.property(messages, ({ chip, message }) => {
      for (const e of everyFlip(message.e)) {
        expect(verifySun(chip, { e, c: message.c })).toBeNull()
        expect(verifySun(chip, { e })).toBeNull()
      }
    }),
    { numRuns: 50 },
  )
})

test("flipping any bit of c invalidates it", () => {
  fc.assert(
    fc.property(messages, ({ chip, message }) => {
      for (const c of everyFlip(message.c)) expect(verifySun(chip, { e: message.e, c })).toBeNull()
    }),
    { numRuns: 50 },
  )
})

test("flipping any bit of the meta key or the UID invalidates a message", () => {
  fc.assert(
    fc.property(messages, fc.constantFrom("metaKey", "uid"), ({ chip, message }, part) => {
      for (const flipped of everyFlip(hexOf(chip[part]))) {
        const other: SunChip = { ...chip, [part]: Buffer.from(flipped, "hex") }
        expect(verifySun(other, message)).toBeNull()
        expect(verifySun(other, { e: message.e })).toBeNull()
      }
    }),
    { numRuns: 50 },
  )
})

test("flipping any bit of the file key invalidates a message with c, and does not matter without c", () => {
  fc.assert(
    fc.property(messages, ({ chip, counter, message }) => {
      for (const flipped of everyFlip(hexOf(chip.fileKey))) {
        const other: SunChip = { ...chip, fileKey: Buffer.from(flipped, "hex") }
        expect(verifySun(other, message)).toBeNull()
        expect(verifySun(other, { e: message.e })).toEqual({ counter })
      }
    }),
    { numRuns: 50 },
  )
})

test("no message of one virtual chip is valid for another chip", () => {
  const chip = createVirtualChip()
  fc.assert(
    fc.property(messages, ({ message }) => {
      expect(verifySun(chip, message)).toBeNull()
    }),
  )
})

test("the c of another counter is invalid", () => {
  fc.assert(
    fc.property(messages, counters, ({ chip, counter, message }, other) => {
      fc.pre(other !== counter)
      expect(verifySun(chip, { e: message.e, c: emitSun(chip, other).c })).toBeNull()
    }),
  )
})

test("AES-CMAC equals an implementation with big integers and one CBC call", () => {
  fc.assert(
    fc.property(key, fc.uint8Array({ maxLength: 100 }), (cmacKey, message) => {
      expect(hexOf(cmac(cmacKey, message))).toBe(hexOf(cmacOverNumbers(cmacKey, message)))
    }),
    { numRuns: 500 },
  )
})

test("wrapped chip keys unwrap to the same keys for any secret and chip", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 32 }), fc.string(), key, key, (current, chipId, metaKey, fileKey) => {
      const secret = neverRotated(current)
      const opened = unwrapChipKeys(secret, chipId, wrapChipKeys(secret, chipId, { metaKey, fileKey }))
      expect(hexOf(opened.metaKey)).toBe(hexOf(metaKey))
      expect(hexOf(opened.fileKey)).toBe(hexOf(fileKey))
    }),
  )
})

// RFC 4493 with the subkeys as 128-bit integers and the whole chain in one CBC encryption.
function cmacOverNumbers(cmacKey: Uint8Array, message: Uint8Array): Buffer {
  const cbc = (input: Uint8Array) =>
    createCipheriv("aes-128-cbc", cmacKey, Buffer.alloc(16)).setAutoPadding(false).update(input).subarray(-16)
  const double = (value: bigint) =>
    value >> 127n === 1n ? (value << 1n) ^ (0x87n | (1n << 128n)) : value << 1n
  const isFull = message.length > 0 && message.length % 16 === 0
  const k1 = double(BigInt(`0x${hexOf(cbc(Buffer.alloc(16)))}`))
  const fill = Buffer.alloc(isFull ? 0 : 16 - (message.length % 16))
  if (!isFull) fill[0] = 0x80
  const blocks = Buffer.concat([message, fill])
  const last = BigInt(`0x${hexOf(blocks.subarray(-16))}`) ^ (isFull ? k1 : double(k1))
  return cbc(
    Buffer.concat([blocks.subarray(0, -16), Buffer.from(last.toString(16).padStart(32, "0"), "hex")]),
  )
}

function everyFlip(text: string): string[] {
  const value = BigInt(`0x${text}`)
  return Array.from({ length: text.length * 4 }, (_, bit) =>
    (value ^ (1n << BigInt(bit))).toString(16).toUpperCase().padStart(text.length, "0"),
  )
}

function bytesOf(size: number): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ minLength: size, maxLength: size })
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex")
}
