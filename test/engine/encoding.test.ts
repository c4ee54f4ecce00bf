import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { readAddress, type SoftwareTag } from "../../src/dev/tags/software-tag.ts"
import {
  decodeFileSettings,
  decodeSettingsAnswer,
  encodeFileSettings,
  lockedSettings,
} from "../../src/engine/sun/encoding/file-settings.ts"
import { type ManifestLine, manifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import { addressIn, ndefFile } from "../../src/engine/sun/encoding/ndef.ts"
import {
  checkTemplate,
  type Mirrors,
  macInputOf,
  TemplateError,
  tagAddress,
} from "../../src/engine/sun/encoding/tag-address.ts"
import { writeAnewOrder, writeOrder, writeTamperOrder } from "../../src/engine/sun/encoding/write-order.ts"
import { decryptFileContent, tamperOf } from "../../src/engine/sun/file-content.ts"
import {
  chipKeysFrom,
  type DerivingScheme,
  type KeySource,
  keySlots,
  keySourceOf,
} from "../../src/engine/sun/key-schemes.ts"
import { verifySun } from "../../src/engine/sun/message.ts"

const template = "https://tap.example/t/{chip_id}"
const master = hex("00112233445566778899AABBCCDDEEFF")

describe("the published encoding of AN12196 §6", () => {
  // The application note's URL has no chip ID; the part before the values has the same length here.
  const address = tagAddress("https://choose.url.com/ntag424".replace("ntag424", "{chip_id}"), "ntag424", {
    mac: true,
    tamper: false,
  })
  const { bytes, offsets } = ndefFile(address)

  test("has its NDEF file, byte for byte", () => {
    const text = `choose.url.com/ntag424?e=${"0".repeat(32)}&c=${"0".repeat(16)}`
    expect(bytes).toEqual(Buffer.concat([hex("0051D1014D5504"), Buffer.from(text)]))
  })

  test("has its offsets: PICCData at 20h, the MAC at 43h", () => {
    expect(offsets).toEqual({ e: 0x20, enc: null, c: 0x43 })
  })

  test("has its file settings", () => {
    expect(upperHex(encodeFileSettings(lockedSettings({ meta_read: 2, file_read: 1 }, offsets)))).toBe(
      "4000E0C1F121200000430000430000",
    )
  })
})

describe("file settings", () => {
  test("with tamper detection put its status into the encrypted part, in the order of table 69", () => {
    const { offsets } = ndefFile(tagAddress(template, "04A0B1C2D3", { mac: true, tamper: true }))
    const settings = lockedSettings({ meta_read: 2, file_read: 1 }, offsets)
    const [picc, enc, mac] = [offsets.e, offsets.enc, offsets.c].map((place) => threeBytes(place ?? 0))
    expect(upperHex(encodeFileSettings(settings))).toBe(`4000E0D9F121${picc}${enc}${enc}${enc}200000${mac}`)
  })

  test("without a MAC have no file key and no MAC offsets", () => {
    const { offsets } = ndefFile(tagAddress(template, "04A0B1C2D3", { mac: false, tamper: false }))
    expect(upperHex(encodeFileSettings(lockedSettings({ meta_read: 2, file_read: 1 }, offsets)))).toBe(
      `4000E0C1F12F${threeBytes(offsets.e)}`,
    )
  })

  test("are parsed as they were written", () => {
    for (const mirrors of allMirrors) {
      const { offsets } = ndefFile(tagAddress(template, "04A0B1C2D3", mirrors))
      const settings = lockedSettings({ meta_read: 1, file_read: 2 }, offsets)
      expect(decodeFileSettings(encodeFileSettings(settings))).toEqual(settings)
    }
  })

  test("are parsed from a GetFileSettings response: a new tag's file is open to everybody", () => {
    const factory = decodeSettingsAnswer(hex("0000E0EE000100"))
    expect(factory?.sdm).toBe(false)
    expect(factory?.access).toEqual({ read: "free", write: "free", read_write: "free", change: 0 })
  })

  test("that mirror UID and counter in plaintext have an offset for each mirror, and none for PICCData", () => {
    const uid = { ...noOffsets, uid: 0x20 }
    const both = { uid: 0x20, counter: 0x40 }
    expect(decodeFileSettings(hex("4000E081F1EF200000"))?.offsets).toEqual(uid)
    expect(decodeFileSettings(hex("4000E0C1F1EF200000400000"))?.offsets).toEqual({ ...noOffsets, ...both })
    expect(decodeFileSettings(hex("4000E041F1EF400000"))?.offsets).toEqual({ ...noOffsets, counter: 0x40 })
    const without = decodeFileSettings(hex("4000E001F1EF"))
    expect([without?.uid, without?.counter, without?.offsets]).toEqual([false, false, noOffsets])
  })

  test("have offsets of three bytes, little-endian", () => {
    const { offsets } = ndefFile(tagAddress(template, "04A0B1C2D3", { mac: false, tamper: false }))
    const settings = lockedSettings({ meta_read: 2, file_read: 1 }, { ...offsets, e: 0x93_82_71 })
    expect(upperHex(encodeFileSettings(settings))).toBe("4000E0C1F12F718293")
    expect(decodeFileSettings(encodeFileSettings(settings))?.offsets.picc_data).toBe(0x93_82_71)
  })

  test("state the key of each access right, or free access", () => {
    const settings = decodeFileSettings(hex("40214301F12F200000"))
    expect(settings?.access).toEqual({ read_write: 2, change: 1, read: 4, write: 3 })
    expect([settings?.counter_read, settings?.meta_read, settings?.file_read]).toEqual([1, 2, "never"])
  })

  test("that end in the middle of an offset are rejected", () => {
    expect(decodeFileSettings(hex("4000E0C1F1212000004300004300"))).toBeNull()
    for (const cut of ["", "00", "0000", "40", "4000", "4000E0C1", "4000E0C1F1"])
      expect(decodeFileSettings(hex(cut))).toBeNull()
    for (const no of ["", "000000E0EE", "0000E0EE0001", "0100E0EE000100"])
      expect(decodeSettingsAnswer(hex(no))).toBeNull()
  })
})

describe("the URL in an NDEF file", () => {
  const file = Buffer.concat([hex("000CD101085504"), Buffer.from("tap.abc")])

  test("is read from one short URI record, whose content may be its prefix alone", () => {
    expect(addressIn(file)).toBe("https://tap.abc")
    expect(addressIn(Buffer.concat([file, Buffer.alloc(4)]))).toBe("https://tap.abc")
    expect(addressIn(hex("0005D101015504"))).toBe("https://")
    expect(addressIn(hex("0008D10104550061623A"))).toBe("ab:")
  })

  test("is not found in another kind of record or a truncated one", () => {
    for (const [place, other] of [
      [2, 0x91],
      [3, 0x02],
      [5, 0x54],
    ] as const) {
      const changed = Buffer.from(file)
      changed[place] = other
      expect(addressIn(changed)).toBeNull()
    }
    for (const length of [0, 6, 7, file.length - 1]) expect(addressIn(file.subarray(0, length))).toBeNull()
  })
})

describe("a URL template", () => {
  const refused: [string, string][] = [
    ["https://tap.example/t", "must have {chip_id} once"],
    ["https://tap.example/{chip_id}/{chip_id}", "must have {chip_id} once"],
    ["https://tap.example/t/{chip_id}?x={uid}", "has other braces"],
    ["http://tap.example/t/{chip_id}", "must begin with https://"],
    ["/t/{chip_id}", "is not an absolute URL"],
    ["https://me@tap.example/t/{chip_id}", "must not have a user name"],
    ["https://tap.example/t/{chip_id}#top", "must not have a fragment"],
    ["https://tap.example/t/{chip_id}?c=1", "has the parameter c already"],
    ["https://tap.example/t/ {chip_id}", "printable ASCII without spaces"],
    ["https://täp.example/t/{chip_id}", "printable ASCII"],
    ["https://Tap.example/t/{chip_id}", "write it as https://tap.example/t/{chip_id}"],
  ]
  for (const [wrong, words] of refused)
    test(`is rejected with an explanation: ${wrong}`, () => {
      expect(() => checkTemplate(wrong)).toThrow(TemplateError)
      expect(() => checkTemplate(wrong)).toThrow(words)
    })

  test("may be on localhost for testing", () => {
    checkTemplate("http://localhost:3000/t/{chip_id}")
  })

  test("may have a query of its own, to which the values are appended", () => {
    const { text } = tagAddress("https://tap.example/?id={chip_id}", "04A0B1C2D3", {
      mac: true,
      tamper: false,
    })
    expect(text).toBe(`https://tap.example/?id=04A0B1C2D3&e=${"0".repeat(32)}&c=${"0".repeat(16)}`)
  })

  test("that is too long for a tag is rejected with the excess length", () => {
    const long = `https://tap.example/${"x".repeat(200)}/{chip_id}`
    expect(() => ndefFile(tagAddress(long, "04A0B1C2D3", { mac: true, tamper: true }))).toThrow(
      /\d+ characters too long/,
    )
  })

  test("may fill a tag to its last byte", () => {
    const fileOf = (length: number) => {
      const long = `https://tap.example/${"x".repeat(length)}/{chip_id}`
      return ndefFile(tagAddress(long, "04A0B1C2D3", { mac: true, tamper: true })).bytes
    }
    const most = 256 - fileOf(0).length
    expect(fileOf(most)).toHaveLength(256)
    expect(() => fileOf(most + 1)).toThrow("1 characters too long")
  })

  test("always has placeholders of the full length (nfc-developer/sdm-backend#31: 30 zeros where 32 belong)", () => {
    for (const mirrors of allMirrors) {
      const { text } = tagAddress(template, "04A0B1C2D3", mirrors)
      const zeros = [...new URL(text).searchParams.values()].map((value) => value.length)
      expect(zeros).toEqual([32, ...(mirrors.tamper ? [32] : []), ...(mirrors.mac ? [16] : [])])
    }
  })
})

describe("the write sequence", () => {
  test("cannot brick a tag (boltcard/bolt-nfc-android-app#42, #50): each key is read back before the next", () => {
    const keySteps = writeOrder.filter(({ step }) => step === "change_key" || step === "read_back_key")
    for (const [index, { step, slot }] of keySteps.entries()) {
      if (step !== "change_key") continue
      expect(keySteps[index + 1]).toEqual({
        step: "read_back_key",
        slot: slot ?? 0,
        authenticate_with: { slot: slot ?? 0, key: "own" },
      })
    }
  })

  test("changes all five keys, the application master key last", () => {
    expect(writeOrder.flatMap(({ step, slot }) => (step === "change_key" ? [slot] : []))).toEqual([
      1, 2, 3, 4, 0,
    ])
  })

  test("locks the file after the last key, and verifies it (johnnyb/ntag424-java#17: tags left writable)", () => {
    expect(writeOrder.slice(-3).map(({ step }) => step)).toEqual([
      "change_file_settings",
      "read_back_file_settings",
      "read_address",
    ])
  })

  const orders = [
    ["a new tag", "factory", writeOrder],
    ["a new TagTamper", "factory", writeTamperOrder],
    ["a re-encoded tag", "previous", writeAnewOrder],
  ] as const

  test.each(orders)("writes %s and reads it back with the application master key", (_tag, _before, order) => {
    const sessions = order.filter(({ step }) => step !== "read_back_key" && step !== "read_address")
    expect(sessions.map(({ authenticate_with }) => authenticate_with?.slot)).toEqual(sessions.map(() => 0))
  })

  test.each(orders)(
    "never authenticates %s with a key that a lost response could have changed unnoticed",
    (_tag, before, order) => {
      const known = new Map<number, string>(keySlots.map((slot) => [slot, before]))
      for (const { step, slot, authenticate_with } of order) {
        if (step === "read_back_key" && slot !== undefined) known.set(slot, "own")
        if (authenticate_with) expect(known.get(authenticate_with.slot)).toBe(authenticate_with.key)
      }
    },
  )
})

describe("a manifest line", () => {
  const source = keySourceOf("an10922", master, 2)
  const line = manifestLine(
    source,
    template,
    { mac: true, tamper: false },
    { chip_id: "04A0B1C2D3", uid: null },
  )

  test("has everything a station needs, so that nothing is typed", () => {
    expect(Object.keys(line)).toEqual([
      "chip_id",
      "uid",
      "url_template",
      "ndef_hex",
      "offsets",
      "file_settings_hex",
      "file_settings_answer_hex",
      "keys",
      "previous_keys",
      "write_order",
    ])
  })

  test("states slot, role and version of each key (Aadil1505/ntag-424-personalization#2: the wrong slot)", () => {
    expect(line.keys.map(({ slot, role, version }) => [slot, role, version])).toEqual([
      [0, "application_master", 2],
      [1, "file_read", 2],
      [2, "meta_read", 2],
      [3, "spare", 2],
      [4, "spare", 2],
    ])
  })

  test("never contains the master key as a key of the tag (nfc-developer/sdm-backend#34)", () => {
    expect(line.keys.map(({ key }) => key)).not.toContain(upperHex(master))
  })

  test("contains the GetFileSettings response of a correctly written file", () => {
    expect(decodeSettingsAnswer(hex(line.file_settings_answer_hex))).toEqual(
      decodeFileSettings(hex(line.file_settings_hex)),
    )
    expect(line.file_settings_answer_hex.slice(0, 14)).toMatch(/^00.{6}000100$/)
  })

  test("of a re-encoded tag contains every key that the tag may have now, by version", () => {
    const versions = [1, 2].map((version) => keySourceOf("an10922", master, version))
    const tag = { chip_id: "04A0B1C2D3", uid: null }
    const anew = manifestLine(
      keySourceOf("an10922", master, 3),
      template,
      { mac: true, tamper: false },
      tag,
      versions,
    )
    expect(line.previous_keys).toBeNull()
    expect(anew.previous_keys).toEqual(
      versions.flatMap((source) =>
        keySlots.map((slot) => ({ slot, version: source.version, key: upperHex(source.keyAt(slot, tag)) })),
      ),
    )
    expect(anew.write_order).toBe(writeAnewOrder)
  })

  test("enables tamper detection on a TagTamper, which is off when it leaves the factory", () => {
    const mirrors = { mac: true, tamper: true }
    const ofTamper = manifestLine(source, template, mirrors, { chip_id: "04A0B1C2D3", uid: null })
    expect(ofTamper.write_order[0]?.step).toBe("enable_tag_tamper")
    expect(line.write_order.map(({ step }) => step)).not.toContain("enable_tag_tamper")
  })

  test("contains the old key of each slot, as ChangeKey requires", () => {
    const changes = writeAnewOrder.filter(({ step }) => step === "change_key")
    expect(changes.map(({ old_key }) => old_key)).toEqual(changes.map(() => "previous"))
  })

  test("has the offsets of the placeholders in the file", () => {
    const file = hex(line.ndef_hex)
    const { picc_data, mac } = line.offsets
    expect(file.subarray(picc_data, picc_data + 32).toString()).toBe("0".repeat(32))
    expect(file.subarray(picc_data - 3, picc_data).toString()).toBe("?e=")
    expect(file.subarray(mac ?? 0).toString()).toBe("0".repeat(16))
    expect(addressIn(file)).toBe(line.url_template)
  })
})

describe("encode, simulate, verify:", () => {
  const cases = fc.record({
    scheme: fc.constantFrom<DerivingScheme>("an10922", "sdm-backend", "boltcard"),
    master: bytes(16),
    version: fc.integer({ min: 1, max: 255 }),
    chip_id: bytes(5).map(upperHex),
    uid: bytes(7),
    counter: fc.oneof(fc.integer({ min: 1, max: 0xffffff }), fc.constantFrom(255, 256, 66_051, 0xffffff)),
    mirrors: fc.constantFrom(
      ...[
        { mac: false, tamper: false },
        { mac: true, tamper: false },
        { mac: true, tamper: true },
      ],
    ),
    template: fc
      .tuple(
        fc.constantFrom("https://tap.example", "https://www.brand.example", "http://localhost:3000"),
        fc.constantFrom("/t/{chip_id}", "/a/much/longer/path/to/{chip_id}", "/?x=1&id={chip_id}"),
      )
      .map(([host, path]) => host + path),
    tamper: fc.constantFrom("CC", "OO", "OC", "II"),
  })

  test("any chip of any scheme, template and counter produces a URL that verifies to its counter", () => {
    fc.assert(
      fc.property(cases, ({ scheme, master, version, chip_id, uid, counter, mirrors, template, tamper }) => {
        checkTemplate(template)
        const source = keySourceOf(scheme, master, version)
        const tag = tagOf(manifestLine(source, template, mirrors, { chip_id, uid }), uid, { tamper, counter })
        const read = new URL(readAddress(tag, counter))
        const chip = { uid, ...chipKeysFrom(source, { chip_id, uid }) }
        const message = messageIn(read)
        expect(read.href).toContain(chip_id)
        expect(verifySun(chip, message, macInputOf(mirrors))).toEqual({ counter })
        if (!message.enc) return
        const content = decryptFileContent(chip, counter, message.enc)
        expect(content.toString("latin1")).toBe(`${tamper}${"0".repeat(14)}`)
        expect(tamperOf(content)).toBe(({ CC: "sealed", II: "unknown" } as const)[tamper as "CC"] ?? "opened")
      }),
      { numRuns: 300 },
    )
  })

  test("flipping any single bit of any value invalidates it, in each encoding", () => {
    for (const mirrors of allMirrors) {
      const { chip, message } = example(mirrors)
      const macInput = macInputOf(mirrors)
      expect(verifySun(chip, message, macInput)).toEqual({ counter: 66_051 })
      for (const [name, value] of Object.entries(message)) {
        for (let bit = 0; bit < value.length * 4; bit++)
          expect(verifySun(chip, { ...message, [name]: flipped(value, bit) }, macInput)).toBeNull()
      }
    }
  })

  test("a chip is sealed if the wire is and was closed, and opened if it ever was open", () => {
    const said = (text: string) => tamperOf(Buffer.from(`${text}00000000000000`))
    expect(["CC", "OO", "OC", "CO", "IO", "II", "CI", "IC", "00"].map(said)).toEqual([
      ...["sealed", "opened", "opened", "opened", "opened"],
      ...["unknown", "unknown", "unknown", "unknown"],
    ] as ReturnType<typeof tamperOf>[])
  })

  test("file content without a MAC is rejected: the tamper status cannot be forged", () => {
    const { chip, message } = example({ mac: true, tamper: true })
    const { c: _c, ...withoutMac } = message
    expect(verifySun(chip, withoutMac, "{enc}&c=")).toBeNull()
    const plain = example({ mac: true, tamper: false })
    expect(verifySun(plain.chip, { ...plain.message, enc: message.enc })).toBeNull()
  })

  test("the MAC of a tag with file content covers exactly `<enc>&c=` (johnnyb/ntag424-java#9)", () => {
    const { chip, message } = example({ mac: true, tamper: true })
    for (const wrong of ["", "{enc}", "{enc}&cmac=", "enc={enc}&c=", "{e}&enc={enc}&c="])
      expect(verifySun(chip, message, wrong)).toBeNull()
  })
})

const noOffsets = {
  uid: null,
  counter: null,
  picc_data: null,
  tamper: null,
  mac_input: null,
  enc: null,
  enc_length: null,
  mac: null,
}

const allMirrors: Mirrors[] = [
  { mac: false, tamper: false },
  { mac: true, tamper: false },
  { mac: true, tamper: true },
]

function example(mirrors: Mirrors) {
  const source: KeySource = keySourceOf("an10922", master, 1)
  const uid = hex("04112233445566")
  const line = manifestLine(source, template, mirrors, { chip_id: "04A0B1C2D3", uid })
  const tag = tagOf(line, uid, { tamper: "CC", counter: 66_051 })
  return {
    chip: { uid, ...chipKeysFrom(source, { chip_id: "04A0B1C2D3", uid }) },
    message: messageIn(new URL(readAddress(tag, 66_051))),
  }
}

function tagOf(
  line: ManifestLine,
  uid: Uint8Array,
  { tamper, counter }: { tamper: string; counter: number },
) {
  return {
    uid: upperHex(uid),
    ndef_hex: line.ndef_hex,
    file_settings_hex: line.file_settings_hex,
    keys: line.keys.map(({ key }) => key),
    counter,
    tamper: tamper as SoftwareTag["tamper"],
  }
}

function messageIn(address: URL): { e: string; c?: string; enc?: string } {
  return Object.fromEntries(
    [...address.searchParams].filter(([name]) => ["e", "c", "enc"].includes(name)),
  ) as {
    e: string
  }
}

function flipped(value: string, bit: number): string {
  const bytes = hex(value)
  bytes[bit >> 3] = bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7))
  return upperHex(bytes)
}

function threeBytes(place: number): string {
  return upperHex(Uint8Array.of(place & 0xff, place >> 8, 0))
}

function bytes(size: number) {
  return fc.uint8Array({ minLength: size, maxLength: size })
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex")
}

function upperHex(value: Uint8Array): string {
  return Buffer.from(value).toString("hex").toUpperCase()
}
