import { counted } from "../../../platform/counted.ts"
import { MANY_READS, NXP, openPicc, PICC_TAG, type SunMessage, UID_BYTES } from "../message.ts"
import { judgeMac, macVouches } from "./judge-mac.ts"
import { judgeSettings } from "./judge-settings.ts"
import { judgeWire } from "./judge-wire.ts"
import { FACTORY_KEY, type Guess, guesses, type KeyCandidate } from "./key-search.ts"
import type { ExpectedTag, Opening, TapQuestion } from "./question.ts"
import { misnamedMac, problemOfOthers, readTagUrl, type TagUrl } from "./tag-url.ts"
import {
  type Check,
  type CheckName,
  earlierKeysAdvice,
  type Fault,
  importedAdvice,
  type Verdict,
  verdictAdvice,
} from "./verdicts.ts"

/** The checks, the verdict, and what to do. `opened_with`: the keys that made the URL's values, if known. */
export type Diagnosis = {
  chip_id: string | null
  verdict: Verdict
  checks: Check[]
  advice: string
  opened_with: KeyCandidate | null
  /** Whether any key was tried: not if no value in the URL has the digits of `e`. */
  is_tried: boolean
  /** The UID in `e` under the chip's own key; null if that key does not decrypt it. */
  uid: Uint8Array | null
}

/**
 * Returns which check of a tap fails, and why, in the terms of the encoding station. Reads no clock and no database,
 * changes nothing and never includes a key. A guessed key is confirmed by the UID or the MAC, so a wrong one is taken
 * for right at most once in 65,536.
 */
export function diagnose(question: TapQuestion): Diagnosis {
  const { expected } = question
  const url = readTagUrl(question.url)
  const chip_id = url && (expected?.chip_id ?? url.chip_ids[0] ?? null)
  const checks: Check[] = []
  const steps = judgeAddress(question, url, chip_id)
  let step = steps.next()
  for (; !step.done; step = steps.next()) checks.push(step.value)
  const { check, verdict, detail, opened_with, uid = null } = step.value
  if (check) checks.push(failed(check, detail))
  const hasEarlierKeys = checks.some(({ name }) => name === "key_version")
  return {
    chip_id,
    verdict,
    checks,
    advice: hasEarlierKeys ? earlierKeysAdvice : adviceOf(verdict, expected),
    opened_with,
    is_tried: url?.e !== undefined,
    uid,
  }
}

/** How a diagnosis ends: with the check that failed, or with none. */
type Finding = {
  check: CheckName | null
  verdict: Verdict
  detail: string
  opened_with: KeyCandidate | null
  /** What the chip's own key opened `e` to. */
  uid?: Uint8Array
}

/** Yields what was looked at without ending there. */
type Judging = Generator<Check, Finding>

function* judgeAddress(
  question: TapQuestion,
  url: ReturnType<typeof readTagUrl>,
  chip_id: string | null,
): Judging {
  const { expected } = question
  if (url === null) {
    const detail = "this is not a URL that a tag opens"
    return { check: "address", verdict: "not_an_address", detail, opened_with: null }
  }
  yield passed("address", chip_id ? `the URL of chip ${chip_id}` : "a URL without a chip id")
  if ("verdict" in url) return misplaced(question, url, chip_id, url.e)
  const problem = problemOfOthers(url) ?? (expected?.has_mac ? misnamedMac(url) : null)
  if (problem) return misplaced(question, problem, chip_id, url.e)
  yield passed("template", "the values are in the right places and have the right lengths")

  const message = upperCase(url)
  const isUpperCase = message.e === url.e && message.c === (url.c ?? undefined)
  yield isUpperCase
    ? passed("case", "the values are in upper case")
    : failed("case", "the values are in lower case; tags give upper case")

  if (!expected) return unknownChip(question, chip_id, url.e)
  yield passed("chip", `chip ${expected.chip_id} is known, with ${expected.keys.name}`)
  const found = yield* judgeTag(question, expected, url, message)
  return found.verdict === "accepted" && !isUpperCase ? { ...found, verdict: "lower_case" } : found
}

function* judgeTag(question: TapQuestion, expected: ExpectedTag, url: TagUrl, message: SunMessage): Judging {
  const opening = judgeOpening(question, expected, message)
  if ("verdict" in opening) return { ...opening, check: "meta_key" }
  yield passed("meta_key", `e decrypts to the UID and read counter ${opening.counter}`)
  return { ...(yield* judgeOpened(question, expected, url, message, opening)), uid: opening.uid }
}

function* judgeOpened(
  { candidates, file_settings }: TapQuestion,
  expected: ExpectedTag,
  url: TagUrl,
  message: SunMessage,
  opening: Opening,
): Judging {
  const { keys, counter, awaited_version } = expected
  const content = judgeContent(expected, message)
  if (content) return { ...content, check: "file_content", opened_with: keys }
  const mac = judgeMac(expected, candidates, url, message, opening)
  if (mac.verdict) return { ...mac, check: "file_key" }
  yield passed("file_key", mac.detail)

  const wire = judgeWire(expected, message, opening)
  if (wire?.verdict) return { ...wire, check: "file_content", opened_with: keys }
  if (wire) yield passed("file_content", wire.detail)

  const settings = file_settings && judgeSettings(file_settings, expected, url, message)
  if (settings?.verdict) return { ...settings, check: "file_settings", opened_with: keys }
  if (settings) yield passed("file_settings", settings.detail)

  if (awaited_version !== null)
    yield failed(
      "key_version",
      `the tag still has version ${keys.version} of its keys; it was ordered again with version ${awaited_version}`,
    )
  if (opening.counter <= counter) {
    const detail = `read counter ${opening.counter}, but ${counter} was already accepted`
    return { check: "counter", verdict: "already_scanned", detail, opened_with: keys }
  }
  yield passed("counter", skippedText(opening.counter - counter - 1, opening.counter))
  return { check: null, verdict: "accepted", detail: "", opened_with: keys }
}

function passed(name: CheckName, detail: string): Check {
  return { name, passed: true, detail }
}

function failed(name: CheckName, detail: string): Check {
  return { name, passed: false, detail }
}

/**
 * Returns the diagnosis for a UID that belongs to another chip: no tap of the tag is accepted, whatever else is right.
 */
export function encodedTwice(found: Diagnosis): Diagnosis {
  const at = found.checks.findIndex(({ name }) => name === "meta_key")
  const checks = [...found.checks.slice(0, at), failed("meta_key", "e decrypts to the UID of another chip")]
  return { ...found, verdict: "other_chip", checks, advice: verdictAdvice.other_chip }
}

function adviceOf(verdict: Verdict, expected: ExpectedTag | null): string {
  const advice = verdictAdvice[verdict]
  return expected?.keys.key_set_id === null ? (importedAdvice[verdict] ?? advice) : advice
}

type WrongOpening = Pick<Finding, "verdict" | "detail" | "opened_with">

function judgeOpening(
  { candidates }: TapQuestion,
  expected: ExpectedTag,
  message: SunMessage,
): Opening | WrongOpening {
  const { keys } = expected
  const metaKey = keys.keyAt(keys.roles.meta_read, expected)
  const opened = metaKey && openedBy(metaKey, expected.uid, message)
  if (opened && !("problem" in opened)) return isByChance(opened, expected, message) ? chance(opened) : opened
  for (const guess of guesses("meta_read", expected, keys, candidates)) {
    const found = openedBy(guess.key, expected.uid, message)
    if (found && isSure(found, expected, message, guess))
      return { verdict: guess.verdict, detail: guess.detail, opened_with: guess.candidate ?? keys }
  }
  const late = metaKey && lateBy(metaKey, expected, message.e)
  if (late) {
    const detail = `e begins ${counted(late, "digit", "digits")} too late, and its end is cut off: PICCDataOffset is too large`
    return { verdict: "wrong_offset", detail, opened_with: keys }
  }
  // Only two bytes say so, which a wrong key gives once in 65,536: so it comes last.
  if (opened) return { ...opened.problem, opened_with: keys }
  return {
    verdict: "wrong_meta_key",
    detail: `none of the keys that were tried decrypts e${needsMac(expected, message) ? " to values that match c" : ""}: the factory key, this chip's keys in any slot, the keys of other versions and key sets of this organization, and their master keys`,
    opened_with: null,
  }
}

/**
 * Returns whether the result may be chance: without a known UID or a MAC, only the few
 * reads of a new tag are plausible.
 */
function isByChance({ counter }: Opening, { uid }: ExpectedTag, { c }: SunMessage): boolean {
  return uid === null && c === undefined && counter >= MANY_READS
}

function chance({ counter }: Opening): WrongOpening {
  const detail = `e decrypts to read counter ${counter}, which may be chance: without c, a tag whose UID is not known yet is accepted only below ${MANY_READS}`
  return { verdict: "wrong_meta_key", detail, opened_with: null }
}

/**
 * Returns by how many digits `e` begins behind its place, where zeros of the placeholder are left; null if it does not.
 * The digits cut off at its end are searched for, so few that a wrong key is taken for right at most once in 65,536.
 */
function lateBy(key: Uint8Array, { uid }: ExpectedTag, e: string): number | null {
  for (const digits of [1, 2]) {
    if (!e.startsWith("0".repeat(digits))) return null
    for (let end = 0; end < 16 ** digits; end++) {
      const whole = e.slice(digits) + end.toString(16).padStart(digits, "0")
      const found = openedBy(key, uid, { e: whole })
      if (found && !("problem" in found) && (uid !== null || found.counter < MANY_READS)) return digits
    }
  }
  return null
}

type Opened = Opening | { problem: Fault }

/** Returns what `e` decrypts to under a key: UID and counter, or what is wrong with them; null if it is noise. */
function openedBy(key: Uint8Array, uid: Uint8Array | null, message: SunMessage): Opened | null {
  const plain = openPicc(key, message.e)
  const found = plain.subarray(1, 1 + UID_BYTES)
  const isOfNxp = found[0] === NXP
  const isSame = uid ? Buffer.compare(uid, found) === 0 : isOfNxp
  if (plain[0] === PICC_TAG && isSame) return { uid: found, counter: plain.readUIntLE(1 + UID_BYTES, 3) }
  if (plain[0] === UID_ONLY_TAG && isSame)
    return {
      problem: { verdict: "uid_only", detail: "e contains the UID, but no read counter (PICCDataTag 87h)" },
    }
  if (plain[0] === PICC_TAG && isOfNxp)
    return { problem: { verdict: "other_chip", detail: "e decrypts to the UID of another tag" } }
  // Without a UID the counter decides: no tag at a station has been read 65,536 times.
  if (plain[0] === COUNTER_ONLY_TAG && plain[3] === 0)
    return {
      problem: {
        verdict: "uid_missing",
        detail: "e contains the read counter, but no UID (PICCDataTag 40h)",
      },
    }
  return null
}

/**
 * Returns whether a guessed key is right by more than chance: the chip's own UID comes out, or the MAC is right as
 * well, under the chip's file key or the one that the same mistake would have put there.
 */
function isSure(found: Opened, expected: ExpectedTag, message: SunMessage, guess: Guess): boolean {
  if ("problem" in found) return expected.uid !== null && found.problem.verdict === "uid_only"
  const { keys, mac_input } = expected
  if (!needsMac(expected, message)) return true
  const tag = { chip_id: expected.chip_id, uid: found.uid }
  const fileKeys = [keys.keyAt(keys.roles.file_read, tag), guess.fileKeyOf(tag)]
  return fileKeys.some((fileKey) => fileKey !== null && macVouches(fileKey, found, message, mac_input))
}

function needsMac({ uid }: ExpectedTag, { c }: SunMessage): boolean {
  return uid === null && c !== undefined
}

/** Whether `enc` is there exactly where the chip was ordered with it; null where it is. */
function judgeContent({ mac_input }: ExpectedTag, { enc }: SunMessage): Fault | null {
  const isOrdered = mac_input.includes("{enc}")
  if (isOrdered === (enc !== undefined)) return null
  return isOrdered
    ? { verdict: "enc_missing", detail: "the URL has no enc, although the chip was ordered with it" }
    : { verdict: "enc_not_ordered", detail: "the URL has an enc that the chip was not ordered with" }
}

/** For values in the wrong place: at least it can be said which keys made `e`. */
function misplaced(
  question: TapQuestion,
  { verdict, detail }: Fault,
  chip_id: string | null,
  e: string | undefined,
): Finding {
  if (e === undefined) return { check: "template", verdict, detail, opened_with: null }
  const opener = openerOf(question, chip_id, e)
  // c right behind e makes as many digits as LRP gives. That tag can still be fixed, even before it has its keys.
  const isJoined = verdict === "lrp" && (opener !== null || openedBy(FACTORY_KEY, null, { e }) !== null)
  const found = isJoined ? joined : { verdict, detail }
  return {
    check: "template",
    verdict: found.verdict,
    detail: found.detail + openedText(opener),
    opened_with: opener,
  }
}

const joined = { verdict: "wrong_offset", detail: "c follows e without &c=" } as const

/** For an unknown chip: at least it can be said which keys made the address. */
function unknownChip(question: TapQuestion, chip_id: string | null, e: string): Finding {
  const opener = openerOf(question, chip_id, e)
  const detail = chip_id ? `this organization has no chip ${chip_id}` : "the URL names no chip"
  return {
    check: "chip",
    verdict: "unknown_chip",
    detail: detail + openedText(opener),
    opened_with: opener,
  }
}

/** Returns the keys under which `e` decrypts to a UID and a counter, of any tag. */
function openerOf(
  { expected, candidates }: TapQuestion,
  chip_id: string | null,
  e: string,
): KeyCandidate | null {
  const known = expected ? [expected.keys, ...candidates] : candidates
  const opener = known.find((candidate) => {
    const key = candidate.keyAt(candidate.roles.meta_read, { chip_id: chip_id ?? NO_CHIP, uid: null })
    const found = key && openedBy(key, null, { e })
    return found !== null && !("problem" in found)
  })
  return opener ?? null
}

function openedText(opener: KeyCandidate | null): string {
  return opener ? `; e was encrypted with ${opener.name}` : ""
}

function skippedText(skipped: number, counter: number): string {
  if (skipped === 0) return `read counter ${counter}, the next one`
  return `read counter ${counter}; ${counted(skipped, "read was", "reads were")} never presented here, which is normal: every read by any phone counts`
}

function upperCase({ e, c, enc }: TagUrl): SunMessage {
  return { e: e.toUpperCase(), c: c?.toUpperCase(), enc: enc?.toUpperCase() }
}

const UID_ONLY_TAG = 0x87
const COUNTER_ONLY_TAG = 0x40
const NO_CHIP = "0000000000"
