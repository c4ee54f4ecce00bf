import { counted } from "../../../platform/counted.ts"
import { upperHex } from "../../../platform/upper-hex.ts"
import { cmac } from "../cmac.ts"
import { NDEF_FILE_BYTES } from "../encoding/ndef.ts"
import { coveredText, macFor, type SunMessage, sessionMacKey } from "../message.ts"
import { guesses, type KeyCandidate } from "./key-search.ts"
import type { ExpectedTag, Opening } from "./question.ts"
import type { TagUrl } from "./tag-url.ts"
import type { Fault } from "./verdicts.ts"

/** What the MAC says; `verdict` is null where it is right, or rightly absent. */
type MacFinding = { verdict: null; detail: string } | (Fault & { opened_with: KeyCandidate })

/** Checks `c` under the chip's file key. If it is wrong, searches for the text or the key that makes it right. */
export function judgeMac(
  expected: ExpectedTag,
  candidates: readonly KeyCandidate[],
  url: TagUrl,
  message: SunMessage,
  opening: Opening,
): MacFinding {
  const { keys, has_mac, mac_input } = expected
  if (message.c === undefined && !has_mac) return { verdict: null, detail: "no MAC, as ordered" }
  if (message.c === undefined) {
    const detail = "the URL has no c, although the chip was ordered with one"
    return { verdict: "mac_missing", detail, opened_with: keys }
  }
  const tag = { chip_id: expected.chip_id, uid: opening.uid }
  const fileKey = keys.keyAt(keys.roles.file_read, tag)
  if (fileKey) {
    if (macVouches(fileKey, opening, message, mac_input))
      return { verdict: null, detail: "c matches the file key" }
    const other =
      otherText(fileKey, url, message, opening) ??
      otherHalf(fileKey, message, opening, mac_input) ??
      latePlace(fileKey, message, opening, mac_input)
    if (other) return { ...other, opened_with: keys }
  }
  for (const guess of guesses("file_read", tag, keys, candidates))
    if (macVouches(guess.key, opening, message, mac_input))
      return { verdict: guess.verdict, detail: guess.detail, opened_with: guess.candidate ?? keys }
  return { verdict: "wrong_file_key", detail: "c matches no known key", opened_with: keys }
}

/** Returns whether `c` is right under this file key for this text. */
export function macVouches(
  fileKey: Uint8Array,
  { uid, counter }: Opening,
  message: SunMessage,
  macInput: string,
): boolean {
  return upperHex(macFor(sessionMacKey(fileKey, uid, counter), coveredText(macInput, message))) === message.c
}

/** Tries all texts that the MAC may cover: those in the URL that end right before `c` and that a tag's file can hold. */
function otherText(
  fileKey: Uint8Array,
  url: TagUrl,
  message: SunMessage,
  { uid, counter }: Opening,
): Fault | null {
  const session = sessionMacKey(fileKey, uid, counter)
  const isRight = (covered: string) => upperHex(macFor(session, Buffer.from(covered, "latin1"))) === message.c
  if (isRight(""))
    return { verdict: "mac_input", detail: "the MAC covers no text: both MAC offsets are the same" }
  const text = [message.e, message.enc ?? ""].reduce(
    (whole, value) => whole.replace(new RegExp(value || "$^", "i"), value),
    url.text,
  )
  const end = text.toUpperCase().lastIndexOf(message.c ?? "")
  // The time grows with the square of the longest text, and everybody else waits.
  for (let start = end - 1; start >= Math.max(0, end - NDEF_FILE_BYTES); start--) {
    const covered = text.slice(start, end)
    if (isRight(covered))
      return { verdict: "mac_input", detail: `the MAC covers the text ${quoted(covered, message)}` }
  }
  return null
}

function otherHalf(
  fileKey: Uint8Array,
  message: SunMessage,
  { uid, counter }: Opening,
  macInput: string,
): Fault | null {
  const full = cmac(sessionMacKey(fileKey, uid, counter), coveredText(macInput, message))
  const even = Buffer.from(full.filter((_byte, index) => index % 2 === 0))
  const halves = { first: full.subarray(0, 8), last: full.subarray(8), even }
  const found = Object.entries(halves).find(([, half]) => upperHex(half) === message.c)
  return found ? { verdict: "mac_half", detail: `c has the ${found[0]} bytes of the MAC` } : null
}

/** A MAC that begins behind its place, where zeros of the placeholder are left, and whose end is behind the URL. */
function latePlace(
  fileKey: Uint8Array,
  message: SunMessage,
  { uid, counter }: Opening,
  macInput: string,
): Fault | null {
  const c = message.c ?? ""
  const session = sessionMacKey(fileKey, uid, counter)
  for (let late = 1; late <= mostLate && c.startsWith("0".repeat(late)); late++)
    for (const between of ["", "0".repeat(late)]) {
      const covered = Buffer.concat([coveredText(macInput, message), Buffer.from(between)])
      if (!upperHex(macFor(session, covered)).startsWith(c.slice(late))) continue
      const detail = `c begins ${counted(late, "digit", "digits")} too late, and its end is cut off: SDMMACOffset is too large`
      return { verdict: "wrong_offset", detail }
    }
  return null
}

/** Half of the digits are left, which are not right by chance. */
const mostLate = 8

/** Returns the covered text with the names of the values in their places, to compare it with a template. */
function quoted(covered: string, { e, enc }: SunMessage): string {
  const named = covered.replace(e, "{e}")
  return enc ? named.replace(enc, "{enc}") : named
}
