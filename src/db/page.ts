import { and, desc, eq, type SQL, type SQLWrapper, sql } from "drizzle-orm"
import type { PgColumn, PgTable } from "drizzle-orm/pg-core"
import type { Queries } from "./database.ts"
import { type Given, query } from "./query.ts"

/** One page of a list: at most `limit` rows, those that follow `after`. */
export type Page = { limit: number; after: Position | null }

/** Where a row stands in a list that shows the newest first. */
export type Position = { created_at: Date; id: string }

/** The rows of a page; `next` is the last one's position when more rows follow, else null. */
export type PageOf<Row> = { rows: Row[]; next: Position | null }

/** The columns that order a list. */
type Keyset = { created_at: PgColumn; id: PgColumn }

/** What the query of a list is given of its page. */
export type GivenPage = { after_created_at?: Date; after_id?: string; rows: number }

/** Lists the rows of a table under a condition, a page at a time, newest first. */
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

/** Asks for one row more than the page, to know whether others follow. */
export function givenPage({ limit, after }: Page): GivenPage {
  return { ...(after && { after_created_at: after.created_at, after_id: after.id }), rows: limit + 1 }
}

/** The rows after a position, compared as one pair, so that an index leads straight to it. */
export function keysetAfter({ created_at, id }: Keyset, given: Given<GivenPage>): SQL | undefined {
  if (!given.after_created_at) return undefined
  const position = sql`(${sql.param(given.after_created_at, created_at)}, ${sql.param(given.after_id, id)})`
  return sql`(${created_at}, ${id}) < ${position}`
}

/** Equality that uses no index, where another condition leads to fewer rows. */
export function equalUnindexed(column: PgColumn, value: SQLWrapper): SQL {
  return eq(unindexed(column), value)
}

/** The same for any comparison with the column. */
export function unindexed(column: PgColumn): SQL {
  return sql`coalesce(${column}, ${column})`
}

/** The newest first; of one instant, the greater id. */
export function newestFirst(columns: Keyset): SQL[] {
  return [desc(columns.created_at), desc(columns.id)]
}

/** The page in rows that were asked for with `givenPage`. */
export function pageOf<Row extends Position>(rows: Row[], limit: number): PageOf<Row> {
  return pageBy(rows, limit, (row) => row.id)
}

/** The same for rows that another column than `id` names. */
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
