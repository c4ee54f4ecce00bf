/** One line or entry of a file. `place` is its place there, such as `line 7` or `entry 7`. */
type ChipRecord = { place: string; fields: Record<string, unknown>; problem?: string }

/** Everything wrong with a file, one sentence per place, and the outcome. Never quotes a key. */
export class ChipFileError extends Error {
  override name = "ChipFileError"
  constructor(
    readonly problems: string[],
    readonly outcome = "Nothing was imported: the file has errors.",
  ) {
    super(problems.join("\n"))
  }
}

/** Reads the entries of a JSON array, one in memory at a time. Throws `ChipFileError`. */
export function* jsonRecords(pieces: Iterable<string>): Generator<ChipRecord> {
  let number = 0
  for (const text of jsonEntries(pieces)) {
    const place = `entry ${++number}`
    const entry = parsed(text)
    if (!entry || typeof entry !== "object" || Array.isArray(entry))
      yield { place, fields: {}, problem: "is not an object" }
    else yield { place, fields: entry as Record<string, unknown> }
  }
}

/** Reads the lines of a CSV file below its header, which `wrongHeader` checks. Throws `ChipFileError`. */
export function* csvRecords(
  pieces: Iterable<string>,
  wrongHeader: (header: string, names: string[]) => string[],
): Generator<ChipRecord> {
  let number = 0
  let names: string[] = []
  for (const row of linesOf(pieces)) {
    number++
    if (number === 1) {
      names = row.split(",").map((name) => name.trim())
      const wrong = wrongHeader(row, names)
      if (wrong.length > 0) throw new ChipFileError([`line 1: ${wrong.join("; ")}`])
    } else if (row.trim() !== "") yield csvRecord(`line ${number}`, row, names)
  }
}

function csvRecord(place: string, row: string, names: string[]): ChipRecord {
  if (row.includes('"')) return { place, fields: {}, problem: "has quotation marks: remove them" }
  const values = row.split(",").map((value) => value.trim())
  if (values.length !== names.length)
    return { place, fields: {}, problem: `has ${values.length} values for ${names.length} columns` }
  const given = names.map((name, column) => [name, values[column]]).filter(([, value]) => value !== "")
  return { place, fields: Object.fromEntries(given) }
}

function* linesOf(pieces: Iterable<string>): Generator<string> {
  let open = ""
  for (const piece of pieces) {
    const text = open + piece
    // The `\n` of a line break may be in the next piece.
    const held = text.endsWith("\r") ? "\r" : ""
    const lines = text.slice(0, text.length - held.length).split(/\r\n|\n|\r/)
    open = (lines.pop() ?? "") + held
    yield* lines
  }
  yield* open.split(/\r\n|\n|\r/)
}

/**
 * Yields the texts between the brackets and commas of an array, whether or not they are JSON. Throws `ChipFileError`.
 */
function* jsonEntries(pieces: Iterable<string>): Generator<string> {
  let text = ""
  let at = 0
  let depth = 0
  let quoted = false
  let count = 0
  let isClosed = false
  for (const piece of pieces) {
    text += piece
    if (depth === 0 && !isClosed) {
      const begin = /^\s*\[/.exec(text)
      if (!begin && text.trim() !== "") throw notAnArray(text, pieces)
      if (!begin) continue
      text = text.slice(begin[0].length)
      depth = 1
    }
    for (; at < text.length; at++) {
      const letter = text[at]
      if (isClosed) {
        if (letter?.trim() !== "") throw new ChipFileError([notJson])
        continue
      }
      if (letter === "\\" && quoted) at++
      else if (letter === '"') quoted = !quoted
      else if (quoted) continue
      else if (letter === "[" || letter === "{") depth++
      else if (letter === "]" || letter === "}") depth--
      const isEnd = depth === 0
      if (!isEnd && !(depth === 1 && letter === "," && !quoted)) continue
      const entry = text.slice(0, at)
      text = text.slice(at + 1)
      at = -1
      isClosed = isEnd
      if (!(isEnd && count === 0 && entry.trim() === "")) {
        count++
        yield entry
      }
    }
  }
  if (!isClosed) throw new ChipFileError([notJson])
}

const notJson = "the file is not valid JSON"

function notAnArray(start: string, rest: Iterable<string>): ChipFileError {
  parsed(start + [...rest].join(""))
  return new ChipFileError(["the file is not a JSON array of chips"])
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The engine's own message may quote the text, including a key.
    throw new ChipFileError([notJson])
  }
}
