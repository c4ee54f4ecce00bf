import { Database as Connection, type Statement as Prepared, type SQLQueryBindings } from "bun:sqlite"
import {
  assertNoOpenScope,
  codeOf,
  committedQueriesOver,
  type Database,
  DatabaseUnavailable,
  driverError,
  type Ended,
  type Queries,
  runInScope,
  type Statement,
  settleWork,
  transactionQueriesOver,
  type WaitingWork,
} from "./database.ts"

/**
 * Opens SQLite in write-ahead mode; each commit is on disk before its caller is told. There is one writer, so every
 * database transaction is serializable; those that arrive in the same turn of the event loop share one commit.
 */
export function openSqlite(path: string): Database {
  const writer = connect(path)
  const reader = connect(path)
  reader.exec("pragma query_only = on")
  // From here on, waiting for a locked file must not block the event loop.
  writer.exec("pragma busy_timeout = 0")
  const writes = statementsOf(writer)
  const reads = statementsOf(reader)
  const tx = transactionQueriesOver(writes.run)
  const read = committedQueriesOver((statement, params) => {
    if (closing) throw new DatabaseUnavailable(closedMessage)
    try {
      return reads.run(statement, params)
    } catch (error) {
      throw unavailable(error)
    }
  })
  const commitTogether = createGroupCommit(writer, tx)
  let waiting: WaitingWork[] = []
  let turn: Promise<void> | undefined
  let closing: Promise<void> | undefined

  async function takeTurns(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const group = waiting.slice(0, groupSize)
      waiting = waiting.slice(groupSize)
      await commitTogether(group)
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
/** A checkpoint every 4 MB of log. All requests wait for it, and with ten times as much it takes 28 ms. */
const checkpointPages = 1_000
const busyPatienceMilliseconds = 5_000

/**
 * Commits works together. Almost always all succeed, so they run without savepoints. When one throws after a write, the
 * group runs again with a savepoint each, and so do the following groups until one has no such error.
 */
function createGroupCommit(writer: Connection, tx: Queries): (group: WaitingWork[]) => Promise<void> {
  let isCalm = true

  async function run(group: WaitingWork[]): Promise<Ended<unknown>[]> {
    if (isCalm) {
      const ends = await runBare(tx, group)
      if (ends) return ends
      rollBack(writer)
      await beginImmediate(writer)
    }
    const ends = await runInSavepoints(writer, tx, group)
    isCalm = !ends.some(mustBeUndone)
    return ends
  }

  return async (group) => {
    try {
      await beginImmediate(writer)
      const ends = await run(group)
      writer.exec("commit")
      for (const [index, work] of group.entries())
        settleWork(work, ends[index] as Ended<unknown>, unavailable)
    } catch (error) {
      rollBack(writer)
      for (const work of group) work.reject(unavailable(error))
    }
  }
}

/** Returns the outcomes of the works; null as soon as one must be undone. */
async function runBare(tx: Queries, group: WaitingWork[]): Promise<Ended<unknown>[] | null> {
  const ends: Ended<unknown>[] = []
  for (const work of group) {
    const ended = await runInScope(work.run, tx)
    if (mustBeUndone(ended)) return null
    ends.push(ended)
  }
  return ends
}

async function runInSavepoints(
  writer: Connection,
  tx: Queries,
  group: WaitingWork[],
): Promise<Ended<unknown>[]> {
  const ends: Ended<unknown>[] = []
  for (const work of group) {
    writer.exec("savepoint work")
    const ended = await runInScope(work.run, tx)
    // A full disk may roll back the whole transaction; then no work of the group is committed.
    if ("error" in ended && !writer.inTransaction) throw ended.error
    if (mustBeUndone(ended)) writer.exec("rollback to work")
    writer.exec("release work")
    ends.push(ended)
  }
  return ends
}

function mustBeUndone(ended: Ended<unknown>): boolean {
  return "error" in ended && ended.wrote
}

/** Rolls back if it can. A failing disk may reject even this; then `beginImmediate` does it. */
function rollBack(writer: Connection): void {
  try {
    if (writer.inTransaction) writer.exec("rollback")
  } catch {}
}

/** Begins, waiting for other writing processes such as the operator CLI without blocking the event loop. */
async function beginImmediate(writer: Connection): Promise<void> {
  const deadline = performance.now() + busyPatienceMilliseconds
  for (;;) {
    try {
      if (writer.inTransaction) writer.exec("rollback")
      writer.exec("begin immediate")
      return
    } catch (error) {
      if (!codeOf(error).startsWith("SQLITE_BUSY") || performance.now() > deadline) throw error
      await Bun.sleep(10)
    }
  }
}

function connect(path: string): Connection {
  try {
    const connection = new Connection(path, { create: true, readwrite: true })
    connection.exec(`pragma busy_timeout = ${busyPatienceMilliseconds}`)
    switchToWal(connection)
    connection.exec("pragma synchronous = full")
    connection.exec("pragma foreign_keys = on")
    connection.exec(`pragma wal_autocheckpoint = ${checkpointPages}`)
    connection.exec("pragma trusted_schema = off")
    return connection
  } catch (error) {
    throw new DatabaseUnavailable(`cannot open the database file ${path}: ${(error as Error).message}`)
  }
}

/** Switches to WAL, retrying: of processes that open a new file at once, SQLite rejects all but one without waiting. */
function switchToWal(connection: Connection): void {
  const deadline = performance.now() + busyPatienceMilliseconds
  for (;;) {
    try {
      connection.exec("pragma journal_mode = wal")
      return
    } catch (error) {
      if (!codeOf(error).startsWith("SQLITE_BUSY") || performance.now() > deadline) throw error
      Bun.sleepSync(10)
    }
  }
}

/**
 * Prepares each statement once. Those without a name differ by how many values they list, so only the most recently
 * used are kept: a process lives for months. A connection with statements that are not finalized stays open after
 * `close`.
 */
function statementsOf(connection: Connection) {
  const built = new Map<string, Prepared<unknown, SQLQueryBindings[]>>()
  const others = new Map<string, Prepared<unknown, SQLQueryBindings[]>>()

  function builtOnce(text: string) {
    const known = built.get(text)
    if (known) return known
    const statement = connection.prepare(withHiddenParameters(text))
    built.set(text, statement)
    return statement
  }

  function askedLast(text: string) {
    const statement = others.get(text) ?? connection.prepare(text)
    // Moves it to the end, so that the first entry is the least recently used.
    others.delete(text)
    others.set(text, statement)
    const [oldest] = others
    if (oldest && others.size > mostOthers) {
      others.delete(oldest[0])
      oldest[1].finalize()
    }
    return statement
  }

  return {
    run({ text, name }: Statement, params: unknown[]): unknown[][] {
      const statement = name ? builtOnce(text) : askedLast(text)
      return statement.values(...(params as SQLQueryBindings[])) as unknown[][]
    },
    finalize() {
      for (const statement of [...built.values(), ...others.values()]) statement.finalize()
    },
  }
}

const mostOthers = 200

/**
 * Puts a plus before each parameter, which hides its value from the planner. Otherwise the planner checks whether a
 * partial index fits and recompiles the statement for each bound value (sqlite.org/c3ref/prepare.html), which costs
 * five times as much as a join of three tables. Only for queries built once, whose text contains their statuses;
 * elsewhere a status is a parameter that the planner must see.
 */
export function withHiddenParameters(text: string): string {
  return text.replaceAll(/'[^']*'|\$\d+/g, (part) => (part.startsWith("'") ? part : `+${part}`))
}

const unavailableCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/

function unavailable(error: unknown): unknown {
  const cause = driverError(error)
  const code = codeOf(cause)
  if (!unavailableCodes.test(code)) return cause
  return new DatabaseUnavailable(`SQLite cannot answer now (${code}): ${(cause as Error).message}`)
}
