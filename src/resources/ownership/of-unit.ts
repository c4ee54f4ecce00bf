import { and, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type Page, type PageOf, pagesOf } from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import type { chipReplacements, claims, transfers } from "../../db/schema.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError, type ErrorCode } from "../../platform/errors.ts"
import { parseId } from "../../platform/ids.ts"
import { getUnitForCaller } from "./rules.ts"

/** Returns a function that gets one row about a unit that the caller may act on. It throws `not_found`. */
export function getOf<Table extends OfUnit>(
  table: Table,
  not_found: ErrorCode,
): (queries: Queries, caller: Caller, unitId: string, id: string) => Promise<Table["$inferSelect"]> {
  const { id, unit_id, organization_id }: OfUnit = table
  const rowOf = query((db, given: Given<{ id: string; unit_id: string; organization_id: string }>) =>
    db
      .select()
      .from<OfUnit>(table)
      .where(and(eq(id, given.id), eq(unit_id, given.unit_id), eq(organization_id, given.organization_id))),
  )
  return async (queries, caller, unitId, rowId) => {
    const unit = await getUnitForCaller(queries, caller, unitId)
    const asked = parseId(rowId)
    if (!asked) throw new ApiError(not_found)
    const { organization_id } = caller
    const [row] = await rowOf(queries, { id: asked, unit_id: unit.id, organization_id })
    if (!row) throw new ApiError(not_found)
    return row
  }
}

/** Returns a function that lists the rows about a unit that the caller may act on, a page at a time. */
export function listOf<Table extends OfUnit>(table: Table): ListOfUnit<Table["$inferSelect"]> {
  const { unit_id }: OfUnit = table
  const pages = pagesOf(table, (given: Given<{ unit_id: string }>) => eq(unit_id, given.unit_id))
  return async (queries, caller, unitId, page) => {
    const unit = await getUnitForCaller(queries, caller, unitId)
    return await pages(queries, { unit_id: unit.id }, page)
  }
}

type ListOfUnit<Row> = (queries: Queries, caller: Caller, unitId: string, page: Page) => Promise<PageOf<Row>>

type OfUnit = typeof claims | typeof transfers | typeof chipReplacements
