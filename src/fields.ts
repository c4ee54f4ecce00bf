import { type TSchema, Type } from "@sinclair/typebox"
import { fieldError } from "./errors.ts"
import { parseId } from "./ids.ts"

const TEXT_LENGTH = 256
const REDIRECT_LENGTH = 2_048
const ATTRIBUTES_BYTES = 16 * 1_024
const ATTRIBUTES_LEVELS = 8

/** No control characters and no half of a surrogate pair, whether or not a validator reads it as Unicode. */
const printable = "^(?:[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])*$"

/** Text of `most` UTF-16 units at most, at least one, without control characters. */
export function text(most: number) {
  const wording = `must have 1 to ${most} characters, none of them a control character or half a surrogate pair`
  return Type.String({ minLength: 1, maxLength: most, pattern: printable, "x-message": wording })
}

export const name = text(TEXT_LENGTH)
export const externalId = text(TEXT_LENGTH)

/** An id in either case; it is compared and answered in lower case. */
export const id = Type.String({
  pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
  "x-message": "must be a UUID",
})

/** A chip id in either case; it is answered in upper case. */
export const chipId = Type.String({
  pattern: "^[0-9A-Fa-f]{10}$",
  "x-message": "must be 10 hexadecimal digits",
})

/** The one-time value of a chip's URL. */
export const e = Type.String({
  pattern: "^[0-9A-F]{32}$",
  "x-message": "must be 32 upper-case hexadecimal digits",
})

/** The verification code of a chip's URL. */
export const c = Type.String({
  pattern: "^[0-9A-F]{16}$",
  "x-message": "must be 16 upper-case hexadecimal digits",
})

/** What the form of a redirect URL leaves open is held to `canonicalRedirect`. */
export const redirectUrl = Type.String({ minLength: 1, maxLength: REDIRECT_LENGTH })

/** Free keys and values; their size and depth are held to `checkAttributes`. */
export const attributes = Type.Record(Type.String(), Type.Unknown())

/** A time in an answer: ISO 8601, UTC, milliseconds. */
export const instant = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" })

/** A value that may be null; its key is there all the same. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()])
}

/** The id in lower case. Throws `validation.failed` on the field when it is not a UUID. */
export function canonicalId(text: string, field: string): string {
  const id = parseId(text)
  if (!id) throw fieldError(field, "must be a UUID")
  return id
}

/** The chip id in upper case. Throws `validation.failed` on the field when it has another form. */
export function canonicalChipId(text: string, field = "chip_id"): string {
  if (!/^[0-9A-Fa-f]{10}$/.test(text)) throw fieldError(field, "must be 10 hexadecimal digits")
  return text.toUpperCase()
}

/**
 * A redirect URL as it is stored and shown: absolute, `https:`, or `http:` on this very machine, at most 2,048
 * characters before and after. Null stays null. Throws `validation.failed` on the field.
 */
export function canonicalRedirect(address: string | null, field = "redirect_url"): string | null {
  if (address === null) return null
  const wrong = (why: string) => fieldError(field, why)
  if (address.length > REDIRECT_LENGTH) throw wrong(`must have at most ${REDIRECT_LENGTH} characters`)
  if (/[\s\\\p{Cc}\p{Cs}]/u.test(address))
    throw wrong("must not contain white space, control characters or a backslash")
  const parts = /^https?:\/\/(?<authority>[^/?#]+)/i.exec(address)
  const url = URL.parse(address)
  if (!parts?.groups || !url) throw wrong("must be an absolute https URL")
  if (parts.groups.authority?.includes("@")) throw wrong("must not contain a user name or password")
  if (url.protocol === "http:" && !["localhost", "127.0.0.1"].includes(url.hostname))
    throw wrong("must use https")
  if (url.href.length > REDIRECT_LENGTH)
    throw wrong(`must have at most ${REDIRECT_LENGTH} characters once it is percent-encoded`)
  return url.href
}

/**
 * Holds attributes to 16 KiB as JSON and 8 levels, themselves the first, and to what both databases can keep:
 * no NUL, no half of a surrogate pair, no number beyond a double. Throws `validation.failed` on the field.
 */
export function checkAttributes(attributes: Record<string, unknown> | null, field = "attributes"): void {
  if (attributes === null) return
  checkValue(attributes, 1, field)
  if (Buffer.byteLength(JSON.stringify(attributes)) > ATTRIBUTES_BYTES)
    throw fieldError(field, "must be at most 16 KiB as JSON")
}

function checkValue(value: unknown, level: number, field: string): void {
  if (typeof value === "string" && (value.includes("\0") || !value.isWellFormed()))
    throw fieldError(field, "must not contain NUL characters or half surrogate pairs")
  if (typeof value === "number" && !Number.isFinite(value))
    throw fieldError(field, "must not contain a number that is too large")
  if (typeof value !== "object" || value === null) return
  if (level > ATTRIBUTES_LEVELS)
    throw fieldError(field, `must not be deeper than ${ATTRIBUTES_LEVELS} levels`)
  for (const [key, inner] of Object.entries(value)) {
    checkValue(key, level, field)
    checkValue(inner, level + 1, field)
  }
}
