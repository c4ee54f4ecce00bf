import { Database as Connection, type SQLQueryBindings, type Statement } from "bun:sqlite"
import {
  assertNoOpenScope,
  committedQueriesOver,
  type Database,
  DatabaseUnavailable,
  driverError,
  inScope,
  type Queries,
  queriesOver,
  type RunStatement,
} from "./database.ts"

/**
 * SQLite in write-ahead mode, every commit on disk before it is answered.
 * Database transactions that arrive in the same turn share one commit, each in a savepoint of its own.
 */
export function openSqlite(path: string): Database {
  const writer = connect(path)
  const reader = connect(path)
  reader.exec("pragma query_only = on")
  const tx = queriesOver(statementsOf(writer))
  const read = committedQueriesOver(statementsOf(reader))
  let waiting: Work[] = []
  let turn: Promise<void> | undefined
  let closed = false

  async function takeTurns(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const group = waiting.slice(0, groupSize)
      waiting = waiting.slice(groupSize)
      await commitTogether(writer, tx, group)
    }
    turn = undefined
  }

  return {
    engine: "sqlite",
    read,
    async transaction(work) {
      assertNoOpenScope()
      if (closed) throw new DatabaseUnavailable("the database is closed")
      return await new Promise((resolve, reject) => {
        waiting.push({ run: work, resolve: resolve as (value: unknown) => void, reject })
        turn ??= takeTurns()
      })
    },
    async close() {
      closed = true
      await turn
      reader.close()
      writer.close()
    },
  }
}

const groupSize = 256
const busyPatienceMilliseconds = 5_000

type Work = {
  run: (tx: Queries) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

async function commitTogether(writer: Connection, tx: Queries, group: Work[]): Promise<void> {
  const answers: (() => void)[] = []
  try {
    await beginImmediate(writer)
    for (const work of group) answers.push(await runInSavepoint(writer, tx, work))
    writer.exec("commit")
  } catch (error) {
    if (writer.inTransaction) writer.exec("rollback")
    for (const work of group) work.reject(unavailable(error))
    return
  }
  for (const answer of answers) answer()
}

async function runInSavepoint(writer: Connection, tx: Queries, work: Work): Promise<() => void> {
  writer.exec("savepoint work")
  try {
    const { value, callbacks } = await inScope(() => work.run(tx))
    writer.exec("release work")
    return () => {
      for (const callback of callbacks) callback()
      work.resolve(value)
    }
  } catch (error) {
    // A full disk may end the whole transaction: then nobody's work stands.
    if (!writer.inTransaction) throw driverError(error)
    writer.exec("rollback to work")
    writer.exec("release work")
    return () => work.reject(unavailable(error))
  }
}

/** Another process, such as the operator CLI, may be writing: waits without blocking this one's event loop. */
async function beginImmediate(writer: Connection): Promise<void> {
  const deadline = performance.now() + busyPatienceMilliseconds
  for (;;) {
    try {
      writer.exec("begin immediate")
      return
    } catch (error) {
      if (codeOf(error) !== "SQLITE_BUSY" || performance.now() > deadline) throw error
      await Bun.sleep(10)
    }
  }
}

function connect(path: string): Connection {
  try {
    const connection = new Connection(path, { create: true, readwrite: true })
    connection.exec("pragma busy_timeout = 100")
    connection.exec("pragma journal_mode = wal")
    connection.exec("pragma synchronous = full")
    connection.exec("pragma foreign_keys = on")
    connection.exec("pragma trusted_schema = off")
    return connection
  } catch (error) {
    throw new DatabaseUnavailable(`cannot open the database file ${path}: ${(error as Error).message}`)
  }
}

function statementsOf(connection: Connection): RunStatement {
  const statements = new Map<string, Statement<unknown, SQLQueryBindings[]>>()
  return async (sql, params) => {
    let statement = statements.get(sql)
    if (!statement) {
      statement = connection.prepare(sql)
      statements.set(sql, statement)
    }
    return statement.values(...(params as SQLQueryBindings[])) as unknown[][]
  }
}

const unavailableCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/

function unavailable(error: unknown): unknown {
  const cause = driverError(error)
  const code = codeOf(cause)
  if (!code || !unavailableCodes.test(code)) return cause
  return new DatabaseUnavailable(`SQLite cannot write now (${code}): ${(cause as Error).message}`)
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined
}
