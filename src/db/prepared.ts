import { getTableColumns, type Placeholder, sql, type Table } from "drizzle-orm"
import type { Queries } from "./database.ts"

/**
 * A query on a hot path, built once for each `queries` that asks it and only filled in after that. SQLite has
 * one `tx` for good, so there it is built once; Postgres has a `tx` for each database transaction.
 */
export function prepared<Query>(build: (queries: Queries) => Query): (queries: Queries) => Query {
  const known = new WeakMap<Queries, Query>()
  return (queries) => {
    const query = known.get(queries) ?? build(queries)
    known.set(queries, query)
    return query
  }
}

/** A row to insert with every column left to be filled in under its own name. */
export function placeholdersOf<Rows extends Table>(table: Rows) {
  const names = Object.keys(getTableColumns(table)) as (keyof Rows["_"]["columns"] & string)[]
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as {
    [Name in keyof Rows["_"]["columns"] & string]: Placeholder<Name>
  }
}
