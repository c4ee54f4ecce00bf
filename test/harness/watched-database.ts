import { type Database, type Queries, queriesOver } from "../../src/db/database.ts"

/** A statement and the rows that it returned. */
export type Watched = { text: string; params: unknown[]; rows: unknown[][] }

/** The same database, calling `tell` after every statement and waiting for it. */
export function watchedDatabase(db: Database, tell: (watched: Watched) => unknown): Database {
  const over = (queries: Queries) =>
    queriesOver(async (statement, params) => {
      const rows = await queries.ask(statement, params)
      await tell({ text: statement.text, params, rows })
      return rows
    })
  const { engine, read, transaction, close } = db
  return {
    engine,
    read: over(read),
    transaction: (work, isolation) => transaction((tx) => work(over(tx)), isolation),
    close,
  }
}
