import { C_DIGITS, E_DIGITS, ENC_DIGITS, type TagAddress } from "../encoding/tag-address.ts"
import type { Fault } from "./verdicts.ts"

/** The values in a URL that a phone opened, as they are written there. */
export type TagUrl = {
  text: string
  /** Candidates for the chip id, likeliest first. */
  chip_ids: string[]
  e: string
  enc: string | null
  c: string | null
}

/** Why an address cannot be that of a tag in order; `e` is what has the digits of that value all the same. */
type UrlProblem = Fault & { e?: string }

/** Digits of an `e` in LRP mode: 24 bytes instead of 16 (data sheet §9.3.4.2). */
const LRP_DIGITS = 48

/** UID, read counter and perhaps a MAC in one parameter; NXP's NTAG 21x and 22x separate them with `x`. */
const PLAIN_MIRRORS = /^[0-9a-f]{14}x?[0-9a-f]{6}(x[0-9a-f]{16})?$/i

/** Parses a URL: the one that a tag opens, or the one that it was redirected to. Returns null if it is not a URL. */
export function readTagUrl(text: string): TagUrl | (UrlProblem & { chip_ids: string[] }) | null {
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  if (!["https:", "http:", "lnurlw:"].includes(url.protocol)) return null
  const chip_ids = chipIdsIn(url)
  const value = (name: string) => url.searchParams.get(name) ?? url.searchParams.get(`service_${name}`)
  const e = value("e")
  const problem = e === null ? problemWithout(url) : problemOf(e, text)
  if (problem) return { ...problem, chip_ids }
  return { text, chip_ids, e: e ?? "", enc: value("enc"), c: value("c") }
}

/** Returns where the values are in a URL as its tag gives it; null for one that it was redirected to. */
export function placesIn({ text }: TagUrl): TagAddress | null {
  const placeOf = (name: string) => {
    const found = new RegExp(`[?&]${name}=`).exec(text)
    return found && found.index + found[0].length
  }
  const e = placeOf("e")
  return e === null ? null : { text, e, enc: placeOf("enc"), c: placeOf("c") }
}

/** Returns whether a value consists of this many hexadecimal digits, in either case. */
function isHex(value: string, digits: number): boolean {
  return value.length === digits && /^[0-9a-f]+$/i.test(value)
}

/** Returns what is wrong with `c` and `enc`, if they are present. */
export function problemOfOthers({ c, enc }: TagUrl): UrlProblem | null {
  if (enc !== null && !isHex(enc, ENC_DIGITS)) return wrongLength("enc", enc, ENC_DIGITS)
  if (c !== null && !isHex(c, C_DIGITS)) return wrongLength("c", c, C_DIGITS)
  if (c !== null && /^0+$/.test(c))
    return {
      verdict: "wrong_offset",
      detail: "c is still its placeholder of zeros: the tag writes its MAC elsewhere, or makes none",
    }
  return null
}

/**
 * Returns the problem that the `c` that a chip was ordered with has another name, or took the place of its name; null if
 * `c` is present, or nowhere.
 */
export function misnamedMac({ text, c }: TagUrl): UrlProblem | null {
  if (c !== null) return null
  if (/&(c[0-9a-f]{16}0|[0-9a-f]{16}00)$/i.test(text))
    return {
      verdict: "wrong_offset",
      detail: "the value of c was written over its own name: the offset is too small",
    }
  const other = [...new URL(text).searchParams].find(([, value]) => isHex(value, C_DIGITS))
  if (!other) return null
  return { verdict: "wrong_parameter", detail: `the value of c has another name: ${other[0]}` }
}

/** Returns what looks like a chip id: `service_chip_id`, the segments of the path, last first, and all parameters. */
function chipIdsIn(url: URL): string[] {
  const named = url.searchParams.get("service_chip_id")
  const places = [named ?? "", ...url.pathname.split("/").reverse(), ...url.searchParams.values()]
  return places.filter((place) => isHex(place, 10)).map((place) => place.toUpperCase())
}

function problemWithout(url: URL): UrlProblem {
  const parameters = [...url.searchParams]
  const uid = parameters.find(([, value]) => isHex(value, 14))
  const hasCounter = parameters.some(([, value]) => isHex(value, 6))
  const mirror = hasCounter && uid ? uid : parameters.find(([, value]) => PLAIN_MIRRORS.test(value))
  if (mirror)
    return {
      verdict: "plain_mirror",
      detail: `UID and read counter are in plain text (${mirror[0]}=…), and e is missing`,
    }
  if (uid)
    return {
      verdict: "counter_mirror_missing",
      detail: `only the UID is there, in plain text (${uid[0]}=…); the read counter is not mirrored`,
    }
  const other = parameters.find(([, value]) => isHex(value, E_DIGITS))
  if (other)
    return {
      verdict: "wrong_parameter",
      detail: `the value of e has another name: ${other[0]}`,
      e: other[1],
    }
  if (/[0-9A-F]{24,}/i.test(url.search))
    return {
      verdict: "wrong_offset",
      detail: "the value of e was written over its own name: the offset is too small",
    }
  return { verdict: "no_values", detail: "the URL has no e" }
}

function problemOf(e: string, text: string): UrlProblem | null {
  if (/^0+$/.test(e) && e.length === E_DIGITS && !/[?&](service_)?c=(?!0*(&|$))/.test(text))
    return {
      verdict: "mirroring_off",
      detail: "e is still its placeholder of zeros: the tag mirrors nothing",
    }
  if (isHex(e, LRP_DIGITS))
    return {
      verdict: "lrp",
      detail: `e has ${LRP_DIGITS} digits, as a tag gives in LRP mode; AES mode gives ${E_DIGITS}`,
      e: e.slice(0, E_DIGITS),
    }
  if (/^0+$/.test(e) && e.length === E_DIGITS)
    return {
      verdict: "wrong_offset",
      detail: "e is still its placeholder of zeros, although c is not: the offset of e is wrong",
    }
  if (isHex(e, E_DIGITS)) return null
  if (/^[0-9a-f]{32}[^0-9a-f]/i.test(e))
    return {
      verdict: "truncated_mirror",
      detail: "the value of e runs into what follows: its placeholder has fewer than 32 zeros",
    }
  if (/[^0-9a-f]/i.test(e))
    return {
      verdict: "wrong_offset",
      detail: "e has characters that are not hexadecimal digits: values overlap",
    }
  return wrongLength("e", e, E_DIGITS)
}

function wrongLength(name: string, value: string, digits: number): UrlProblem {
  const isShort = value.length < digits
  return {
    verdict: isShort ? "truncated_mirror" : "wrong_offset",
    detail: `${name} has ${value.length} digits instead of ${digits}`,
  }
}
