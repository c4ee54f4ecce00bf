import { Database as Connection, type SQLQueryBindings, type Statement } from "bun:sqlite"
import {
  assertNoOpenScope,
  committedQueriesOver,
  type Database,
  DatabaseUnavailable,
  driverError,
  inScope,
  type Queries,
  type RunStatement,
  runCallbacks,
  transactionQueriesOver,
} from "./database.ts"

/**
 * SQLite in write-ahead mode, every commit on disk before it is answered.
 * Database transactions that arrive in the same turn share one commit, each in a savepoint of its own.
 */
export function openSqlite(path: string): Database {
  const writer = connect(path)
  const reader = connect(path)
  reader.exec("pragma query_only = on")
  // From here on a busy file is waited for without blocking the event loop.
  writer.exec("pragma busy_timeout = 0")
  const writes = statementsOf(writer)
  const reads = statementsOf(reader)
  const tx = transactionQueriesOver(writes.run)
  const read = committedQueriesOver(async (sql, params) => {
    if (closing) throw new DatabaseUnavailable(closedMessage)
    try {
      return await reads.run(sql, params)
    } catch (error) {
      throw unavailable(error)
    }
  })
  let waiting: Work[] = []
  let turn: Promise<void> | undefined
  let closing: Promise<void> | undefined

  async function takeTurns(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const group = waiting.slice(0, groupSize)
      waiting = waiting.slice(groupSize)
      await commitTogether(writer, tx, group)
    }
    turn = undefined
  }

  async function closeAll(): Promise<void> {
    await turn
    reads.finalize()
    writes.finalize()
    reader.close()
    writer.close()
  }

  return {
    engine: "sqlite",
    read,
    async transaction(work) {
      assertNoOpenScope()
      if (closing) throw new DatabaseUnavailable(closedMessage)
      return await new Promise((resolve, reject) => {
        waiting.push({ run: work, resolve: resolve as (value: unknown) => void, reject })
        turn ??= takeTurns()
      })
    },
    async close() {
      closing ??= closeAll()
      await closing
    },
  }
}

const closedMessage = "the database is closed"
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
    rollBack(writer)
    for (const work of group) work.reject(unavailable(error))
    return
  }
  for (const answer of answers) answer()
}

/** A disk that fails may refuse even this; the next `begin` then says so. */
function rollBack(writer: Connection): void {
  try {
    if (writer.inTransaction) writer.exec("rollback")
  } catch {}
}

async function runInSavepoint(writer: Connection, tx: Queries, work: Work): Promise<() => void> {
  writer.exec("savepoint work")
  try {
    const { value, callbacks } = await inScope(() => work.run(tx))
    writer.exec("release work")
    return () => {
      runCallbacks(callbacks)
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
      if (!codeOf(error)?.startsWith("SQLITE_BUSY") || performance.now() > deadline) throw error
      await Bun.sleep(10)
    }
  }
}

function connect(path: string): Connection {
  try {
    const connection = new Connection(path, { create: true, readwrite: true })
    connection.exec(`pragma busy_timeout = ${busyPatienceMilliseconds}`)
    connection.exec("pragma journal_mode = wal")
    connection.exec("pragma synchronous = full")
    connection.exec("pragma foreign_keys = on")
    connection.exec("pragma trusted_schema = off")
    return connection
  } catch (error) {
    throw new DatabaseUnavailable(`cannot open the database file ${path}: ${(error as Error).message}`)
  }
}

/** Statements are prepared once. A connection whose statements are not finalized stays open when it is closed. */
function statementsOf(connection: Connection): { run: RunStatement; finalize: () => void } {
  const statements = new Map<string, Statement<unknown, SQLQueryBindings[]>>()
  return {
    async run(sql, params) {
      let statement = statements.get(sql)
      if (!statement) {
        statement = connection.prepare(sql)
        statements.set(sql, statement)
      }
      return statement.values(...(params as SQLQueryBindings[])) as unknown[][]
    },
    finalize() {
      for (const statement of statements.values()) statement.finalize()
    },
  }
}

const unavailableCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/

function unavailable(error: unknown): unknown {
  const cause = driverError(error)
  const code = codeOf(cause)
  if (!code || !unavailableCodes.test(code)) return cause
  return new DatabaseUnavailable(`SQLite cannot answer now (${code}): ${(cause as Error).message}`)
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined
}
