import { beforeAll, describe, expect, test } from "bun:test"
import { createPublicKey, verify } from "node:crypto"
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify } from "jose"
import { isOfChip, ReceiptInvalid, verifyReceipt } from "../../clients/verify-receipt/verify-receipt.ts"
import type { PublicReceiptJwk } from "../../src/db/receipt-key-schema.ts"
import {
  chipDigest,
  createReceiptKey,
  type ReceiptClaims,
  type ReceiptKey,
  signReceipt,
} from "../../src/engine/receipts/receipt.ts"

const claims: ReceiptClaims = {
  iss: "https://api.example.com",
  jti: "0192f000-0000-7000-8000-000000000001",
  iat: 1_767_225_600,
  chain_id: 8453,
  contract: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
  serial: 12,
  counter: 66_051,
  is_test: false,
  chip_salt: "c2FsdA",
  chip_digest: chipDigest("c2FsdA", "04A0B1C2D3"),
}

let key: ReceiptKey
let receipt: string
let jwks: { keys: PublicReceiptJwk[] }

beforeAll(() => {
  key = createReceiptKey()
  receipt = signReceipt(key, claims)
  jwks = { keys: [createReceiptKey().public_jwk, key.public_jwk] }
})

describe("a tap receipt", () => {
  test("can be verified with jose", async () => {
    const { payload, protectedHeader } = await jwtVerify(receipt, createLocalJWKSet(jwks), joseOptions)
    expect(payload).toEqual(claims as never)
    expect(protectedHeader).toEqual({ alg: "ES256", kid: key.public_jwk.kid, typ: "tap-receipt+jwt" })
  })

  test("can be verified with node:crypto alone", () => {
    expect(verifiesWithNode(receipt, key.public_jwk)).toBe(true)
  })

  test("can be verified with the one-file verifier, even after a key rotation", async () => {
    expect(await verifyReceipt(receipt, jwks, claims.iss)).toEqual(claims)
    const rotated = { keys: [createReceiptKey().public_jwk, ...jwks.keys] }
    expect(await verifyReceipt(receipt, rotated)).toEqual(claims)
  })

  test("is not called invalid by the one-file verifier where there is no Web Crypto, as in pages with http: and in Node 18", async () => {
    const ours = Object.getOwnPropertyDescriptor(globalThis, "crypto") ?? {}
    const without: unknown[] = [{}, undefined]
    try {
      for (const value of without) {
        Object.defineProperty(globalThis, "crypto", { value, configurable: true })
        const error = await verifyReceipt(receipt, jwks).catch((thrown: unknown) => thrown)
        expect(error).not.toBeInstanceOf(ReceiptInvalid)
        expect(String(error)).toContain("Web Crypto")
      }
    } finally {
      Object.defineProperty(globalThis, "crypto", ours)
    }
  })

  test("with any bit flipped is rejected by all three", async () => {
    const parts = receipt.split(".")
    const keys = createLocalJWKSet(jwks)
    for (const [index, part] of parts.entries()) {
      const bytes = Buffer.from(part, "base64url")
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = parts.with(index, flipped(bytes, bit).toString("base64url")).join(".")
        expect(await verifyReceipt(changed, jwks).catch((error) => error)).toBeInstanceOf(ReceiptInvalid)
        expect(
          await jwtVerify(changed, keys, joseOptions).then(
            () => null,
            (error) => error,
          ),
        ).toBeInstanceOf(Error)
        expect(verifiesWithNode(changed, key.public_jwk)).toBe(false)
      }
    }
  })

  test("with any character changed is rejected by the one-file verifier, even if it decodes to the same bytes", async () => {
    for (let place = 0; place < receipt.length; place++) {
      const letter = receipt[place] === "A" ? "B" : "A"
      const changed = receipt.slice(0, place) + letter + receipt.slice(place + 1)
      expect(await verifyReceipt(changed, jwks).catch((error) => error)).toBeInstanceOf(ReceiptInvalid)
    }
    const last = receipt.charCodeAt(receipt.length - 1)
    const respelled = receipt.slice(0, -1) + String.fromCharCode(last + 1)
    expect(await verifyReceipt(respelled, jwks).catch((error) => error)).toBeInstanceOf(ReceiptInvalid)
  })

  const forgeries: [string, () => Promise<string>, string][] = [
    ["of an unpublished key", async () => signReceipt(createReceiptKey(), claims), "not among"],
    [
      "of another type",
      async () => receipt.replace(/^[^.]+/, header({ alg: "ES256", typ: "JWT", kid: key.public_jwk.kid })),
      "not a tap receipt",
    ],
    [
      "without an algorithm",
      async () => receipt.replace(/^[^.]+/, header({ alg: "none", typ: "tap-receipt+jwt" })),
      "not ES256",
    ],
    [
      "with critical extensions",
      async () =>
        receipt.replace(
          /^[^.]+/,
          header({ alg: "ES256", typ: "tap-receipt+jwt", kid: key.public_jwk.kid, crit: ["b64"] }),
        ),
      "extensions",
    ],
    ["that is not a JWS", async () => "04A0B1C2D3", "not a compact JWS"],
  ]
  for (const [name, forge, words] of forgeries)
    test(`${name} is rejected with an explanation`, async () => {
      await expect(verifyReceipt(await forge(), jwks)).rejects.toThrow(words)
    })

  test("of any length is rejected with an explanation", async () => {
    const long = header({ alg: "ES256", typ: "tap-receipt+jwt", kid: "x".repeat(1_500_000) })
    await expect(verifyReceipt(receipt.replace(/^[^.]+/, long), jwks)).rejects.toThrow("not among")
  })

  test("of another issuer is rejected if an issuer is required", async () => {
    await expect(verifyReceipt(receipt, jwks, "https://other.example")).rejects.toThrow(
      "was issued by https://api.example.com",
    )
  })

  test("reveals its chip to those who know the chip ID, and to no one else", async () => {
    expect(await isOfChip(claims, "04a0b1c2d3")).toBe(true)
    expect(await isOfChip(claims, "04A0B1C2D4")).toBe(false)
    expect(receipt).not.toContain(Buffer.from("04A0B1C2D3").toString("base64url").slice(0, 10))
  })

  test("has a public key that contains no secret and is named by its thumbprint", async () => {
    const { public_jwk } = key
    expect(Object.keys(public_jwk).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"])
    expect(await calculateJwkThumbprint(public_jwk)).toBe(public_jwk.kid)
  })
})

const joseOptions = { algorithms: ["ES256"], typ: "tap-receipt+jwt" }

function verifiesWithNode(text: string, jwk: PublicReceiptJwk): boolean {
  const [header = "", payload = "", signature = ""] = text.split(".")
  const publicKey = createPublicKey({ key: jwk as never, format: "jwk" })
  const signed = Buffer.from(`${header}.${payload}`)
  return verify(
    "sha256",
    signed,
    { key: publicKey, dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  )
}

function header(values: Record<string, unknown>): string {
  return Buffer.from(JSON.stringify(values)).toString("base64url")
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const changed = Buffer.from(bytes)
  changed[bit >> 3] = bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7))
  return changed
}
