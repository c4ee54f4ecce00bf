import { type TSchema, Type } from "@sinclair/typebox"
import { Value } from "@sinclair/typebox/value"
import { fieldError } from "./errors.ts"
import { chipIdForm, parseChipId, parseId, uuidForm } from "./ids.ts"

const TEXT_LENGTH = 256
const REDIRECT_LENGTH = 2_048
const ATTRIBUTES_BYTES = 16 * 1_024
const ATTRIBUTES_LEVELS = 8

/** Excludes control characters and lone surrogates, whether or not a validator matches by code point. */
const printable = "[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]"

// Documented for other engines of regular expressions: PCRE and RE2 reject \u, Ruby rejects surrogates, RE2 repeats at
// most 1,000 times, and PHP matches bytes, so only ASCII can be named.
const shownPrintable = "^[^\\x00-\\x1f\\x7f]*$"
const shownLines = "^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]*$"

// Schemas carry what the OpenAPI document says: `title` names a component, and `description` explains a field. `x-open`
// names the component that lists today's known values of an extensible string. `x-shown` replaces keywords in the
// document, or all of them if it has a `type`. `x-message` is the validation message.

/** Returns the schema with a description for one place. */
export function described<Schema extends TSchema>(schema: Schema, description: string): Schema {
  return { ...schema, description }
}

/**
 * Returns a schema for 1 to `most` code points without control characters. The pattern counts code points, as JSON
 * Schema's `maxLength` does; the validator's own `maxLength` would count UTF-16 units.
 */
export function text(most: number, description: string) {
  return Type.String({
    pattern: `^(?:${printable}){1,${most}}$`,
    description,
    "x-message": `must be a string of 1 to ${most} characters, without control characters or lone surrogates`,
    "x-shown": { minLength: 1, maxLength: most, pattern: shownPrintable },
  })
}

export const name = text(TEXT_LENGTH, "A name for people.")
export const externalId = text(TEXT_LENGTH, "Your own id, unique within the organization.")

/** An id in either case. It is compared and returned in lower case. */
export const id = Type.String({
  pattern: uuidForm.source,
  description: "The id.",
  "x-message": "must be a UUID",
  "x-shown": { format: "uuid" },
})
export const unitId = described(id, "The unit's id.")
export const collectionId = described(id, "The collection's id.")

/** A chip id in either case. It is returned in upper case. */
export const chipId = Type.String({
  pattern: chipIdForm.source,
  description: "The chip's id: ten hexadecimal digits. Either case is accepted; responses have upper case.",
  "x-message": "must be a string of 10 hexadecimal digits",
})

export const e = Type.String({
  pattern: "^[0-9A-F]{32}$",
  description: "The one-time value in the tap URL.",
  "x-message": "must be a string of 32 upper-case hexadecimal digits",
})

export const c = Type.String({
  pattern: "^[0-9A-F]{16}$",
  description: "The verification code in the tap URL, if it has one.",
  "x-message": "must be a string of 16 upper-case hexadecimal digits",
})

export const enc = Type.String({
  pattern: "^[0-9A-F]{32}$",
  description: "The encrypted file content in the tap URL, if it has one: the status of the tamper wire.",
  "x-message": "must be a string of 32 upper-case hexadecimal digits",
})

export const isTest = Type.Boolean({ description: "Whether this is a test chip, which has no hardware." })

/** `canonicalRedirect` checks its form. */
export const redirectUrl = Type.String({
  minLength: 1,
  maxLength: REDIRECT_LENGTH,
  description: "Where a tap is redirected: an absolute https URL, or null.",
  "x-shown": { format: "uri" },
})

/** Free keys and values; `checkAttributes` limits their size and depth. */
export const attributes = Type.Record(Type.String(), Type.Unknown(), {
  description:
    "Your own keys and values: at most 16 KiB as JSON, 8 levels. Numbers are stored as IEEE 754 doubles, so send those with more than 15 digits as strings. Whoever taps the unit's chip can read them.",
})

const DESCRIPTION_LENGTH = 2_000
const METADATA_ENTRIES = 50
const METADATA_BYTES = 8 * 1_024

/** Text of several lines, perhaps empty. */
export const description = Type.String({
  pattern: `^(?:${printable}|[\\n\\r\\t]){0,${DESCRIPTION_LENGTH}}$`,
  description: "A public description, shown by the token: at most 2,000 characters.",
  "x-message": `must be a string of at most ${DESCRIPTION_LENGTH} characters, without lone surrogates or control characters other than line breaks and tabs`,
  "x-shown": { maxLength: DESCRIPTION_LENGTH, pattern: shownLines },
})

/** `canonicalImage` checks its form. */
export const imageUrl = Type.String({
  minLength: 1,
  maxLength: REDIRECT_LENGTH,
  description:
    "A public picture, shown by the token: an absolute https URL. Without one the service draws a picture.",
  "x-shown": { format: "uri" },
})

const metadataValueRule = "must be a string, a number or a boolean"
const metadataValue = Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
  "x-message": metadataValueRule,
})

/** Public names and values; `checkMetadata` limits their number and size. */
export const metadata = Type.Record(Type.String(), metadataValue, {
  description:
    "Public attributes, shown by the token: at most 50 names, each with a string, a number (IEEE 754 double) or a boolean; at most 8 KiB as JSON.",
  "x-shown": {
    type: "object",
    maxProperties: METADATA_ENTRIES,
    additionalProperties: { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }] },
  },
})

export const chainId = Type.Integer({
  minimum: 1,
  description: "The network, by its EIP-155 chain id.",
  // Ids of real networks exceed 32 bits, which some client generators use for integers without a format.
  "x-shown": { format: "int64" },
})

/** A time in a response: ISO 8601, UTC, milliseconds. */
export const instant = Type.String({
  pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$",
  "x-shown": { format: "date-time" },
})
export const createdAt = described(instant, "When it was created.")
export const updatedAt = described(instant, "When it last changed.")
export const expiresAt = described(instant, "When it expires.")

/** Returns a schema for a value that may be null. The key is present even then. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  const { description } = schema
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}

/** Returns the schema of a text in responses, without the checks for requests. */
export function shown(field: TSchema) {
  return nullable(Type.String({ description: field.description ?? "" }))
}

/** Returns a schema for one of these values. */
export function oneOf<const Words extends readonly string[]>(words: Words, description: string) {
  return Type.Unsafe<Words[number]>(
    Type.Union(
      words.map((word) => Type.Literal(word)),
      { description },
    ),
  )
}

/** Marks a string in responses as extensible; `component` lists the values known today. */
export function extensible<Schema extends TSchema>(schema: Schema, component: string): Schema {
  return { ...schema, "x-open": component }
}

/** Returns a schema for statuses, whose description explains every value. */
export function status<const Words extends readonly string[]>(
  words: Words,
  meanings: Record<Words[number], string>,
) {
  const lines = words.map((word: Words[number]) => `\`${word}\`: ${meanings[word]}`)
  return oneOf(words, `The status. ${lines.join(" ")}`)
}

/** Returns the schema of an id in a path. What is not a UUID is accepted here and then not found. */
export function pathId(description: string) {
  return Type.String({
    description,
    "x-case": "lower",
    "x-shown": { pattern: uuidForm.source, type: "string", format: "uuid" },
  })
}

export const pathChipId = {
  ...chipId,
  "x-case": "upper",
  "x-shown": { type: "string", pattern: chipIdForm.source },
}

/** An EVM address with checksum, in a response. */
export const address = Type.String({ pattern: "^0x[0-9a-fA-F]{40}$" })

export const transactionHash = nullable(
  Type.String({
    pattern: "^0x[0-9a-f]{64}$",
    description: "The hash of the transaction on chain, once it is known.",
  }),
)

export const failure = nullable(
  Type.Object(
    {
      code: extensible(
        Type.String({
          description: "A stable code. Codes are added over time: treat an unknown one as a generic failure.",
        }),
        "KnownFailureCode",
      ),
      message: Type.String({ description: "For people. The wording may change: never match on it." }),
    },
    { title: "Failure", description: "Why it failed for good, or null.", additionalProperties: false },
  ),
)

/** Returns the id in lower case. Throws `validation.failed` on the field if it is not a UUID. */
export function canonicalId(text: string, field: string): string {
  const id = parseId(text)
  if (!id) throw fieldError(field, "must be a UUID")
  return id
}

/** Returns the chip id in upper case. Throws `validation.failed` on the field if it has another form. */
export function canonicalChipId(text: string, field = "chip_id"): string {
  const chipId = parseChipId(text)
  if (!chipId) throw fieldError(field, "must be 10 hexadecimal digits")
  return chipId
}

/** Checks a name given by an operator, which no request schema has validated. Throws `validation.failed`. */
export function requireName(field: string, text: string): void {
  if (!Value.Check(name, text))
    throw fieldError(field, "must have 1 to 256 characters, without control characters")
}

/**
 * Returns a redirect URL as stored and shown. It must be absolute, with `https:` (or `http:` on this machine), and have
 * at most 2,048 characters before and after. Null stays null. Throws `validation.failed` on the field.
 */
export function canonicalRedirect(address: string | null, field = "redirect_url"): string | null {
  return address === null ? null : canonicalUrl(address, field, ["localhost", "127.0.0.1"])
}

/** Does the same for an image, which others could not load from this machine. */
export function canonicalImage(address: string | null, field = "image_url"): string | null {
  return address === null ? null : canonicalUrl(address, field, [])
}

function canonicalUrl(address: string, field: string, plainHosts: string[]): string {
  const wrong = (why: string) => fieldError(field, why)
  if (address.length > REDIRECT_LENGTH) throw wrong(`must have at most ${REDIRECT_LENGTH} characters`)
  if (/[\s\\\p{Cc}\p{Cs}]/u.test(address))
    throw wrong("must not contain white space, control characters or a backslash")
  const parts = /^https?:\/\/(?<authority>[^/?#]+)/i.exec(address)
  const url = URL.parse(address)
  if (!parts?.groups || !url) throw wrong("must be an absolute https URL")
  if (parts.groups.authority?.includes("@")) throw wrong("must not contain a user name or password")
  if (url.protocol === "http:" && !plainHosts.includes(url.hostname)) throw wrong("must use https")
  if (url.href.length > REDIRECT_LENGTH)
    throw wrong(`must have at most ${REDIRECT_LENGTH} characters once it is percent-encoded`)
  return url.href
}

/**
 * Limits attributes to 16 KiB as JSON and 8 levels, and to what both databases can store: no NUL, no lone surrogates,
 * no numbers beyond a double. Throws `validation.failed` on the field.
 */
export function checkAttributes(attributes: Record<string, unknown> | null, field = "attributes"): void {
  if (attributes === null) return
  checkValue(attributes, 1, field)
  if (Buffer.byteLength(JSON.stringify(attributes)) > ATTRIBUTES_BYTES)
    throw fieldError(field, "must be at most 16 KiB as JSON")
}

/**
 * Limits metadata to 50 entries and 8 KiB as JSON, and to printable names and plain values. Throws `validation.failed`.
 */
export function checkMetadata(metadata: Record<string, unknown> | null, field = "metadata"): void {
  if (metadata === null) return
  const names = Object.keys(metadata)
  if (names.length > METADATA_ENTRIES)
    throw fieldError(field, `must have at most ${METADATA_ENTRIES} entries`)
  if (names.some((name) => !namePattern.test(name)))
    throw fieldError(field, `must have names of 1 to ${TEXT_LENGTH} characters, without control characters`)
  // The schema of a record skips values whose name contains a line separator.
  if (!Object.values(metadata).every((value) => Value.Check(metadataValue, value)))
    throw fieldError(field, metadataValueRule)
  checkValue(metadata, 1, field)
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES)
    throw fieldError(field, "must be at most 8 KiB as JSON")
}

const namePattern = new RegExp(name.pattern ?? "")

function checkValue(value: unknown, level: number, field: string): void {
  if (typeof value === "string" && (value.includes("\0") || !value.isWellFormed()))
    throw fieldError(field, "must not contain NUL characters or lone surrogates")
  if (typeof value === "number" && !Number.isFinite(value))
    throw fieldError(field, "must not contain a number that is too large")
  if (typeof value !== "object" || value === null) return
  if (level > ATTRIBUTES_LEVELS)
    throw fieldError(field, `must not be nested deeper than ${ATTRIBUTES_LEVELS} levels`)
  for (const [key, inner] of Object.entries(value)) {
    checkValue(key, level, field)
    checkValue(inner, level + 1, field)
  }
}
