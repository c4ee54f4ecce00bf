import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox"
import type { Page, PageOf } from "../db/page.ts"
import type { Caller } from "../platform/caller.ts"
import type { Context } from "../platform/context.ts"
import { fieldError } from "../platform/errors.ts"
import { nullable } from "../platform/fields.ts"
import { parseChipId, parseId } from "../platform/ids.ts"
import { canonicalJson } from "./canonical-json.ts"
import { cursorFor, positionOf } from "./cursor.ts"
import { type Ensure, type Route, readRoute } from "./route.ts"

const instantRule = "must be a time in UTC such as 2026-01-31T12:00:00Z"

/** Declares a list, newest first. The caller sees cursors; `read` gets positions. */
export function listRoute<
  Plural extends string,
  Item extends TSchema,
  Row,
  Filters extends TProperties = Record<never, never>,
  Params extends TProperties = Record<never, never>,
>(
  declaration: Pick<Route, "operation" | "summary" | "path" | "credentials"> & {
    description?: string
    params?: Params
    errors?: Route["errors"]
    plural: Plural
    /** What the entries are, and their order. */
    entries: string
    item: Item
    filters?: Filters
    ensure?: Ensure
    read(
      context: Context,
      caller: Caller,
      filters: Static<TObject<Filters>>,
      page: Page,
      params: Static<TObject<Params>>,
    ): Promise<PageOf<Row>>
    present(row: Row): Static<Item>
  },
): Route {
  const { plural, entries, item, filters, read, present, ...declared } = declaration
  return readRoute({
    ...declared,
    query: Type.Object({ ...filters, limit: Limit, cursor: Cursor }, { additionalProperties: false }),
    response: Type.Object(
      { [plural]: Type.Array(item, { description: entries }), pagination: Pagination },
      { title: `${item.title?.replace(/^Listed/, "")}List`, additionalProperties: false },
    ),
    async read(context, caller, input) {
      const { limit: limitText, cursor, ...given } = input.query as Record<string, string>
      const { organization_id } = caller
      const place = { ...given, ...(input.params as Record<string, string>) }
      const scope = {
        operation: declared.operation,
        organization_id,
        filters: canonicalJson(asStored(place)),
      }
      const secret = context.config.service_secret
      const limit = limitText ? Number(limitText) : defaultLimit
      const after = cursor === undefined ? null : positionOf(secret, scope, cursor)
      const filters = given as Static<TObject<Filters>>
      const { rows, next } = await read(context, caller, filters, { limit, after }, input.params)
      const pagination = {
        limit,
        has_more: next !== null,
        next_cursor: next && cursorFor(secret, scope, next),
      }
      return { body: { [plural]: rows.map(present), pagination } as never }
    },
  })
}

/** Ids in their canonical case: either case names the same. */
function asStored(place: Record<string, string>): Record<string, string> {
  const canonical = (text: string) => parseId(text) ?? parseChipId(text) ?? text
  return Object.fromEntries(Object.entries(place).map(([name, text]) => [name, canonical(text)]))
}

/** Returns the schema of a boolean filter, which is not applied if absent. */
export function flag(description: string) {
  return Type.Union([Type.Literal("true"), Type.Literal("false")], {
    description,
    "x-shown": { type: "boolean" },
  })
}

export function flagOf(text: "true" | "false" | undefined): boolean | undefined {
  return text === undefined ? undefined : text === "true"
}

/** Returns the schema of one end of a time window: ISO 8601 in UTC. */
export function bound(description: string) {
  return Type.String({
    pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|\\+00:00)$",
    description,
    "x-message": instantRule,
  })
}

/**
 * Parses a time, rounding fractions of a millisecond up: stored times are whole milliseconds, so they compare alike.
 * Throws `validation.failed` on the field for a day or hour that does not exist.
 */
export function instantOf(text: string | undefined, field: string): Date | undefined {
  if (text === undefined) return undefined
  const instant = new Date(text)
  const isReal =
    !Number.isNaN(instant.getTime()) &&
    instant.getUTCFullYear() > 0 &&
    instant.toISOString().slice(0, 19) === text.slice(0, 19)
  if (!isReal) throw fieldError(field, instantRule)
  const isBetween = /\.\d{3}\d*[1-9]/.test(text)
  return isBetween ? new Date(Math.min(instant.getTime() + 1, lastMillisecond)) : instant
}

/** Postgres does not parse five-digit years as JavaScript writes them. */
const lastMillisecond = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

const defaultLimit = 50

const mostEntries = "The maximum number of entries per page."

/** Query values are strings; the documentation shows an integer. */
const Limit = Type.Optional(
  Type.String({
    pattern: "^([1-9][0-9]?|100)$",
    description: mostEntries,
    "x-message": "must be a whole number from 1 to 100",
    "x-shown": { type: "integer", minimum: 1, maximum: 100, default: defaultLimit },
  }),
)

const Cursor = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 256,
    description:
      "The `next_cursor` of the previous page; send the same filters. It is opaque: never parse or construct one.",
  }),
)

const Pagination = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 100, description: mostEntries }),
    has_more: Type.Boolean({ description: "Whether there is another page." }),
    next_cursor: nullable(
      Type.String({ description: "Send it as `cursor` to get the next page. Null on the last page." }),
    ),
  },
  {
    title: "Pagination",
    description: "Where this page is in the list.",
    additionalProperties: false,
  },
)
