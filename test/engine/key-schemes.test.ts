import { describe, expect, test } from "bun:test"
import { diversify, diversifyAnyLength } from "../../src/engine/sun/an10922.ts"
import { cmac } from "../../src/engine/sun/cmac.ts"
import {
  chipKeysFrom,
  type DerivingScheme,
  isZeroKey,
  type KeySlot,
  keySlots,
  keySourceOf,
  UidNeeded,
} from "../../src/engine/sun/key-schemes.ts"
import vectors from "./vectors/ntag424.json"

const an10922 = vectors.an10922_aes128
const boltcard = vectors.boltcardDeterministic

describe("AN10922 diversification", () => {
  test("matches the published key", () => {
    const input = hex(`${an10922.uid}${an10922.aid}${an10922.systemIdentifier}`)
    expect(upperHex(diversify(hex(an10922.key), input))).toBe(an10922.diversified)
  })

  test("always pads to 32 bytes, unlike plain CMAC: the trap of short inputs", () => {
    const key = hex(an10922.key)
    const trap = an10922.shortInputTrap
    expect(upperHex(diversifyAnyLength(key, hex(an10922.uid)))).toBe(trap.an10922)
    expect(upperHex(cmac(key, hex(`01${an10922.uid}`)))).toBe(trap.plainCmac)
  })

  test("equals plain CMAC for 16 to 31 bytes of input, where both pad alike", () => {
    for (let length = 16; length <= 31; length++) {
      const input = Buffer.alloc(length, length)
      expect(diversify(hex(an10922.key), input)).toEqual(
        cmac(hex(an10922.key), Buffer.concat([Uint8Array.of(1), input])),
      )
    }
  })

  test("rejects inputs that fall into the trap, and those that are too long", () => {
    for (const length of [0, 7, 13, 15, 32])
      expect(() => diversify(hex(an10922.key), Buffer.alloc(length))).toThrow("has 16 to 31 bytes")
  })
})

describe("the scheme an10922", () => {
  const master = hex("00112233445566778899AABBCCDDEEFF")

  test("diversifies over chip ID, AID, a name, slot and version: 16 bytes", () => {
    const source = keySourceOf("an10922", master, 3)
    const input = Buffer.concat([hex("04A0B1C2D3"), hex("3042F5"), Buffer.from("tagkey"), hex("0203")])
    expect(input.length).toBe(16)
    expect(source.keyAt(2, { chip_id: "04A0B1C2D3", uid: null })).toEqual(diversify(master, input))
  })

  test("gives every slot, version and chip a different key", () => {
    const keys = [1, 2].flatMap((version) =>
      ["04A0B1C2D3", "04A0B1C2D4"].flatMap((chip_id) =>
        keySlots.map((slot) =>
          upperHex(keySourceOf("an10922", master, version).keyAt(slot, { chip_id, uid: null })),
        ),
      ),
    )
    expect(new Set(keys).size).toBe(20)
  })

  test("needs no UID, so tags can be ordered before their UIDs are known", () => {
    expect(keySourceOf("an10922", master, 1).needs_uid).toBe(false)
  })
})

describe("the standard scheme of sdm-backend", () => {
  // nfc-developer/sdm-backend tests/test_kdf.py
  const published: { master: string; meta: string; tag: [string, KeySlot, string][] }[] = [
    {
      master: "C9EB67DF090AFF47C3B19A2516680B9D",
      meta: "A13086F194D7BDFD108DD11716EA2BDF",
      tag: [["03030303030303", 2, "85F7CC459A5B4B2F5D1A5019DED61C88"]],
    },
    {
      master: "B95F4C27E3D0BC333792EA968545217F",
      meta: "3A553C40846FDA656FAA0FCE4F45FDBD",
      tag: [["05050505050505", 2, "89AE686DE793FDF48057EE6E78505CFC"]],
    },
  ]
  for (const { master, meta, tag } of published) {
    const source = keySourceOf("sdm-backend", hex(master), 1)

    test(`matches the published meta key, which all tags share, of master ${master.slice(0, 4)}…`, () => {
      expect(upperHex(source.keyAt(1, { chip_id: "0000000000", uid: null }))).toBe(meta)
    })

    for (const [uid, slot, key] of tag)
      test(`matches the published key ${slot} of ${uid}`, () => {
        expect(upperHex(source.keyAt(slot, { chip_id: "0000000000", uid: hex(uid) }))).toBe(key)
      })
  }

  test("derives all-zero keys from an all-zero master, as its demo tags have", () => {
    const source = keySourceOf("sdm-backend", Buffer.alloc(16), 1)
    for (const slot of keySlots)
      expect(isZeroKey(source.keyAt(slot, { chip_id: "0000000000", uid: Buffer.alloc(7) }))).toBe(true)
  })
})

describe("the scheme of the Bolt Card", () => {
  test("matches the published keys", () => {
    const source = keySourceOf("boltcard", hex(boltcard.issuerKey), boltcard.version)
    const tag = { chip_id: "0000000000", uid: hex(boltcard.uid) }
    expect(keySlots.map((slot) => upperHex(source.keyAt(slot, tag)))).toEqual([
      boltcard.K0,
      boltcard.K1,
      boltcard.K2,
      boltcard.K3,
      boltcard.K4,
    ])
  })
})

describe("any key set", () => {
  test("opens e and computes c with the slots of its scheme (nfc-developer/sdm-backend#5: not swapped)", () => {
    const tag = { chip_id: "04A0B1C2D3", uid: hex("04112233445566") }
    for (const [scheme, meta, file] of [
      ["an10922", 2, 1],
      ["sdm-backend", 1, 2],
      ["boltcard", 1, 2],
    ] as [DerivingScheme, KeySlot, KeySlot][]) {
      const source = keySourceOf(scheme, hex(an10922.key), 1)
      expect(chipKeysFrom(source, tag)).toEqual({
        metaKey: source.keyAt(meta, tag),
        fileKey: source.keyAt(file, tag),
      })
    }
  })

  test("reports by name that it needs the UID", () => {
    for (const scheme of ["sdm-backend", "boltcard"] as const)
      expect(() =>
        chipKeysFrom(keySourceOf(scheme, hex(an10922.key), 1), { chip_id: "04A0B1C2D3", uid: null }),
      ).toThrow(UidNeeded)
  })

  test("rejects masters and versions that no tag can have", () => {
    expect(() => keySourceOf("an10922", Buffer.alloc(15), 1)).toThrow("16 bytes")
    for (const version of [0, 256, 1.5])
      expect(() => keySourceOf("an10922", Buffer.alloc(16), version)).toThrow("1 to 255")
  })
})

function hex(text: string): Buffer {
  return Buffer.from(text, "hex")
}

function upperHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase()
}
