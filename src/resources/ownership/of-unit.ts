import { and, eq } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import {
  type GivenPage,
  givenPage,
  keysetAfter,
  newestFirst,
  type Page,
  type PageOf,
  pageOf,
} from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import type { chipReplacements, claims, transfers } from "../../db/schema.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError, type ErrorCode } from "../../platform/errors.ts"
import { parseId } from "../../platform/ids.ts"
import { getUnitForCaller } from "./rules.ts"

/** One row of what was done to a unit that the caller may act on. Throws `not_found`. */
export async function getOfUnit<Table extends OfUnit>(
  queries: Queries,
  caller: Caller,
  asked: { table: Table; unit_id: string; id: string; not_found: ErrorCode },
): Promise<Table["$inferSelect"]> {
  const unit = await getUnitForCaller(queries, caller, asked.unit_id)
  const id = parseId(asked.id)
  if (!id) throw new ApiError(asked.not_found)
  const table: OfUnit = asked.table
  const [row] = await queries
    .select()
    .from(table)
    .where(
      and(eq(table.id, id), eq(table.unit_id, unit.id), eq(table.organization_id, caller.organization_id)),
    )
  if (!row) throw new ApiError(asked.not_found)
  return row
}

/** Lists what was done to a unit that the caller may act on, a page at a time. */
export function listOf<Table extends OfUnit>(table: Table): ListOfUnit<Table["$inferSelect"]> {
  const listed: OfUnit = table
  const rowsOf = query((db, given: Given<GivenPage & { unit_id: string }>) =>
    db
      .select()
      .from(listed)
      .where(and(eq(listed.unit_id, given.unit_id), keysetAfter(listed, given)))
      .orderBy(...newestFirst(listed))
      .limit(given.rows),
  )
  return async (queries, caller, unitId, page) => {
    const { id } = await getUnitForCaller(queries, caller, unitId)
    return pageOf(await rowsOf(queries, { unit_id: id, ...givenPage(page) }), page.limit)
  }
}

type ListOfUnit<Row> = (queries: Queries, caller: Caller, unitId: string, page: Page) => Promise<PageOf<Row>>

type OfUnit = typeof claims | typeof transfers | typeof chipReplacements
