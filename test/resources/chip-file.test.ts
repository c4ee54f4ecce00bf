import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { chipLines } from "../../src/resources/chip-stock/file.ts"
import { ChipFileError } from "../../src/resources/chip-stock/records.ts"

const chip = {
  chip_id: "00a1b2c3d4",
  uid: "04de5f1eacc040",
  meta_key: "0123456789abcdef0123456789abcdef",
  file_key: "fedcba9876543210fedcba9876543210",
}
const header = "chip_id,uid,meta_key,file_key,counter"
const row = Object.values(chip).join(",")

/** In pieces of a few characters, as a file may be streamed. */
function parseChipFile(text: string, format: "json" | "csv", size = 7) {
  return [...chipLines(text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [], format)]
}

function problems(text: string, format: "json" | "csv"): string[] {
  try {
    parseChipFile(text, format)
  } catch (error) {
    if (error instanceof ChipFileError) return error.problems
    throw error
  }
  return []
}

const hex = (digits: number) =>
  fc
    .array(fc.constantFrom(..."0123456789abcdefABCDEF"), { minLength: digits, maxLength: digits })
    .map((characters) => characters.join(""))
const anyChip = fc.record({
  chip_id: hex(10),
  uid: hex(14),
  meta_key: hex(32),
  file_key: hex(32),
  counter: fc.nat(0xffffff),
})
const anyChips = fc.uniqueArray(anyChip, {
  minLength: 1,
  maxLength: 20,
  comparator: (one, other) =>
    one.chip_id.toUpperCase() === other.chip_id.toUpperCase() ||
    one.uid.toUpperCase() === other.uid.toUpperCase(),
})

test("JSON and CSV produce the same chips, whatever the order of the columns", () => {
  const columns = ["chip_id", "uid", "meta_key", "file_key", "counter"] as const
  const order = fc.shuffledSubarray([...columns], { minLength: 5 })
  const newline = fc.constantFrom("\n", "\r\n")
  fc.assert(
    fc.property(anyChips, order, newline, (chips, names, end) => {
      const csv = [names.join(","), ...chips.map((each) => names.map((name) => each[name]).join(","))].join(
        end,
      )
      const withoutPlaces = (lines: ReturnType<typeof parseChipFile>) =>
        lines.map(({ place: _place, ...line }) => line)
      const fromCsv = withoutPlaces(parseChipFile(csv, "csv"))
      expect(fromCsv).toEqual(withoutPlaces(parseChipFile(JSON.stringify(chips), "json")))
      expect(fromCsv.map(({ chip_id }) => chip_id)).toEqual(chips.map(({ chip_id }) => chip_id.toUpperCase()))
      expect(fromCsv.map(({ counter }) => counter)).toEqual(chips.map(({ counter }) => counter))
    }),
  )
})

test("a missing or empty counter is 0", () => {
  expect(parseChipFile(JSON.stringify([chip]), "json")[0]?.counter).toBe(0)
  expect(parseChipFile(`${header}\n${row},`, "csv")[0]?.counter).toBe(0)
  expect(parseChipFile(`${header.replace(",counter", "")}\n${row}`, "csv")[0]?.counter).toBe(0)
})

test("a byte order mark, blank lines and spaces around values are ignored", () => {
  const [line] = parseChipFile(`\uFEFF${header}\n\n ${row.replaceAll(",", " , ")} ,7\n\n`, "csv")
  expect(line).toMatchObject({ place: "line 3", chip_id: "00A1B2C3D4", counter: 7 })
})

describe("the profile of a tag", () => {
  const profiles = (text: string, format: "json" | "csv") =>
    parseChipFile(text, format).map(({ has_mac, mac_input, tamper }) => ({ has_mac, mac_input, tamper }))

  test("is e alone, or e with c, if the file says nothing else", () => {
    expect(profiles(`${header}\n${row},`, "csv")).toEqual([{ has_mac: false, mac_input: "", tamper: false }])
  })

  test("is the same in CSV and JSON: tamper detection implies a MAC over enc", () => {
    const expected = [{ has_mac: true, mac_input: "{enc}&c=", tamper: true }]
    expect(profiles(`${header},tamper\n${row},,true`, "csv")).toEqual(expected)
    expect(profiles(JSON.stringify([{ ...chip, tamper: true }]), "json")).toEqual(expected)
    expect(profiles(`${header},mac\n${row},,true`, "csv")).toEqual([
      { has_mac: true, mac_input: "", tamper: false },
    ])
    expect(profiles(`${header},mac_input\n${row},,{e}&c=`, "csv")).toEqual([
      { has_mac: true, mac_input: "{e}&c=", tamper: false },
    ])
  })

  test("may be written as spreadsheets save it, whatever was typed: TRUE and FALSE", () => {
    expect(profiles(`${header},mac,tamper\n${row},,TRUE,FALSE`, "csv")).toEqual([
      { has_mac: true, mac_input: "", tamper: false },
    ])
  })

  test("is rejected with an explanation if no tag can have it", () => {
    const said = (fields: object) => problems(JSON.stringify([{ ...chip, ...fields }]), "json")
    expect(said({ tamper: "perhaps" })).toEqual(["entry 1: tamper must be true or false"])
    expect(said({ mac_input: "{x}" })[0]).toContain("mac_input must be the text of the URL that c covers")
    expect(said({ tamper: true, mac_input: "{e}&c=" })[0]).toContain("mac_input must contain {enc}")
    expect(said({ mac: false, mac_input: "{e}&c=" })[0]).toContain("is not allowed if mac is false")
  })
})

describe("every invalid line is reported", () => {
  test("with its line number and error in CSV", () => {
    const lines = [header, `${row},0`, "zz,04,1,2,3", `${row},16777216`, "only,two", `"${row}",0`]
    expect(problems(lines.join("\n"), "csv")).toEqual([
      "line 3: chip_id must be 10 hexadecimal digits; uid must be 14 hexadecimal digits; meta_key must be 32 hexadecimal digits; file_key must be 32 hexadecimal digits",
      "line 4: counter must be a whole number from 0 to 16777215",
      "line 5: has 2 values for 5 columns",
      "line 6: has quotation marks: remove them",
    ])
  })

  test("with its array index in JSON", () => {
    const { uid: _uid, ...withoutUid } = chip
    const entries = [
      withoutUid,
      null,
      [chip],
      { ...chip, counter: "1.5" },
      { ...chip, colour: 1 },
      { ...chip, uid: 4 },
      { ...chip, chip_id: "0000000000" },
    ]
    expect(problems(JSON.stringify(entries), "json")).toEqual([
      "entry 1: uid is missing",
      "entry 2: is not an object",
      "entry 3: is not an object",
      "entry 4: counter must be a whole number from 0 to 16777215",
      "entry 5: colour is not a field",
      "entry 6: uid must be 14 hexadecimal digits",
      "entry 7: chip_id must not be zero, which the contracts reject",
    ])
  })

  test("with the line that it duplicates, in either case of the digits", () => {
    const other = { ...chip, chip_id: "FFFFFFFFFF" }
    const repeated = { ...chip, chip_id: chip.chip_id.toUpperCase(), uid: "04FFFFFFFFFFFF" }
    expect(problems(JSON.stringify([chip, other, repeated]), "json")).toEqual([
      "entry 2: uid 04DE5F1EACC040 is that of entry 1",
      "entry 3: chip_id 00A1B2C3D4 is that of entry 1",
    ])
  })
})

describe("a file is rejected as a whole", () => {
  const wrong: Record<string, [string, "json" | "csv", string]> = {
    "when it is not JSON": ["{bad", "json", "the file is not valid JSON"],
    "when it is not an array": ["{}", "json", "the file is not a JSON array of chips"],
    "when it is empty": ["[]", "json", "the file has no chips"],
    "when it has no rows": [`${header}\n`, "csv", "the file has no chips"],
    "when a column is missing": ["chip_id,uid,meta_key\n", "csv", "line 1: the column file_key is missing"],
    "when a column occurs twice": [`${header},uid\n`, "csv", "line 1: the column uid occurs twice"],
    "when the columns are separated by anything but commas": [
      header.replaceAll(",", ";"),
      "csv",
      "line 1: separate the columns with commas",
    ],
    "when two columns have unknown names, which is reported once": [
      header.replace("meta_key", "meta key").replace("file_key", "file key"),
      "csv",
      "line 1: the column meta_key is missing; the column file_key is missing; a name that is not shown here is not one of the columns chip_id, uid, meta_key, file_key, counter, mac, tamper, mac_input",
    ],
    "when the header is missing": [row, "csv", `line 1: is not the header ${header}`],
  }
  for (const [when, [text, format, problem]] of Object.entries(wrong))
    test(when, () => expect(problems(text, format)).toEqual([problem]))
})

test("an error never quotes a key, whatever is wrong around it", () => {
  const spoilt = fc.tuple(
    anyChips,
    fc.constantFrom("json", "csv") as fc.Arbitrary<"json" | "csv">,
    fc.nat(400),
    fc.string(),
  )
  fc.assert(
    fc.property(spoilt, ([chips, format, at, noise]) => {
      const columns = ["chip_id", "uid", "meta_key", "file_key"] as const
      const csv = chips.map((each) => columns.map((name) => each[name]).join(",")).join("\n")
      const text = format === "json" ? JSON.stringify(chips) : csv
      const said = problems(text.slice(0, at) + noise + text.slice(at), format).join("\n")
      for (const { meta_key, file_key } of chips) {
        expect(said).not.toContain(meta_key)
        expect(said).not.toContain(file_key)
      }
    }),
  )
})
