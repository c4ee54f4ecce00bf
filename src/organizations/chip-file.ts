/** One chip as a file gives it. `place` is where it stands, such as `line 7` or `entry 7`. */
export type ChipLine = {
  place: string
  chip_id: string
  /** 14 upper-case hexadecimal digits. */
  uid: string
  /** 16 bytes each. */
  meta_key: Uint8Array
  file_key: Uint8Array
  /** The last read counter that was seen before the import; 0 when the file does not say. */
  counter: number
}

/** Everything that is wrong with a file, one sentence for each place. No key is ever quoted. */
export class ChipFileError extends Error {
  override name = "ChipFileError"
  constructor(readonly problems: string[]) {
    super(problems.join("\n"))
  }
}

/**
 * Reads a JSON array of objects, or CSV with a header line, of `chip_id`, `uid`, `meta_key`, `file_key` in
 * hexadecimal and optionally `counter`. Throws `ChipFileError` naming every bad line, duplicates included.
 */
export function parseChipFile(text: string, format: "json" | "csv"): ChipLine[] {
  const content = text.replace(/^\uFEFF/, "")
  const records = format === "json" ? jsonRecords(content) : csvRecords(content)
  const problems: string[] = []
  const lines: ChipLine[] = []
  const firstChips = new Map<string, string>()
  const firstUids = new Map<string, string>()
  for (const { place, fields, problem } of records) {
    const wrong = problem ? [problem] : wrongFields(fields)
    if (wrong.length === 0) {
      const line = chipLine(place, fields)
      wrong.push(...repeated(firstChips, "chip_id", line.chip_id, place))
      wrong.push(...repeated(firstUids, "uid", line.uid, place))
      lines.push(line)
    }
    if (wrong.length > 0) problems.push(`${place}: ${wrong.join("; ")}`)
  }
  if (problems.length > 0) throw new ChipFileError(problems)
  if (lines.length === 0) throw new ChipFileError(["the file has no chips"])
  return lines
}

type ChipRecord = { place: string; fields: Record<string, unknown>; problem?: string }

const hexDigits = { chip_id: 10, uid: 14, meta_key: 32, file_key: 32 }
const required = Object.keys(hexDigits)
const columns = [...required, "counter"]
const maxCounter = 0xffffff

function jsonRecords(content: string): ChipRecord[] {
  let document: unknown
  try {
    document = JSON.parse(content)
  } catch {
    // The engine's own message may quote the text, and with it a key.
    throw new ChipFileError(["the file is not valid JSON"])
  }
  if (!Array.isArray(document)) throw new ChipFileError(["the file is not a JSON array of chips"])
  return document.map((entry, index) => {
    const place = `entry ${index + 1}`
    if (!entry || typeof entry !== "object" || Array.isArray(entry))
      return { place, fields: {}, problem: "is not an object" }
    return { place, fields: entry }
  })
}

function csvRecords(content: string): ChipRecord[] {
  const [header = "", ...rows] = content.split(/\r\n|\n|\r/)
  const names = header.split(",").map((name) => name.trim())
  const wrong = wrongHeader(header, names)
  if (wrong.length > 0) throw new ChipFileError([`line 1: ${wrong.join("; ")}`])
  return rows.flatMap((row, index) => {
    if (row.trim() === "") return []
    const place = `line ${index + 2}`
    if (row.includes('"')) return [{ place, fields: {}, problem: "has quotation marks: leave them out" }]
    const values = row.split(",").map((value) => value.trim())
    if (values.length !== names.length)
      return [{ place, fields: {}, problem: `has ${values.length} values for ${names.length} columns` }]
    const given = names.map((name, column) => [name, values[column]]).filter(([, value]) => value !== "")
    return [{ place, fields: Object.fromEntries(given) }]
  })
}

function wrongHeader(header: string, names: string[]): string[] {
  if (header.includes('"')) return ["has quotation marks: leave them out"]
  if (header.includes(";") || header.includes("\t")) return ["separate the columns with commas"]
  if (!names.some((name) => required.includes(name))) return [`is not the header ${columns.join(",")}`]
  return [
    ...required.filter((name) => !names.includes(name)).map((name) => `the column ${name} is missing`),
    ...names
      .filter((name) => !columns.includes(name))
      .map((name) => `${spelled(name)} is not one of the columns ${columns.join(", ")}`),
    ...columns
      .filter((name) => names.indexOf(name) !== names.lastIndexOf(name))
      .map((name) => `the column ${name} is there twice`),
  ]
}

function wrongFields(fields: Record<string, unknown>): string[] {
  const wrong = Object.entries(hexDigits).flatMap(([name, digits]) => {
    const value = fields[name]
    if (value === undefined) return [`${name} is missing`]
    if (typeof value === "string" && value.length === digits && /^[0-9a-fA-F]+$/.test(value)) return []
    return [`${name} must be ${digits} hexadecimal digits`]
  })
  if (/^0+$/.test(String(fields.chip_id))) wrong.push("chip_id must not be zero, which the contracts refuse")
  if (fields.counter !== undefined && counterOf(fields.counter) === null)
    wrong.push(`counter must be a whole number from 0 to ${maxCounter}`)
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
  }
}

/** JSON gives a number, CSV its digits. */
function counterOf(value: unknown): number | null {
  const number = typeof value === "string" && /^\d{1,8}$/.test(value) ? Number(value) : value
  return typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= maxCounter
    ? number
    : null
}

function repeated(first: Map<string, string>, name: string, value: string, place: string): string[] {
  const earlier = first.get(value)
  if (!earlier) first.set(value, place)
  return earlier ? [`${name} ${value} is that of ${earlier}`] : []
}

/** A name out of the file. Where the header line was forgotten, it may be a key: only what looks like a name is shown. */
function spelled(name: string): string {
  return /^[A-Za-z_]{1,30}$/.test(name) ? name : "a name that is not shown here"
}
