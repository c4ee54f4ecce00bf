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
  const checks: Check[] = []
  const { expected } = question
  let uid: Uint8Array | null = null
  let isTried = false
  const passed = (name: CheckName, detail: string) => checks.push({ name, passed: true, detail })
  const end = (found: Finding, chip_id: string | null, opened: KeyCandidate | null = null): Diagnosis => {
    if (found.check) checks.push({ name: found.check, passed: false, detail: found.detail })
    return {
      chip_id,
      verdict: found.verdict,
      checks,
      advice: hasEarlierKeys(checks) ? earlierKeysAdvice : adviceOf(found.verdict, expected),
      opened_with: opened,
      is_tried: isTried,
      uid,
    }
  }

  const url = readTagUrl(question.url)
  if (url === null)
    return end(
      { check: "address", verdict: "not_an_address", detail: "it is not an address that a tag opens" },
      null,
    )
  const chip_id = expected?.chip_id ?? url.chip_ids[0] ?? null
  passed("address", chip_id ? `the address of chip ${chip_id}` : "an address without a chip id")
  isTried = url.e !== undefined
  if ("verdict" in url) return end(...misplaced(question, url, chip_id, url.e))
  const problem = problemOfOthers(url) ?? (expected?.has_mac ? misnamedMac(url) : null)
  if (problem) return end(...misplaced(question, problem, chip_id, url.e))
  passed("template", "the values stand where they belong and have their lengths")

  const message = upperCase(url)
  const hasLowerCase = message.e !== url.e || message.c !== (url.c ?? undefined)
  if (hasLowerCase)
    checks.push({ name: "case", passed: false, detail: "the values are in lower case; tags give upper case" })
  else passed("case", "the values are in upper case")

  if (!expected) return end(...unknownChip(question, chip_id, url.e))
  passed("chip", `chip ${expected.chip_id} is known, with ${expected.keys.name}`)

  const opening = judgeOpening(question, expected, message)
  if ("verdict" in opening) return end({ ...opening, check: "meta_key" }, expected.chip_id, opening.candidate)
  uid = opening.uid
  passed("meta_key", `e opens to the UID and to read ${opening.counter}`)

  const content = judgeContent(expected, message)
  if (content) return end({ ...content, check: "file_content" }, expected.chip_id, expected.keys)
  const mac = judgeMac(question, expected, url, message, opening)
  if (mac.verdict) return end({ ...mac, check: "file_key" }, expected.chip_id, mac.candidate)
  passed("file_key", mac.detail)

  const wire = judgeWire(expected, message, opening)
  if (wire?.verdict)
    return end({ ...wire, verdict: wire.verdict, check: "file_content" }, expected.chip_id, expected.keys)
  if (wire) passed("file_content", wire.detail)

  const settings = question.file_settings && judgeSettings(question.file_settings, expected, url, message)
  if (settings?.verdict)
    return end(
      { ...settings, verdict: settings.verdict, check: "file_settings" },
      expected.chip_id,
      expected.keys,
    )
  if (settings) passed("file_settings", settings.detail)

  if (expected.awaited_version !== null)
    checks.push({
      name: "key_version",
      passed: false,
      detail: `the tag still has version ${expected.keys.version} of its keys; it was ordered anew with version ${expected.awaited_version}`,
    })

  if (opening.counter <= expected.counter)
    return end(
      {
        check: "counter",
        verdict: "already_scanned",
        detail: `read ${opening.counter}, and read ${expected.counter} was accepted before`,
      },
      expected.chip_id,
      expected.keys,
    )
  passed("counter", skippedText(opening.counter - expected.counter - 1, opening.counter))
  return end(
    { check: null, verdict: hasLowerCase ? "lower_case" : "accepted", detail: "" },
    expected.chip_id,
    expected.keys,
  )
}

/**
 * Returns the diagnosis for a UID that belongs to another chip: no tap of the tag is accepted, whatever else is right.
 */
export function encodedTwice(found: Diagnosis): Diagnosis {
  const at = found.checks.findIndex(({ name }) => name === "meta_key")
  const told: Check = { name: "meta_key", passed: false, detail: "e opens to the UID of another chip" }
  const checks = [...found.checks.slice(0, at), told]
  return { ...found, verdict: "other_chip", checks, advice: verdictAdvice.other_chip }
}

function adviceOf(verdict: Verdict, expected: ExpectedTag | null): string {
  const advice = verdictAdvice[verdict]
  return expected?.keys.key_set_id === null ? (importedAdvice[verdict] ?? advice) : advice
}

function hasEarlierKeys(checks: Check[]): boolean {
  return checks.some(({ name }) => name === "key_version")
}

type Finding = { check: CheckName | null; verdict: Verdict; detail: string }

type WrongOpening = { verdict: Verdict; detail: string; candidate: KeyCandidate | null }

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
      return { verdict: guess.verdict, detail: guess.detail, candidate: guess.candidate ?? keys }
  }
  // Only two bytes indicate this, which a wrong key produces once in 65,536, so it comes last.
  if (opened) return { ...opened.problem, candidate: keys }
  return {
    verdict: "wrong_meta_key",
    detail: `e opens with none of the keys that were tried${needsMac(expected, message) ? " so that c agrees" : ""}: zeros, this chip's in any slot, those of other versions and sets of this organization, and their masters`,
    candidate: null,
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
  const detail = `e opens to read ${counter}: without c, a tag whose UID is not known yet has fewer than ${MANY_READS}`
  return { verdict: "wrong_meta_key", detail, candidate: null }
}

type Opened = Opening | { problem: { verdict: Verdict; detail: string } }

/** Returns what `e` decrypts to under a key: UID and counter, or what is wrong with them; null if it is noise. */
function openedBy(key: Uint8Array, uid: Uint8Array | null, message: SunMessage): Opened | null {
  const plain = openPicc(key, message.e)
  const found = plain.subarray(1, 1 + UID_BYTES)
  const isOfNxp = found[0] === NXP
  const isSame = uid ? Buffer.compare(uid, found) === 0 : isOfNxp
  if (plain[0] === PICC_TAG && isSame) return { uid: found, counter: plain.readUIntLE(1 + UID_BYTES, 3) }
  if (plain[0] === UID_ONLY_TAG && isSame)
    return { problem: { verdict: "uid_only", detail: "e holds the UID and no read counter (tag byte 87)" } }
  if (plain[0] === PICC_TAG && isOfNxp)
    return { problem: { verdict: "other_chip", detail: "e opens to another UID than this chip has" } }
  // Without a UID the counter decides: no tag at a station has been read 65,536 times.
  if (plain[0] === COUNTER_ONLY_TAG && plain[3] === 0)
    return {
      problem: { verdict: "uid_missing", detail: "e holds the read counter and no UID (tag byte 40)" },
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

/** Checks that `enc` is present exactly if the chip was ordered with it; null if so. */
function judgeContent({ mac_input }: ExpectedTag, { enc }: SunMessage): Omit<Finding, "check"> | null {
  const isOrdered = mac_input.includes("{enc}")
  if (isOrdered === (enc !== undefined)) return null
  return isOrdered
    ? { verdict: "enc_missing", detail: "the address has no enc, though the chip was ordered with it" }
    : { verdict: "enc_not_ordered", detail: "the address has an enc that the chip was not ordered with" }
}

type Ending = [Finding, string | null, KeyCandidate | null]

/** Ends the diagnosis for values in the wrong place; the keys that made `e` can still be named. */
function misplaced(
  question: TapQuestion,
  { verdict, detail }: Omit<Finding, "check">,
  chip_id: string | null,
  e: string | undefined,
): Ending {
  if (e === undefined) return [{ check: "template", verdict, detail }, chip_id, null]
  const opener = openerOf(question, chip_id, e)
  // c right behind e makes as many digits as LRP gives. That tag can still be fixed, even before it has its keys.
  const isJoined = verdict === "lrp" && (opener !== null || openedBy(FACTORY_KEY, null, { e }) !== null)
  const found = isJoined ? joined : { verdict, detail }
  return [{ ...found, check: "template", detail: found.detail + openedText(opener) }, chip_id, opener]
}

const joined = { verdict: "wrong_offset", detail: "c follows e without &c=" } as const

/** Ends the diagnosis for an unknown chip; the keys that made `e` can still be named. */
function unknownChip(question: TapQuestion, chip_id: string | null, e: string): Ending {
  const opener = openerOf(question, chip_id, e)
  const detail = chip_id ? `no chip ${chip_id} is known here` : "the address names no chip"
  return [{ check: "chip", verdict: "unknown_chip", detail: detail + openedText(opener) }, chip_id, opener]
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
  return opener ? `; e opens with ${opener.name}` : ""
}

function skippedText(skipped: number, counter: number): string {
  if (skipped === 0) return `read ${counter}, the next one`
  return `read ${counter}; ${skipped} ${skipped === 1 ? "read was" : "reads were"} never presented here, which is normal: each look of any phone counts`
}

function upperCase({ e, c, enc }: TagUrl): SunMessage {
  return { e: e.toUpperCase(), c: c?.toUpperCase(), enc: enc?.toUpperCase() }
}

const UID_ONLY_TAG = 0x87
const COUNTER_ONLY_TAG = 0x40
const NO_CHIP = "0000000000"
