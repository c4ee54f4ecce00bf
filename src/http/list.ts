import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox"
import type { Caller } from "../caller.ts"
import type { Context } from "../context.ts"
import type { Page, PageOf } from "../db/page.ts"
import { fieldError } from "../errors.ts"
import { nullable } from "../fields.ts"
import { canonicalJson } from "./canonical-json.ts"
import { cursorFor, positionOf } from "./cursor.ts"
import { type Example, type Route, readRoute } from "./route.ts"

const instantRule = "must be a time in UTC such as 2026-01-31T12:00:00Z"

/** A list, newest first. The caller sees cursors; `read` sees positions. */
export function listRoute<
  Plural extends string,
  Item extends TSchema,
  Row,
  Filters extends TProperties = Record<never, never>,
>(
  declaration: Pick<Route, "operation" | "summary" | "path" | "credentials"> & {
    description?: string
    plural: Plural
    item: Item
    example?: Example
    filters?: Filters
    read(
      context: Context,
      caller: Caller,
      filters: Static<TObject<Filters>>,
      page: Page,
    ): Promise<PageOf<Row>>
    present(row: Row): Static<Item>
  },
): Route {
  const { plural, item, filters, read, present, ...declared } = declaration
  return readRoute({
    ...declared,
    query: Type.Object({ ...filters, limit: Limit, cursor: Cursor }, { additionalProperties: false }),
    response: Type.Object(
      { [plural]: Type.Array(item), pagination: Pagination },
      { additionalProperties: false },
    ),
    async read(context, caller, input) {
      const { limit: limitText, cursor, ...given } = input.query as Record<string, string>
      const { organization_id } = caller
      const scope = { operation: declared.operation, organization_id, filters: canonicalJson(given) }
      const secret = context.config.service_secret
      const limit = limitText ? Number(limitText) : defaultLimit
      const after = cursor === undefined ? null : positionOf(secret, scope, cursor)
      const { rows, next } = await read(context, caller, given as Static<TObject<Filters>>, { limit, after })
      const pagination = {
        limit,
        has_more: next !== null,
        next_cursor: next && cursorFor(secret, scope, next),
      }
      return { body: { [plural]: rows.map(present), pagination } as never }
    },
  })
}

/** A filter that is on, off or, when absent, not applied. */
export const Flag = Type.Union([Type.Literal("true"), Type.Literal("false")])

export function flagOf(text: "true" | "false" | undefined): boolean | undefined {
  return text === undefined ? undefined : text === "true"
}

/** A bound of a time window: ISO 8601 in UTC. */
export const Instant = Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?Z$",
  "x-message": instantRule,
})

/** Throws `validation.failed` on the field for a day or hour that no calendar has. */
export function instantOf(text: string | undefined, field: string): Date | undefined {
  if (text === undefined) return undefined
  const instant = new Date(text)
  const isReal = !Number.isNaN(instant.getTime()) && instant.toISOString().slice(0, 19) === text.slice(0, 19)
  if (!isReal) throw fieldError(field, instantRule)
  return instant
}

const defaultLimit = 50

const Limit = Type.Optional(
  Type.String({ pattern: "^([1-9][0-9]?|100)$", "x-message": "must be a whole number from 1 to 100" }),
)

const Cursor = Type.Optional(Type.String({ minLength: 1, maxLength: 256 }))

export const Pagination = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 100 }),
    has_more: Type.Boolean(),
    next_cursor: nullable(Type.String()),
  },
  { additionalProperties: false },
)
