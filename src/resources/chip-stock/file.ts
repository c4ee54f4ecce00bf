import { macInputOf } from "../../engine/sun/encoding/tag-address.ts"
import { createFirstPlaces, type FirstPlaces } from "./first-places.ts"
import { ChipFileError, csvRecords, jsonRecords } from "./records.ts"

/** One chip of a file. `place` is its place there, such as `line 7` or `entry 7`. */
export type ChipLine = {
  place: string
  chip_id: string
  /** 14 upper-case hexadecimal digits. */
  uid: string
  /** 16 bytes each. */
  meta_key: Uint8Array
  file_key: Uint8Array
  /** The last read counter seen before the import; 0 if the file has none. */
  counter: number
  /** Whether the tag sends the MAC `c`, the part of the URL that `c` covers, and whether `enc` has a tamper status. */
  has_mac: boolean
  mac_input: string
  tamper: boolean
}

/**
 * Reads the chips of a JSON array or a CSV file, which arrives in pieces. Bad lines and duplicates are reported
 * together, by a `ChipFileError` at the end, so no chip may be used before that.
 */
export function* chipLines(pieces: Iterable<string>, format: "json" | "csv"): Generator<ChipLine> {
  const records =
    format === "json" ? jsonRecords(withoutMark(pieces)) : csvRecords(withoutMark(pieces), wrongHeader)
  const problems: string[] = []
  const firstChips = createFirstPlaces()
  const firstUids = createFirstPlaces()
  let hasChips = false
  for (const { place, fields, problem } of records) {
    const wrong = problem ? [problem] : wrongFields(fields)
    if (wrong.length === 0) {
      const line = chipLine(place, fields)
      hasChips = true
      wrong.push(...repeated(firstChips, "chip_id", line.chip_id, place))
      wrong.push(...repeated(firstUids, "uid", line.uid, place))
      if (wrong.length === 0) yield line
    }
    if (wrong.length > 0) problems.push(`${place}: ${wrong.join("; ")}`)
  }
  if (problems.length > 0) throw new ChipFileError(problems)
  if (!hasChips) throw new ChipFileError(["the file has no chips"])
}

/** Removes a byte order mark from the beginning. */
function* withoutMark(pieces: Iterable<string>): Generator<string> {
  let isFirst = true
  for (const piece of pieces) {
    yield isFirst ? piece.replace(/^\uFEFF/, "") : piece
    isFirst = isFirst && piece === ""
  }
}

const hexDigits = { chip_id: 10, uid: 14, meta_key: 32, file_key: 32 }
const required = Object.keys(hexDigits)
const shownColumns = [...required, "counter"]
const columns = [...shownColumns, "mac", "tamper", "mac_input"]
const maxCounter = 0xffffff

function wrongHeader(header: string, names: string[]): string[] {
  if (header.includes('"')) return ["has quotation marks: remove them"]
  if (header.includes(";") || header.includes("\t")) return ["separate the columns with commas"]
  if (!names.some((name) => required.includes(name))) return [`is not the header ${shownColumns.join(",")}`]
  return [
    ...required.filter((name) => !names.includes(name)).map((name) => `the column ${name} is missing`),
    ...new Set(
      names
        .filter((name) => !columns.includes(name))
        .map((name) => `${spelled(name)} is not one of the columns ${columns.join(", ")}`),
    ),
    ...columns
      .filter((name) => names.indexOf(name) !== names.lastIndexOf(name))
      .map((name) => `the column ${name} occurs twice`),
  ]
}

function wrongFields(fields: Record<string, unknown>): string[] {
  const wrong = Object.entries(hexDigits).flatMap(([name, digits]) => {
    const value = fields[name]
    if (value === undefined) return [`${name} is missing`]
    if (typeof value === "string" && value.length === digits && /^[0-9a-fA-F]+$/.test(value)) return []
    return [`${name} must be ${digits} hexadecimal digits`]
  })
  if (/^0+$/.test(String(fields.chip_id))) wrong.push("chip_id must not be zero, which the contracts reject")
  if (fields.counter !== undefined && counterOf(fields.counter) === null)
    wrong.push(`counter must be a whole number from 0 to ${maxCounter}`)
  wrong.push(...wrongProfile(fields))
  for (const name of Object.keys(fields))
    if (!columns.includes(name)) wrong.push(`${spelled(name)} is not a field`)
  return wrong
}

function chipLine(place: string, fields: Record<string, unknown>): ChipLine {
  return {
    place,
    chip_id: String(fields.chip_id).toUpperCase(),
    uid: String(fields.uid).toUpperCase(),
    meta_key: Buffer.from(String(fields.meta_key), "hex"),
    file_key: Buffer.from(String(fields.file_key), "hex"),
    counter: counterOf(fields.counter ?? 0) ?? 0,
    ...profileOf(fields),
  }
}

function wrongProfile({ mac, tamper, mac_input }: Record<string, unknown>): string[] {
  const wrong = Object.entries({ mac, tamper })
    .filter(([, value]) => value !== undefined && flagOf(value) === null)
    .map(([name]) => `${name} must be true or false`)
  if (mac_input === undefined) return wrong
  const isText = typeof mac_input === "string" && /^[\x21-\x7e]{0,256}$/.test(mac_input)
  if (!isText || /[{}]/.test(mac_input.replace("{enc}", "").replace("{e}", "")))
    return [
      ...wrong,
      "mac_input must be the text of the URL that c covers, with {e} and {enc} for the values",
    ]
  if (flagOf(mac) === false) wrong.push("mac_input is not allowed if mac is false")
  if (flagOf(tamper) && !mac_input.includes("{enc}"))
    wrong.push(
      "mac_input must contain {enc} if tamper is true: otherwise the MAC does not protect the status",
    )
  return wrong
}

/** Returns what a tag mirrors. With a tamper wire it also sends `c`, by default over the URL from `enc` up to `c`. */
function profileOf(fields: Record<string, unknown>): Pick<ChipLine, "mac_input" | "has_mac" | "tamper"> {
  const tamper = flagOf(fields.tamper) ?? false
  const given = fields.mac_input as string | undefined
  const mac_input = given ?? macInputOf({ mac: true, tamper })
  return { mac_input, has_mac: tamper || mac_input !== "" || (flagOf(fields.mac) ?? false), tamper }
}

/** Reads a boolean of JSON or a word of CSV, which spreadsheets save as `TRUE` or `FALSE`; null for anything else. */
function flagOf(value: unknown): boolean | null {
  const word = typeof value === "string" ? value.toLowerCase() : value
  if (word === true || word === "true") return true
  return word === false || word === "false" ? false : null
}

/** Reads a number of JSON or digits of CSV; null for anything else. */
function counterOf(value: unknown): number | null {
  const number = typeof value === "string" && /^\d{1,8}$/.test(value) ? Number(value) : value
  return typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= maxCounter
    ? number
    : null
}

function repeated(first: FirstPlaces, name: string, value: string, place: string): string[] {
  const [word, number] = place.split(" ")
  const earlier = first.note(value, Number(number))
  return earlier === null ? [] : [`${name} ${value} is that of ${word} ${earlier}`]
}

/**
 * Returns a name from the file if it looks like one. Without a header line it might be a key, which must not be shown.
 */
function spelled(name: string): string {
  return /^[A-Za-z_]{1,30}$/.test(name) ? name : "a name that is not shown here"
}
