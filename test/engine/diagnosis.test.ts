import { describe, expect, test } from "bun:test"
import { readAddress, type SoftwareTag } from "../../src/dev/tags/software-tag.ts"
import { diversifyAnyLength } from "../../src/engine/sun/an10922.ts"
import { cmac } from "../../src/engine/sun/cmac.ts"
import { diagnose } from "../../src/engine/sun/diagnosis/diagnose.ts"
import type { KeyCandidate } from "../../src/engine/sun/diagnosis/key-search.ts"
import type { ExpectedTag } from "../../src/engine/sun/diagnosis/question.ts"
import { readTagUrl } from "../../src/engine/sun/diagnosis/tag-url.ts"
import {
  earlierKeysAdvice,
  faultsIn,
  importedAdvice,
  type Verdict,
  verdictAdvice,
} from "../../src/engine/sun/diagnosis/verdicts.ts"
import {
  decodeFileSettings,
  encodeFileSettings,
  type FileSettings,
} from "../../src/engine/sun/encoding/file-settings.ts"
import { manifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import { NDEF_FILE_BYTES } from "../../src/engine/sun/encoding/ndef.ts"
import { type Mirrors, macInputOf } from "../../src/engine/sun/encoding/tag-address.ts"
import {
  type DerivingScheme,
  type KeySlot,
  type KeySource,
  keySourceOf,
} from "../../src/engine/sun/key-schemes.ts"
import { macFor, openPicc, sessionMacKey } from "../../src/engine/sun/message.ts"

const template = "https://tap.example/t/{chip_id}"
const chip_id = "04A0B1C2D3"
const uid = hex("04112233445566")
const master = hex("00112233445566778899AABBCCDDEEFF")
const otherMaster = hex("F0E1D2C3B4A5968778695A4B3C2D1E0F")
const withMac: Mirrors = { mac: true, tamper: false }

describe("a good tag", () => {
  test("is accepted, with the name of every check", () => {
    const { verdict, checks, opened_with } = ask(tag())
    expect(verdict).toBe("accepted")
    expect(checks.map(({ name, passed }) => [name, passed])).toEqual([
      ["address", true],
      ["template", true],
      ["case", true],
      ["chip", true],
      ["meta_key", true],
      ["file_key", true],
      ["counter", true],
    ])
    expect(opened_with?.name).toBe("key set Autumn, version 1")
  })

  test("with gaps in its counter is accepted, with an explanation (lnbits/boltcards#30: 1, 27, 29 look like a bug)", () => {
    const { verdict, checks } = ask(tag(), { read: 27, expected: { counter: 1 } })
    expect(verdict).toBe("accepted")
    expect(checks.at(-1)?.detail).toContain("25 reads were never presented here, which is normal")
  })

  test("with a lower-case URL has this in its checks, but not as a fault of the tag", () => {
    const { checks } = asked((url) => url.toLowerCase())
    expect(checks.find(({ name }) => name === "case")).toEqual({
      name: "case",
      passed: false,
      detail: "the values are in lower case; tags give upper case",
    })
    expect(faultsIn(checks)).toEqual([])
  })

  test("that was scanned before is distinguished from a faulty one", () => {
    expect(ask(tag(), { read: 7, expected: { counter: 7 } }).verdict).toBe("already_scanned")
  })

  test("is accepted as ordered before its UID is known", () => {
    expect(ask(tag(), { expected: { uid: null } }).verdict).toBe("accepted")
  })

  test("is accepted without a MAC if ordered so, and with encrypted content", () => {
    for (const mirrors of [
      { mac: false, tamper: false },
      { mac: true, tamper: true },
    ])
      expect(ask(tag({ mirrors }), { mirrors }).verdict).toBe("accepted")
  })

  test("is accepted with exactly the settings that it was ordered with", () => {
    const without = { mac: false, tamper: false }
    for (const mirrors of [withMac, without]) {
      const file_settings = settingsAnswer(tag({ mirrors }))
      const { verdict, checks } = ask(tag({ mirrors }), { mirrors, file_settings })
      expect([verdict, checks.find(({ name }) => name === "file_settings")?.passed]).toEqual([
        "accepted",
        true,
      ])
    }
    for (const [change, detail] of otherSettings) {
      const file_settings = settingsAnswer(withSettings(change))
      const { verdict, checks } = ask(tag(), { file_settings })
      expect([verdict, checks.at(-1)?.detail]).toEqual(["settings_differ", detail])
    }
  })

  test("with tamper detection is accepted with exactly the settings that it was ordered with", () => {
    const mirrors = { mac: true, tamper: true }
    const told = (changes: Partial<FileSettings["offsets"]>) => {
      const other = withSettings(
        (settings) => ({ ...settings, offsets: { ...settings.offsets, ...changes } }),
        mirrors,
      )
      return ask(tag({ mirrors }), { mirrors, file_settings: settingsAnswer(other) }).checks.at(-1)?.detail
    }
    expect(told({})).toBe("read counter 5, the next one")
    expect(told({ tamper: null })).toBe("TTStatusOffset is absent, not 71")
    expect(told({ enc: 72, mac_input: 72 })).toBe(
      "SDMMACInputOffset is 72, not 71; SDMENCOffset is 72, not 71",
    )
    expect(told({ enc_length: 64 })).toBe("SDMENCLength is 64, not 32")
  })

  test("is checked for consistent offsets only if all that is known is the URL that it redirects to", () => {
    const mirrors = { mac: true, tamper: true }
    const read = new URL(readAddress(tag({ mirrors }), 5))
    const value = (name: string) => `service_${name}=${read.searchParams.get(name)}`
    const url = `https://shop.example/?service_chip_id=${chip_id}&${["e", "enc", "c"].map(value).join("&")}`
    const judged = (changes: Partial<FileSettings["offsets"]>) => {
      const file_settings = settingsAnswer(withSettings(withOffsets(changes), mirrors))
      const found = diagnose({ url, file_settings, expected: expectedTag({}, mirrors), candidates: all })
      return found.checks.at(-1)?.detail
    }
    expect(judged({})).toBe("read counter 5, the next one")
    expect(judged({ mac_input: 34 })).toBe("SDMMACInputOffset is 34, not 71")
    expect(judged({ tamper: 73 })).toBe("TTStatusOffset is 73, not 71")
  })

  test("without the tamper status in encrypted content is not checked for tampering", () => {
    const mirrors = { mac: true, tamper: true }
    const found = ask(withSettings(withOffsets({ tamper: null }), mirrors), {
      mirrors,
      expected: { has_tamper: false },
    })
    const without = ask(tag(), { expected: { has_tamper: true } })
    for (const { verdict, checks } of [found, without]) {
      expect(verdict).toBe("accepted")
      expect(checks.map(({ name }) => name)).not.toContain("file_content")
    }
  })

  test("with an invalid tamper status is reported with the value found", () => {
    const mirrors = { mac: true, tamper: true }
    const { checks } = ask(withSettings(withOffsets({ tamper: null }), mirrors), { mirrors })
    expect(checks.at(-1)?.detail).toBe("the tag reports 00 instead of a status of its tamper wire")
  })

  test("that was encoded elsewhere may be locked differently", () => {
    const imported = { ...autumn[0], key_set_id: null, master: null }
    const locked = withSettings((settings) => ({
      ...settings,
      access: { ...settings.access, write: "never", read_write: "never", change: "never" },
    }))
    const secret = withSettings((settings) => ({ ...settings, access: { ...settings.access, read: 2 } }))
    const judged = (played: SoftwareTag) =>
      ask(tag(), { expected: { keys: imported }, file_settings: settingsAnswer(played) }).verdict
    expect([judged(locked), judged(secret)]).toEqual(["accepted", "settings_differ"])
  })

  test("that was encoded elsewhere with an unknown master key is not searched for under that key", () => {
    const imported = { ...autumn[0], key_set_id: null, master: null }
    const strange = withKeys({ 2: Buffer.alloc(16, 9) })
    expect(ask(strange, { expected: { keys: imported } }).verdict).toBe("wrong_meta_key")
  })

  test("that is to be re-encoded but has its earlier keys is accepted, with a fault of the station", () => {
    const found = ask(tag(), { expected: { awaited_version: 2 } })
    expect(found.verdict).toBe("accepted")
    expect(found.advice).toBe(earlierKeysAdvice)
    expect(faultsIn(found.checks).map(({ detail }) => detail)).toEqual([
      "the tag still has version 1 of its keys; it was ordered again with version 2",
    ])
    const again = ask(tag(), { expected: { awaited_version: 2, counter: 9 } })
    expect([again.verdict, faultsIn(again.checks).length]).toEqual(["already_scanned", 1])
  })

  test("has its tamper status read (johnnyb/ntag424-java#7: no tamper status)", () => {
    const mirrors = { mac: true, tamper: true }
    const said = (tamper: SoftwareTag["tamper"]) =>
      ask({ ...tag({ mirrors }), tamper }, { mirrors }).checks.find(({ name }) => name === "file_content")
        ?.detail
    expect([said("CC"), said("OC")]).toEqual([
      "the tag reports its tamper wire as sealed (CC)",
      "the tag reports its tamper wire as opened (OC)",
    ])
  })

  test("without a MAC may have other parameters that look like one", () => {
    const mirrors = { mac: false, tamper: false }
    const found = asked((url) => `${url}&campaign=00112233AABBCCDD`, mirrors)
    expect(found.verdict).toBe("accepted")
  })

  test("may be given by the URL that it redirected to", () => {
    const read = new URL(readAddress(tag(), 5))
    const url = `https://shop.example/?service_chip_id=${chip_id}&service_e=${read.searchParams.get("e")}&service_c=${read.searchParams.get("c")}`
    expect(diagnose({ url, file_settings: null, expected: expectedTag(), candidates: all }).verdict).toBe(
      "accepted",
    )
  })
})

describe("each known encoding mistake is diagnosed:", () => {
  const zeros = Buffer.alloc(16)
  const mistakes: [string, Verdict, () => ReturnType<typeof ask>][] = [
    [
      "the master key written to the tag (nfc-developer/sdm-backend#34)",
      "master_key_on_tag",
      () => ask(withKeys({ 2: master })),
    ],
    [
      "the keys of the right master, derived as a plain CMAC of the UID",
      "key_of_another_derivation",
      () => ask(withKeys({ 2: cmac(master, Uint8Array.of(1, ...uid)) })),
    ],
    [
      "the keys of the right master, diversified over the UID alone",
      "key_of_another_derivation",
      () => ask(withKeys({ 2: diversifyAnyLength(master, uid) })),
    ],
    [
      "a placeholder of 30 zeros (nfc-developer/sdm-backend#31)",
      "truncated_mirror",
      () => ask(tag({ template: "https://tap.example/t/{chip_id}", short: 2 })),
    ],
    ["a truncated c", "truncated_mirror", () => asked((url) => url.slice(0, -2))],
    [
      "a truncated enc",
      "truncated_mirror",
      () => asked((url) => url.replace(/(enc=.{30})../, "$1"), { mac: true, tamper: true }),
    ],
    ["a c of zeros", "wrong_offset", () => asked((url) => url.replace(/c=.*$/, `c=${"0".repeat(16)}`))],
    ["a truncated URL", "truncated_mirror", () => asked((url) => url.replace(/(e=.{30})../, "$1"))],
    [
      "offsets of another template (nfc-developer/sdm-backend#31)",
      "wrong_offset",
      () => ask(withSettings((settings) => ({ ...settings, offsets: moved(settings, 3) }))),
    ],
    [
      "offsets that are too small",
      "wrong_offset",
      () => ask(withSettings((settings) => ({ ...settings, offsets: moved(settings, -2) }))),
    ],
    [
      "an e that begins one digit late, and whose last digit is behind the URL",
      "wrong_offset",
      () => ask(late({ picc_data: 1 }, onlyE), { mirrors: onlyE }),
    ],
    [
      "an e that begins two digits late, of a tag whose UID is not known",
      "wrong_offset",
      () => ask(late({ picc_data: 2 }, onlyE), { mirrors: onlyE, expected: { uid: null } }),
    ],
    ["a c that begins one digit late", "wrong_offset", () => ask(late({ mac: 1, mac_input: 1 }))],
    [
      "a c that begins two digits late, over the text from where it belongs",
      "wrong_offset",
      () => ask(late({ mac: 2 })),
    ],
    ["a c over its own name", "wrong_offset", () => ask(late({ mac: -1, mac_input: -1 }))],
    ["a c over all of its name", "wrong_offset", () => ask(late({ mac: -2, mac_input: -2 }))],
    [
      "meta and file key swapped (nfc-developer/sdm-backend#5)",
      "keys_swapped",
      () => ask(withKeys({ 1: key(2), 2: key(1) })),
    ],
    [
      "the MAC computed with the key of slot 0 (Aadil1505/ntag-424-personalization#2)",
      "wrong_key_slot",
      () => ask(withSettings((settings) => ({ ...settings, file_read: 0 }))),
    ],
    [
      "e encrypted with the key of slot 3 (AndroidCrypto/Ntag424SdmFeature#1)",
      "wrong_key_slot",
      () => ask(withSettings((settings) => ({ ...settings, meta_read: 3 }))),
    ],
    [
      "a factory key of zeros left in place (Aadil1505/ntag-424-personalization#1)",
      "factory_key",
      () => ask(withKeys({ 1: Buffer.alloc(16) })),
    ],
    ["keys of another version", "wrong_key_version", () => ask(tag({ source: versions[2] }))],
    ["keys of another key set", "wrong_key_set", () => ask(tag({ source: other }))],
    ["an unknown key", "wrong_meta_key", () => ask(withKeys({ 2: Buffer.alloc(16, 9) }))],
    ["an unknown file key", "wrong_file_key", () => ask(withKeys({ 1: Buffer.alloc(16, 9) }))],
    [
      "a MAC over a different text than ordered (johnnyb/ntag424-java#9)",
      "mac_input",
      () =>
        ask(
          withSettings((settings) => ({
            ...settings,
            offsets: { ...settings.offsets, mac_input: settings.offsets.picc_data },
          })),
        ),
    ],
    [
      "a MAC over the whole URL",
      "mac_input",
      () =>
        asked((url) => {
          const covered = url.slice(0, -16)
          const mac = macFor(sessionMacKey(key(1), uid, 5), Buffer.from(covered, "latin1"))
          return covered + upperHex(mac)
        }),
    ],
    [
      "a MAC over no text at all",
      "mac_input",
      () => {
        const mirrors = { mac: true, tamper: true }
        const empty = withSettings(
          ({ offsets, ...rest }) => ({ ...rest, offsets: { ...offsets, mac_input: offsets.mac } }),
          mirrors,
        )
        return ask(empty, { mirrors })
      },
    ],
    [
      "a MAC over a different text, in a lower-case URL",
      "mac_input",
      () => {
        const other = withSettings(({ offsets, ...rest }) => ({
          ...rest,
          offsets: { ...offsets, mac_input: offsets.picc_data },
        }))
        const url = readAddress(other, 5).toLowerCase()
        return diagnose({ url, file_settings: null, expected: expectedTag(), candidates: all })
      },
    ],
    ["overlapping, truncated values", "wrong_offset", () => asked((url) => url.replace(/e=.{4}/, "e=0z"))],
    [
      "UID only, by the keys of another version",
      "wrong_key_version",
      () => {
        const source = versions[2]
        return ask(withSettings((settings) => ({ ...settings, counter: false }), withMac, source))
      },
    ],
    [
      "the first half of the MAC (johnnyb/ntag424-java#15: the short CMAC)",
      "mac_half",
      () => {
        const full = cmac(sessionMacKey(key(1), uid, 5), new Uint8Array(0))
        return asked((url) => url.replace(/c=.*$/, `c=${upperHex(full.subarray(0, 8))}`))
      },
    ],
    ["no MAC though one was ordered", "mac_missing", () => asked((url) => url.replace(/&c=.*$/, ""))],
    [
      "UID only, without the counter in PICCData",
      "uid_only",
      () => ask(withSettings((settings) => ({ ...settings, counter: false }))),
    ],
    [
      "counter only, without the UID in PICCData",
      "uid_missing",
      () => ask(withSettings((settings) => ({ ...settings, uid: false }))),
    ],
    [
      "no counter mirror, and the UID in plaintext",
      "counter_mirror_missing",
      () => asked(() => `https://tap.example/t/${chip_id}?uid=04112233445566&c=94EED9EE65337086`),
    ],
    [
      "UID and counter in plaintext",
      "plain_mirror",
      () => asked(() => `https://tap.example/t/${chip_id}?uid=04112233445566&ctr=00003D&c=94EED9EE65337086`),
    ],
    [
      "values under another service's parameter names",
      "wrong_parameter",
      () => asked((url) => url.replace("?e=", "?picc_data=").replace("&c=", "&cmac=")),
    ],
    [
      "only the MAC under another service's parameter name",
      "wrong_parameter",
      () => asked((url) => url.replace("&c=", "&cmac=")),
    ],
    ["a URL with & escaped for HTML", "wrong_parameter", () => asked((url) => url.replace("&c=", "&amp;c="))],
    [
      "LRP mode enabled",
      "lrp",
      () => asked((url) => url.replace(/e=[^&]*/, `e=${"0123456789ABCDEF".repeat(3)}`)),
    ],
    [
      "c directly after e, as many digits as in LRP mode, which is irreversible",
      "wrong_offset",
      () => asked((url) => url.replace("&c=", "")),
    ],
    [
      "c directly after e, with factory keys",
      "wrong_offset",
      () => {
        const url = readAddress(withKeys({ 1: zeros, 2: zeros }), 5).replace("&c=", "")
        return diagnose({ url, file_settings: null, expected: expectedTag(), candidates: all })
      },
    ],
    [
      "mirroring never enabled",
      "mirroring_off",
      () => ask(withSettings((settings) => ({ ...settings, sdm: false }))),
    ],
    [
      "settings without mirroring, of a tag that mirrors",
      "mirroring_off",
      () => {
        const off = withSettings((settings) => ({ ...settings, sdm: false }))
        return ask(tag(), { file_settings: settingsAnswer(off) })
      },
    ],
    ["a lower-case URL", "lower_case", () => asked((url) => url.toLowerCase())],
    ["no values at all", "no_values", () => asked(() => `https://tap.example/t/${chip_id}`)],
    ["something that is not a URL", "not_an_address", () => asked(() => "04A0B1C2D3")],
    ["two swapped tags", "other_chip", () => ask({ ...tag(), uid: "04998877665544" })],
    [
      "the file left writable (johnnyb/ntag424-java#17)",
      "file_writable",
      () => {
        const open = withSettings((settings) => ({
          ...settings,
          access: { ...settings.access, write: "free" },
        }))
        return ask(open, { file_settings: settingsAnswer(open) })
      },
    ],
    [
      "a read limit",
      "settings_differ",
      () => {
        const limited = withSettings((settings) => ({ ...settings, counter_limit: true }))
        return ask(tag(), { file_settings: settingsAnswer(limited) })
      },
    ],
    [
      "tamper detection never enabled",
      "wire_off",
      () => {
        const mirrors = { mac: true, tamper: true }
        return ask({ ...tag({ mirrors }), tamper: "II" }, { mirrors })
      },
    ],
    [
      "encrypted content without the tamper status",
      "wire_unreadable",
      () => {
        const mirrors = { mac: true, tamper: true }
        return ask(withSettings(withOffsets({ tamper: null }), mirrors), { mirrors })
      },
    ],
    [
      "the payload of ChangeFileSettings instead of the response to GetFileSettings",
      "not_file_settings",
      () => ask(tag(), { file_settings: hex(tag().file_settings_hex) }),
    ],
    [
      "encrypted content ordered but missing",
      "enc_missing",
      () => asked((url) => url.replace(/&enc=[^&]*/, ""), { mac: false, tamper: true }),
    ],
    [
      "encrypted content that was not ordered",
      "enc_not_ordered",
      () => asked((url) => url.replace("&c=", "&enc=00112233445566778899AABBCCDDEEFF&c=")),
    ],
  ]
  for (const [name, verdict, play] of mistakes)
    test(`${name}: ${verdict}`, () => {
      const found = play()
      expect(found.verdict).toBe(verdict)
      if (verdict !== "lower_case") expect(found.checks.at(-1)?.passed).toBe(false)
      expect(found.advice).toBe(verdictAdvice[verdict])
    })

  const bothWrong: [string, Verdict, () => SoftwareTag][] = [
    ["factory zeros in all slots", "factory_key", () => withKeys({ 0: zeros, 1: zeros, 2: zeros })],
    ["both keys swapped", "keys_swapped", () => withKeys({ 1: key(2), 2: key(1) })],
    ["the master key in both slots", "master_key_on_tag", () => withKeys({ 1: master, 2: master })],
    ["keys of another version in both slots", "wrong_key_version", () => tag({ source: versions[2] })],
    ["keys of another key set in both slots", "wrong_key_set", () => tag({ source: other })],
    [
      "only the meta key of another version",
      "wrong_key_version",
      () => withKeys({ 2: keyOf(versions[2], 2) }),
    ],
    ["only the factory meta key", "factory_key", () => withKeys({ 2: zeros })],
  ]
  for (const [name, verdict, play] of bothWrong)
    test(`${name}, also for a tag whose UID is unknown: ${verdict}`, () => {
      expect(ask(play()).verdict).toBe(verdict)
      expect(ask(play(), { expected: { uid: null } }).verdict).toBe(verdict)
    })

  test("a meta key is identified without the MAC if the UID is known or the scheme needs none", () => {
    const strange = withKeys({ 1: Buffer.alloc(16, 9), 2: zeros })
    expect(ask(strange).verdict).toBe("factory_key")
    const mirrors = { mac: false, tamper: false }
    const played = { ...tag({ mirrors }), keys: tag().keys.map(() => upperHex(zeros)) }
    expect(ask(played, { mirrors, expected: { uid: null } }).verdict).toBe("factory_key")
  })

  test("noise that looks like a low counter is not diagnosed as a missing UID", () => {
    const strange = withKeys({ 2: Buffer.alloc(16, 9) })
    const padding = Buffer.alloc(5)
    const read = () => readAddress(strange, 5, { padding })
    const opened = () => openPicc(key(2), new URL(read()).searchParams.get("e") ?? "")
    while (opened()[3] !== 0 || opened()[0] === 0x40) padding.writeUInt32LE(padding.readUInt32LE() + 1)
    const found = diagnose({ url: read(), file_settings: null, expected: expectedTag(), candidates: all })
    expect(found.verdict).toBe("wrong_meta_key")
  })

  test("a meta key that opens e by chance, without a MAC to confirm it, is not named for a tag without a known UID", () => {
    const strange = withKeys({ 1: Buffer.alloc(16, 9), 2: zeros })
    const found = ask(strange, { expected: { uid: null } })
    expect([found.verdict, found.opened_with]).toEqual(["wrong_meta_key", null])
    expect(found.checks.at(-1)?.detail).toContain("to values that match c")
  })

  const details: [told: string, () => ReturnType<typeof ask>][] = [
    ["the file key is where the meta key belongs", () => ask(withKeys({ 1: key(2), 2: key(1) }))],
    [
      "the tag uses the key of slot 0 as its file key, which belongs in slot 1",
      () => ask(withSettings((settings) => ({ ...settings, file_read: 0 }))),
    ],
    [
      "the meta key on the tag is that of key set Autumn, version 2, not of key set Autumn, version 1",
      () => ask(tag({ source: versions[2] })),
    ],
    [
      "c has 14 digits instead of 16; e was encrypted with key set Autumn, version 1",
      () => asked((url) => url.slice(0, -2)),
    ],
    [
      "c has 18 digits instead of 16; e was encrypted with key set Autumn, version 1",
      () => asked((url) => `${url}00`),
    ],
    [
      "the value of e has another name: picc_data; e was encrypted with key set Autumn, version 1",
      () => asked((url) => url.replace("?e=", "?picc_data=")),
    ],
    [
      "the value of e has another name: E; e was encrypted with key set Autumn, version 1",
      () => asked((url) => url.replace("?e=", "?E=").replace("&c=", "&C=")),
    ],
    [
      "UID and read counter are in plain text (UID=…), and e is missing",
      () => asked(() => `https://tap.example/t/${chip_id}?UID=04112233445566&ctr=00003D`),
    ],
    [
      "UID and read counter are in plain text (uid=…), and e is missing",
      () => asked(() => `https://tap.example/t/${chip_id}?uid=04112233445566&ctr=00003D`),
    ],
    [
      "only the UID is there, in plain text (uid=…); the read counter is not mirrored",
      () => asked(() => `https://tap.example/t/${chip_id}?uid=04112233445566`),
    ],
    [
      "the value of c has another name: cmac; e was encrypted with key set Autumn, version 1",
      () => asked((url) => url.replace("&c=", "&cmac=")),
    ],
    [
      "c follows e without &c=; e was encrypted with key set Autumn, version 1",
      () => asked((url) => url.replace("&c=", "")),
    ],
    [
      "the MAC covers the text {e}&c=",
      () => ask(withSettings((settings) => withOffsets({ mac_input: settings.offsets.picc_data })(settings))),
    ],
  ]
  test.each(details)("in words: %s", (told, play) => {
    expect(play().checks.at(-1)?.detail).toBe(told)
  })

  test.each(["04A9FC5FE7136Ax00000F", "04A9FC5FE7136A00000F", "04CE1A7FA5C799x000017x94EED9EE65337086"])(
    "UID and counter in plaintext are recognized in one parameter: %s",
    (mirrors) => {
      const { verdict, checks } = asked(() => `https://tap.example/t/${chip_id}?m=${mirrors}`)
      expect([verdict, checks.at(-1)?.detail]).toEqual([
        "plain_mirror",
        "UID and read counter are in plain text (m=…), and e is missing",
      ])
    },
  )

  test("a value that is too short is reported with the number of zeros that its placeholder has", () => {
    const { advice } = asked((url) => url.slice(0, -2))
    expect(advice).toContain("e and enc need 32, c needs 16")
    expect(advice).not.toContain("the placeholder of e")
  })

  test("UID only is diagnosed by what is missing: the padding is random, so the value still changes", () => {
    const uidOnly = withSettings((settings) => ({ ...settings, counter: false }))
    expect(readAddress(uidOnly, 5)).not.toBe(readAddress(uidOnly, 5))
    expect(ask(uidOnly).advice).toContain("contains no counter, and an old value could be used forever")
  })

  test("no advice for an imported tag names a manifest, which it does not have", () => {
    // An imported chip has one version of its keys only.
    const never: Verdict[] = ["wrong_key_version"]
    const advised = Object.entries({ ...verdictAdvice, ...importedAdvice })
    expect(advised.filter(([, advice]) => advice.includes("manifest")).map(([verdict]) => verdict)).toEqual(
      never,
    )
  })

  test("what an imported tag lacks is explained without a manifest", () => {
    const imported = { ...autumn[0], key_set_id: null, master: null }
    const url = readAddress(tag(), 5)
    for (const [address, mac_input, verdict] of [
      [url, "{e}&c=", "mac_input"],
      [url.replace("&c=", `&enc=${"0A".repeat(16)}&c=`), "", "enc_not_ordered"],
    ] as const) {
      const expected = expectedTag({ keys: imported, mac_input })
      const found = diagnose({ url: address, file_settings: null, expected, candidates: all })
      expect(found.verdict).toBe(verdict)
      expect(found.advice).toStartWith("Import the chip again")
      expect(found.advice).not.toContain("manifest")
    }
  })

  test("a MAC is searched for in as much text as a tag's file holds, however long the URL is", () => {
    const fileKey = versions[1].keyAt(versions[1].roles.file_read, { chip_id, uid })
    const before = `${readAddress(tag({ mirrors: onlyE }), 5)}&more=${"a".repeat(1_000)}&c=`
    const verdicts = [NDEF_FILE_BYTES, NDEF_FILE_BYTES + 1].map((size) => {
      const c = macFor(sessionMacKey(fileKey, uid, 5), Buffer.from(before.slice(-size)))
      return asked(() => `${before}${upperHex(c)}`).verdict
    })
    expect(verdicts).toEqual(["mac_input", "wrong_file_key"])
  })

  test("keys are tried if something has as many digits as e, including the chip's own", () => {
    const imported = { ...candidateOf("", "", other, master), name: "its own keys", key_set_id: null }
    const url = readAddress(tag({ source: other }), 5).replace("?e=", "?picc_data=")
    const expected = expectedTag({ keys: imported })
    const found = diagnose({ url, file_settings: null, expected, candidates: autumn })
    expect(found.opened_with).toBe(imported)
    for (const change of [
      () => `https://tap.example/t/${chip_id}`,
      () => chip_id,
      (url: string) => url.replace(/(e=.{30})../, "$1"),
    ]) {
      const { is_tried, opened_with } = asked(change)
      expect([is_tried, opened_with]).toEqual([false, null])
    }
  })

  test("and every verdict has a test", () => {
    const tested = new Set<Verdict>(mistakes.map(([, verdict]) => verdict))
    const elsewhere: Verdict[] = ["accepted", "already_scanned", "unknown_chip"]
    expect((Object.keys(verdictAdvice) as Verdict[]).filter((each) => !tested.has(each)).sort()).toEqual(
      elsewhere.sort(),
    )
  })
})

describe("an unknown chip", () => {
  test("is recognized, with the key set that encoded it", () => {
    const found = diagnose({
      url: readAddress(tag(), 5),
      file_settings: null,
      expected: null,
      candidates: all,
    })
    expect([found.verdict, found.opened_with?.name]).toEqual(["unknown_chip", "key set Autumn, version 1"])
  })

  const renamed: [DerivingScheme, from: string, to: string, name: string][] = [
    ["sdm-backend", `t/${chip_id}?e=`, "tag?picc_data=", "picc_data"],
    ["boltcard", `https://tap.example/t/${chip_id}?e=`, "lnurlw://tap.example/scan?p=", "p"],
  ]
  test.each(renamed)(
    "whose values have the names of %s is recognized as such, with the key set that encoded it",
    (scheme, from, to, name) => {
      const source = keySourceOf(scheme, master, 1)
      const url = readAddress(tag({ source }), 5).replace(from, to)
      const candidates = [...all, candidateOf(scheme, "3", source, master)]
      const found = diagnose({ url, file_settings: null, expected: null, candidates })
      const opener = `key set ${scheme}, version 1`
      expect([found.verdict, found.opened_with?.name, found.is_tried]).toEqual([
        "wrong_parameter",
        opener,
        true,
      ])
      expect(found.checks.at(-1)?.detail).toBe(
        `the value of e has another name: ${name}; e was encrypted with ${opener}`,
      )
    },
  )

  test("that no key set opens has unknown keys", () => {
    const strange = withKeys({ 2: Buffer.alloc(16, 9) })
    const found = diagnose({
      url: readAddress(strange, 5),
      file_settings: null,
      expected: null,
      candidates: all,
    })
    expect([found.verdict, found.opened_with]).toEqual(["unknown_chip", null])
  })
})

test("malformed settings, and a URL that no browser opens, are reported as such", () => {
  const payload = hex(tag().file_settings_hex)
  const ofOtherFile = settingsAnswer(tag())
  ofOtherFile.writeUIntLE(128, 4, 3)
  for (const [file_settings, detail] of [
    [hex("0102"), "this is not the response to GetFileSettings for file 02h"],
    [
      payload,
      "this is the payload of ChangeFileSettings (file_settings_hex), not the response to GetFileSettings",
    ],
    [ofOtherFile, "these are the settings of a file of 128 bytes; file 02h has 256"],
  ] as const) {
    const found = ask(tag(), { file_settings })
    expect([found.verdict, found.checks.at(-1)?.detail]).toEqual(["not_file_settings", detail])
  }
  expect(readTagUrl("https://tap.example/t/0A1B2C3D4E?e=00")).not.toBeNull()
  for (const text of ["javascript:alert(1)", "ftp://tap.example/t/0A1B2C3D4E?e=00", "nothing"])
    expect(readTagUrl(text)).toBeNull()
})

test("no diagnosis contains a key", () => {
  const keys = [master, otherMaster, ...[0, 1, 2, 3, 4].map((slot) => key(slot as 0))].map(upperHex)
  for (const found of [ask(tag()), ask(withKeys({ 2: master })), ask(tag({ source: other }))]) {
    const { opened_with: _keys, ...told } = found
    for (const secret of keys) expect(JSON.stringify(told).toUpperCase()).not.toContain(secret)
  }
})

const versions: Record<1 | 2, KeySource> = {
  1: keySourceOf("an10922", master, 1),
  2: keySourceOf("an10922", otherMaster, 2),
}
const other = keySourceOf("an10922", hex("11111111111111111111111111111111"), 1)
const autumn = [
  candidateOf("Autumn", "1", versions[1], master),
  candidateOf("Autumn", "1", versions[2], otherMaster),
] as const
const all = [...autumn, candidateOf("Spring", "2", other, hex("11111111111111111111111111111111"))]

function candidateOf(
  name: string,
  key_set_id: string,
  source: KeySource,
  itsMaster: Uint8Array,
): KeyCandidate {
  return {
    name: `key set ${name}, version ${source.version}`,
    key_set_name: name,
    key_set_id,
    version: source.version,
    roles: source.roles,
    master: itsMaster,
    keyAt: (slot, asked) =>
      source.needs_uid && !asked.uid && slot !== source.roles.meta_read ? null : source.keyAt(slot, asked),
  }
}

function expectedTag(changes: Partial<ExpectedTag> = {}, mirrors = withMac): ExpectedTag {
  return {
    chip_id,
    uid,
    counter: 4,
    has_mac: mirrors.mac,
    mac_input: macInputOf(mirrors),
    has_tamper: mirrors.tamper,
    keys: autumn[0],
    awaited_version: null,
    ...changes,
  }
}

/** Scans a tag and diagnoses it. */
function ask(
  played: SoftwareTag,
  options: {
    read?: number
    expected?: Partial<ExpectedTag>
    mirrors?: Mirrors
    file_settings?: Uint8Array
  } = {},
) {
  const { read = 5, expected = {}, mirrors = withMac, file_settings = null } = options
  const url = readAddress(played, read)
  return diagnose({ url, file_settings, expected: expectedTag(expected, mirrors), candidates: all })
}

/** Scans a good tag and alters the URL on its way. */
function asked(change: (url: string) => string, mirrors = withMac) {
  const url = change(readAddress(tag({ mirrors }), 5))
  return diagnose({ url, file_settings: null, expected: expectedTag({}, mirrors), candidates: all })
}

function tag(
  options: {
    source?: KeySource
    mirrors?: Mirrors
    template?: string
    scheme?: DerivingScheme
    short?: number
  } = {},
): SoftwareTag {
  const { source = versions[1], mirrors = withMac, short = 0 } = options
  const line = manifestLine(source, options.template ?? template, mirrors, { chip_id, uid })
  const file = hex(line.ndef_hex)
  // A mistyped template: the placeholder of e has fewer zeros, so everything after it starts further left.
  const cut = line.offsets.picc_data + 32 - short
  const ndef = short === 0 ? file : Buffer.concat([file.subarray(0, cut), file.subarray(cut + short)])
  if (short > 0) {
    ndef[1] = ndef.readUInt8(1) - short
    ndef[4] = ndef.readUInt8(4) - short
  }
  const settings = settingsOf(line.file_settings_hex)
  if (short > 0 && settings.offsets.mac !== null) {
    settings.offsets.mac -= short
    settings.offsets.mac_input = settings.offsets.mac
  }
  return {
    uid: upperHex(uid),
    ndef_hex: upperHex(ndef),
    file_settings_hex: upperHex(encodeFileSettings(settings)),
    keys: line.keys.map((each) => each.key),
    counter: 0,
    tamper: "CC",
  }
}

function withKeys(changes: Record<number, Uint8Array>): SoftwareTag {
  const played = tag()
  return {
    ...played,
    keys: played.keys.map((each, slot) => (changes[slot] ? upperHex(changes[slot]) : each)),
  }
}

function withSettings(
  change: (settings: FileSettings) => FileSettings,
  mirrors = withMac,
  source = versions[1],
): SoftwareTag {
  const played = tag({ mirrors, source })
  const settings = change(settingsOf(played.file_settings_hex))
  return { ...played, file_settings_hex: upperHex(encodeFileSettings(settings)) }
}

function settingsOf(text: string): FileSettings {
  const settings = decodeFileSettings(hex(text))
  if (!settings) throw new Error("the manifest has no settings")
  return settings
}

const onlyE: Mirrors = { mac: false, tamper: false }

/** A tag with offsets that are this much too large, and with the room behind its URL that a tag's file has. */
function late(by: Partial<Record<"picc_data" | "mac" | "mac_input", number>>, mirrors = withMac) {
  const played = withSettings(({ offsets, ...rest }) => {
    const moved = Object.entries(by).map(([name, more]) => [name, (offsets[name as "mac"] ?? 0) + more])
    return { ...rest, offsets: { ...offsets, ...Object.fromEntries(moved) } }
  }, mirrors)
  return { ...played, ndef_hex: played.ndef_hex.padEnd(2 * NDEF_FILE_BYTES, "0") }
}

/** Settings that differ from the manifest's in one respect each, with the expected description. */
const otherSettings: [(settings: FileSettings) => FileSettings, string][] = [
  [withAccess({ read: 2 }), "Read access is key 2, not free"],
  [withAccess({ write: "never" }), "Write access is never, not key 0"],
  [withAccess({ read_write: 3 }), "ReadWrite access is key 3, not key 0"],
  [withAccess({ change: 4 }), "Change access is key 4, not key 0"],
  [withAccess({ change: "never" }), "Change access is never, not key 0"],
  [(all) => ({ ...all, communication: "full" }), "the communication mode is full, not plain"],
  [(all) => ({ ...all, communication: "mac" }), "the communication mode is mac, not plain"],
  [(all) => ({ ...all, uid: false }), "the UID mirror (SDMOptions bit 7) is off, not on"],
  [(all) => ({ ...all, counter: false }), "the SDMReadCtr mirror (SDMOptions bit 6) is off, not on"],
  [(all) => ({ ...all, ascii: false }), "ASCII encoding (SDMOptions bit 0) is off, not on"],
  [(all) => ({ ...all, meta_read: 3 }), "SDMMetaRead is key 3, not key 2"],
  [(all) => ({ ...all, file_read: 3 }), "SDMFileRead is key 3, not key 1"],
  [(all) => ({ ...all, counter_read: "free" }), "SDMCtrRet is free, not key 1"],
  [withOffsets({ picc_data: 35 }), "PICCDataOffset is 35, not 34"],
  [withOffsets({ mac_input: 34 }), "SDMMACInputOffset is 34, not 69"],
  [withOffsets({ mac: 70, mac_input: 70 }), "SDMMACInputOffset is 70, not 69; SDMMACOffset is 70, not 69"],
]

function withAccess(changes: Partial<FileSettings["access"]>) {
  return (settings: FileSettings) => ({ ...settings, access: { ...settings.access, ...changes } })
}

function withOffsets(changes: Partial<FileSettings["offsets"]>) {
  return (settings: FileSettings) => ({ ...settings, offsets: { ...settings.offsets, ...changes } })
}

/** The GetFileSettings response of a tag: its settings with the file's type and size. */
function settingsAnswer({ file_settings_hex }: SoftwareTag): Buffer {
  const payload = hex(file_settings_hex)
  return Buffer.concat([hex("00"), payload.subarray(0, 3), hex("000100"), payload.subarray(3)])
}

function moved({ offsets }: FileSettings, by: number): FileSettings["offsets"] {
  return { ...offsets, picc_data: (offsets.picc_data ?? 0) + by }
}

function key(slot: KeySlot): Buffer {
  return keyOf(versions[1], slot)
}

function keyOf(source: KeySource, slot: KeySlot): Buffer {
  return source.keyAt(slot, { chip_id, uid })
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex")
}

function upperHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase()
}
