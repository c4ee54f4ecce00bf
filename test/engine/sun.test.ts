import { describe, expect, test } from "bun:test"
import { createCipheriv, createDecipheriv } from "node:crypto"
import {
  ChipKeysUnreadable,
  rewrapChipKeys,
  unwrapChipKeys,
  wrapChipKeys,
} from "../../src/engine/sun/chip-keys.ts"
import { cmac, subkeys } from "../../src/engine/sun/cmac.ts"
import { decryptPicc, macFor, type SunChip, sessionMacKey, verifySun } from "../../src/engine/sun/message.ts"
import { createVirtualChip, emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { neverRotated } from "../harness/secret.ts"
import vectors from "./vectors/ntag424.json"

type ValidRow = {
  name: string
  chip: SunChip
  e: string
  c: string
  counter: number
  plain: Buffer
  sv2: Buffer
  kSesMac: string
  covered: Buffer
  cmacFull: string | undefined
  enc: Buffer | undefined
  fileData: string | undefined
}

const validRows = vectors.sun.flatMap((row): ValidRow[] => {
  if (row.expect !== "valid") return []
  return [
    {
      name: row.name,
      chip: chipOf({ ...row, uid: present(row.uid) }),
      e: row.e,
      c: present(row.c),
      counter: present(row.counter),
      plain: hex(present(row.plain)),
      sv2: hex(present(row.sv2)),
      kSesMac: present(row.kSesMac),
      covered: Buffer.from(row.macInputAscii ?? ""),
      cmacFull: row.cmacFull,
      enc: row.enc === undefined ? undefined : hex(row.enc),
      fileData: row.fileData,
    },
  ]
})
const bareRows = validRows.filter((row) => row.covered.length === 0)
const coveringRows = validRows.filter((row) => row.covered.length > 0)
const fileRows = validRows.filter((row) => row.enc !== undefined)
const refusedRows = vectors.sun.filter((row) => row.expect === "refuse")

const publishedKey = hex(vectors.rfc4493.key)
const an10922 = vectors.an10922_aes128
const boltcard = vectors.boltcardDeterministic

test("every row of the vectors file is used by a test below", () => {
  expect(validRows.length + refusedRows.length).toBe(vectors.sun.length)
  expect([bareRows.length, coveringRows.length, fileRows.length, refusedRows.length]).toEqual([7, 3, 3, 7])
})

describe("an authentic message", () => {
  for (const row of validRows) {
    test(`decrypts to its UID and counter: ${row.name}`, () => {
      expect(decryptPicc(row.chip.metaKey, row.e)).toEqual({
        uid: Buffer.from(row.chip.uid),
        counter: row.counter,
      })
    })

    test(`has the published session key: ${row.name}`, () => {
      expect(upperHex(sessionMacKey(row.chip.fileKey, row.chip.uid, row.counter))).toBe(row.kSesMac)
      expect(upperHex(cmac(row.chip.fileKey, row.sv2))).toBe(row.kSesMac)
    })

    test(`has the published c over the text it covers: ${row.name}`, () => {
      const sessionKey = hex(row.kSesMac)
      expect(upperHex(macFor(sessionKey, row.covered))).toBe(row.c)
      if (row.cmacFull !== undefined) expect(upperHex(cmac(sessionKey, row.covered))).toBe(row.cmacFull)
    })

    test(`verifies to its counter by e alone: ${row.name}`, () => {
      expect(verifySun(row.chip, { e: row.e })).toEqual({ counter: row.counter })
    })

    test(`is emitted byte for byte by a virtual chip: ${row.name}`, () => {
      expect(emitSun(row.chip, row.counter, row.plain.subarray(11)).e).toBe(row.e)
    })
  }

  for (const row of bareRows) {
    test(`verifies to its counter by e and c: ${row.name}`, () => {
      expect(verifySun(row.chip, { e: row.e, c: row.c })).toEqual({ counter: row.counter })
    })

    test(`gets the published c from a virtual chip: ${row.name}`, () => {
      expect(emitSun(row.chip, row.counter).c).toBe(row.c)
    })
  }

  for (const row of coveringRows) {
    test(`is rejected if its c covers text that the API does not receive: ${row.name}`, () => {
      expect(verifySun(row.chip, { e: row.e, c: row.c })).toBeNull()
    })
  }

  for (const row of fileRows) {
    test(`has the published file content under SV1's key: ${row.name}`, () => {
      const counterBlock = Buffer.alloc(16)
      counterBlock.set(row.plain.subarray(8, 11))
      const sessionKey = cmac(
        row.chip.fileKey,
        Buffer.concat([hex("C33C00010080"), row.plain.subarray(1, 11)]),
      )
      const content = createDecipheriv("aes-128-cbc", sessionKey, encryptedBlock(sessionKey, counterBlock))
        .setAutoPadding(false)
        .update(present(row.enc))
      expect(upperHex(content)).toBe(present(row.fileData))
    })
  }
})

describe("an invalid message", () => {
  for (const row of refusedRows) {
    const chip = chipOf({ ...row, uid: row.uid ?? "04112233445566" })

    test(`does not decrypt: ${row.name}`, () => {
      expect(decryptPicc(chip.metaKey, row.e)).toBeNull()
    })

    test(`does not verify by e alone: ${row.name}`, () => {
      expect(verifySun(chip, { e: row.e })).toBeNull()
    })

    test(`does not verify by e and c: ${row.name}`, () => {
      expect(verifySun(chip, { e: row.e, c: row.c ?? "0000000000000000" })).toBeNull()
    })

    if (row.plain !== undefined) {
      test(`is rejected for its tag byte, not for its keys: ${row.name}`, () => {
        expect(upperHex(encryptedBlock(chip.metaKey, hex(row.plain)))).toBe(row.e)
      })
    }

    if (row.c !== undefined && row.sv2 !== undefined) {
      test(`is rejected although its c is correct: ${row.name}`, () => {
        const sessionKey = cmac(chip.fileKey, hex(row.sv2))
        expect(upperHex(macFor(sessionKey))).toBe(row.c)
        if (row.kSesMac !== undefined) expect(upperHex(sessionKey)).toBe(row.kSesMac)
      })
    }
  }

  const { chip, e, c, counter } = present(bareRows[0])
  const misshapen: [string, { e: string; c?: string }][] = [
    ["an empty e", { e: "" }],
    ["an e of 31 digits", { e: e.slice(1) }],
    ["an e of 33 digits", { e: `${e}0` }],
    ["an e of 48 digits, as LRP mode gives", { e: e + c }],
    ["an e with a line break after it", { e: `${e}\n` }],
    ["an e in lower case", { e: e.toLowerCase() }],
    ["an e that is not hex", { e: "G".repeat(32) }],
    ["an empty c", { e, c: "" }],
    ["a c of 14 digits", { e, c: c.slice(2) }],
    ["a c of 18 digits", { e, c: `${c}00` }],
    ["a c with a line break after it", { e, c: `${c}\n` }],
    ["a c in lower case", { e, c: c.toLowerCase() }],
    ["a c that is not hex", { e, c: "G".repeat(16) }],
  ]
  for (const [name, message] of misshapen) {
    test(`includes one with ${name}`, () => {
      expect(verifySun(chip, message)).toBeNull()
    })
  }

  test("includes one whose c is the first half of the MAC", () => {
    const full = cmac(sessionMacKey(chip.fileKey, chip.uid, counter), new Uint8Array(0))
    expect(verifySun(chip, { e, c: upperHex(full.subarray(0, 8)) })).toBeNull()
  })
})

test("a UID of the wrong length is an error in the chip's record, not an invalid message", () => {
  const chip = createVirtualChip()
  expect(() => verifySun({ ...chip, uid: Buffer.alloc(4) }, emitSun(chip, 1))).toThrow(
    "The UID of a chip has 7 bytes, this one has 4",
  )
})

describe("AES-CMAC", () => {
  for (const { length, mac } of vectors.rfc4493.cases) {
    test(`matches the RFC 4493 result for ${length} bytes`, () => {
      expect(upperHex(cmac(publishedKey, hex(vectors.rfc4493.message).subarray(0, length)))).toBe(mac)
    })
  }

  test("matches the published session keys of AN12196", () => {
    const { fileKey, uid, counter, enc, mac } = vectors.sessionKeys
    expect(upperHex(sessionMacKey(hex(fileKey), hex(uid), counter))).toBe(mac)
    expect(upperHex(cmac(hex(fileKey), hex(`C33C00010080${uid}010000`)))).toBe(enc)
  })

  test("matches the published deterministic keys of a Bolt Card", () => {
    const issuerKey = hex(boltcard.issuerKey)
    const version = Buffer.alloc(4)
    version.writeUInt32LE(boltcard.version)
    const cardKey = cmac(issuerKey, Buffer.concat([hex(`2D003F75${boltcard.uid}`), version]))
    expect({
      cardKey: upperHex(cardKey),
      K0: upperHex(cmac(cardKey, hex("2D003F76"))),
      K1: upperHex(cmac(issuerKey, hex("2D003F77"))),
      K2: upperHex(cmac(cardKey, hex("2D003F78"))),
      K3: upperHex(cmac(cardKey, hex("2D003F79"))),
      K4: upperHex(cmac(cardKey, hex("2D003F7A"))),
      id: upperHex(cmac(issuerKey, hex(`2D003F7B${boltcard.uid}`))),
    }).toEqual({
      cardKey: boltcard.cardKey,
      K0: boltcard.K0,
      K1: boltcard.K1,
      K2: boltcard.K2,
      K3: boltcard.K3,
      K4: boltcard.K4,
      id: boltcard.id,
    })
  })

  test("matches the published AN10922 key of a chip", () => {
    const input = hex(`01${an10922.uid}${an10922.aid}${an10922.systemIdentifier}`)
    expect(upperHex(cmac(hex(an10922.key), input))).toBe(an10922.diversified)
  })

  test("derives the published subkeys from the encrypted zero block", () => {
    const { k1, k2 } = subkeys(hex(an10922.L))
    expect({ K1: upperHex(k1), K2: upperHex(k2) }).toEqual({ K1: an10922.K1, K2: an10922.K2 })
    expect(upperHex(encryptedBlock(hex(an10922.key), Buffer.alloc(16)))).toBe(an10922.L)
  })
})

describe("a virtual chip", () => {
  test("has NXP's manufacturer byte, a UID of 7 bytes and two different keys of 16", () => {
    const { uid, metaKey, fileKey } = createVirtualChip()
    expect([uid[0], uid.length, metaKey.length, fileKey.length]).toEqual([0x04, 7, 16, 16])
    expect(Buffer.compare(metaKey, fileKey)).not.toBe(0)
  })

  test("takes its randomness from the source it is given", () => {
    const chip = createVirtualChip((size) => Buffer.alloc(size, size))
    expect(chip).toEqual({
      uid: hex("04060606060606"),
      metaKey: Buffer.alloc(16, 16),
      fileKey: Buffer.alloc(16, 16),
    })
  })

  test("draws new padding for each read", () => {
    const chip = createVirtualChip()
    expect(emitSun(chip, 1).e).not.toBe(emitSun(chip, 1).e)
  })

  test("rejects a counter that no chip can reach", () => {
    const chip = createVirtualChip()
    for (const counter of [-1, 0.5, Number.NaN, 0x1000000]) {
      expect(() => emitSun(chip, counter)).toThrow("A read counter is a whole number from 0 to 16777215")
    }
  })

  test("rejects padding and UIDs of the wrong length", () => {
    const chip = createVirtualChip()
    expect(() => emitSun(chip, 1, Buffer.alloc(4))).toThrow("The padding has 5 bytes, not 4")
    expect(() => emitSun({ ...chip, uid: Buffer.alloc(8) }, 1)).toThrow("The UID of a chip has 7 bytes")
  })
})

describe("wrapped chip keys", () => {
  const secret = neverRotated("a service secret for these tests only")
  const another = neverRotated("another service secret for these tests")
  const chipId = "01ABCDEF99"
  const { metaKey, fileKey } = createVirtualChip()
  const wrapped = wrapChipKeys(secret, chipId, { metaKey, fileKey })

  test("unwrap to the same keys", () => {
    expect(unwrapChipKeys(secret, chipId, wrapped)).toEqual({
      metaKey: Buffer.from(metaKey),
      fileKey: Buffer.from(fileKey),
    })
  })

  test("stay readable in the format of the first release", () => {
    const stored = "AeS9xKDni3K_X8XuqS_PrEni6CrkHlfTlwGE4RTnHs7AJ40lnciQdXpdoF_U_dTpa1PcPsZCnJCoL2CS6A"
    expect(unwrapChipKeys(secret, chipId, stored)).toEqual({
      metaKey: hex("00112233445566778899AABBCCDDEEFF"),
      fileKey: hex("FFEEDDCCBBAA99887766554433221100"),
    })
  })

  test("differ each time they are wrapped", () => {
    expect(wrapChipKeys(secret, chipId, { metaKey, fileKey })).not.toBe(wrapped)
  })

  test("are 82 base64url characters", () => {
    expect(wrapped).toMatch(/^[A-Za-z0-9_-]{82}$/)
  })

  test("do not unwrap for another chip", () => {
    expect(() => unwrapChipKeys(secret, "01ABCDEF98", wrapped)).toThrow(ChipKeysUnreadable)
  })

  test("do not unwrap with another secret", () => {
    expect(() => unwrapChipKeys(another, chipId, wrapped)).toThrow(ChipKeysUnreadable)
  })

  test("do not unwrap after any bit is changed", () => {
    const bytes = Buffer.from(wrapped, "base64url")
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = flipBit(bytes, bit).toString("base64url")
      expect(() => unwrapChipKeys(secret, chipId, changed)).toThrow(ChipKeysUnreadable)
    }
  })

  test("are rewrapped with the current secret, once", () => {
    const rotated = { current: another.current, previous: secret.current }
    const anew = rewrapChipKeys(rotated, chipId, wrapped) ?? ""
    expect(unwrapChipKeys(another, chipId, anew)).toEqual(unwrapChipKeys(secret, chipId, wrapped))
    expect(rewrapChipKeys(rotated, chipId, anew)).toBeNull()
  })

  test("of another length or format are rejected by name", () => {
    const ofAnotherFormat = flipBit(Buffer.from(wrapped, "base64url"), 1).toString("base64url")
    for (const value of ["", wrapped.slice(4), `${wrapped}AAAA`, ofAnotherFormat]) {
      expect(() => unwrapChipKeys(secret, chipId, value)).toThrow("are not in format 1")
    }
  })

  test("that do not unwrap name the chip and the next step, and no secret", () => {
    try {
      unwrapChipKeys(another, chipId, wrapped)
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(ChipKeysUnreadable)
      const text = String(error)
      expect(text).toContain(`chip ${chipId} cannot be decrypted`)
      expect(text).toContain("import the chip again")
      expect(text).not.toContain(another.current)
      expect(text).not.toContain(wrapped)
    }
  })

  test("cannot be made from keys of the wrong length", () => {
    expect(() => wrapChipKeys(secret, chipId, { metaKey: metaKey.subarray(1), fileKey })).toThrow(RangeError)
    expect(() => wrapChipKeys(secret, chipId, { metaKey, fileKey: new Uint8Array(24) })).toThrow(RangeError)
  })
})

function chipOf(row: { uid: string; metaKey: string; fileKey: string }): SunChip {
  return { uid: hex(row.uid), metaKey: hex(row.metaKey), fileKey: hex(row.fileKey) }
}

function encryptedBlock(key: Uint8Array, block: Uint8Array): Buffer {
  return createCipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(block)
}

function flipBit(bytes: Buffer, bit: number): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[bit >> 3] = bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7))
  return flipped
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex")
}

function upperHex(bytes: Buffer): string {
  return bytes.toString("hex").toUpperCase()
}

function present<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("The vectors file lacks a value this row needs.")
  return value
}
