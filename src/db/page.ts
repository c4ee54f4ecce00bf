import { and, desc, eq, type SQL, type SQLWrapper, sql } from "drizzle-orm"
import type { PgColumn, PgTable } from "drizzle-orm/pg-core"
import type { Queries } from "./database.ts"
import { type Given, query } from "./query.ts"

/** Which page of a list to read: at most `limit` rows after `after`. */
export type Page = { limit: number; after: Position | null }

/** A row's position in a list that is sorted newest first. */
export type Position = { created_at: Date; id: string }

/** The rows of a page; `next` is the position of the last one if more rows follow, else null. */
export type PageOf<Row> = { rows: Row[]; next: Position | null }

/** The columns that sort a list. */
type Keyset = { created_at: PgColumn; id: PgColumn }

/** The values of a page in a list's query. */
export type GivenPage = { after_created_at?: Date; after_id?: string; rows: number }

/** Returns a function that lists the rows of a table that meet a condition, newest first, one page at a time. */
export function pagesOf<Table extends ListedTable, Values extends object>(
  table: Table,
  conditionOf: (given: Given<Values>) => SQL | undefined,
): (queries: Queries, values: Values, page: Page) => Promise<PageOf<Table["$inferSelect"]>> {
  const listed: PgTable & Keyset = table
  const rowsOf = query((db, given: Given<Values & GivenPage>) =>
    db
      .select()
      .from(listed)
      .where(and(conditionOf(given), keysetAfter(listed, given)))
      .orderBy(...newestFirst(listed))
      .limit(given.rows),
  )
  return async (queries, values, page) => {
    const rows = await rowsOf(queries, { ...values, ...givenPage(page) })
    return pageOf(rows as Table["$inferSelect"][], page.limit)
  }
}

type ListedTable = PgTable & Keyset & { $inferSelect: Position }

/** Returns the query values of a page, with one row more than its limit to learn whether others follow. */
export function givenPage({ limit, after }: Page): GivenPage {
  return { ...(after && { after_created_at: after.created_at, after_id: after.id }), rows: limit + 1 }
}

/** Returns the condition for rows after a position, compared as one pair so that the index can seek to it. */
export function keysetAfter({ created_at, id }: Keyset, given: Given<GivenPage>): SQL | undefined {
  if (!given.after_created_at) return undefined
  const position = sql`(${sql.param(given.after_created_at, created_at)}, ${sql.param(given.after_id, id)})`
  return sql`(${created_at}, ${id}) < ${position}`
}

/** Returns an equality that no index is used for, where another condition selects fewer rows. */
export function equalUnindexed(column: PgColumn, value: SQLWrapper): SQL {
  return eq(unindexed(column), value)
}

/** Returns a column that no index is used for in comparisons. */
export function unindexed(column: PgColumn): SQL {
  return sql`coalesce(${column}, ${column})`
}

/** Sorts newest first; rows of the same time by id, descending. */
export function newestFirst(columns: Keyset): SQL[] {
  return [desc(columns.created_at), desc(columns.id)]
}

/** Returns the page from rows that were queried with `givenPage`. */
export function pageOf<Row extends Position>(rows: Row[], limit: number): PageOf<Row> {
  return pageBy(rows, limit, (row) => row.id)
}

/** Returns the page of rows whose id is in another column than `id`. */
export function pageBy<Row extends { created_at: Date }>(
  rows: Row[],
  limit: number,
  idOf: (row: Row) => string,
): PageOf<Row> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = last && rows.length > limit ? { created_at: last.created_at, id: idOf(last) } : null
  return { rows: shown, next }
}
