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
 * SQLite in write-ahead mode, each commit on disk before it is answered. There is one writer, so every database
 * transaction is serializable; those that arrive in the same turn share one commit.
 */
export function openSqlite(path: string): Database {
  const writer = connect(path)
  const reader = connect(path)
  reader.exec("pragma query_only = on")
  // From here on, waiting for a busy file does not block the event loop.
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
/** A checkpoint after 4 MB of log: everybody waits for it, and ten times as much takes 28 ms. */
const checkpointPages = 1_000
const busyPatienceMilliseconds = 5_000

/**
 * Commits works together. Nearly always all succeed, so they run without savepoints; when one throws after it wrote,
 * the group runs again with a savepoint each, and so do the next groups while works throw.
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

/** How the works ended; null as soon as one has to be undone. */
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
    // A full disk may end the whole transaction: then nobody's work stands.
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

/** A failing disk may refuse even this; then it is done before the next `begin`. */
function rollBack(writer: Connection): void {
  try {
    if (writer.inTransaction) writer.exec("rollback")
  } catch {}
}

/** Waits for another process that writes, such as the operator CLI, without blocking the event loop. */
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

/** Of several processes that open a new file at once one switches; SQLite refuses the others without waiting. */
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
 * Statements are prepared once, and those kept that are built once or were asked last: the others differ by how many values
 * they list, each has a text of its own, and a process lives for months. A connection whose statements are not finalized
 * stays open when it is closed.
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
    // Put behind the rest, so that the first is the one that was asked the longest ago.
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
 * Puts a plus before each parameter, which hides its value from the planner. Otherwise it looks whether a partial index
 * fits and compiles the statement again for each bound value (sqlite.org/c3ref/prepare.html), five times the cost of a
 * join of three tables. Only for queries built once, whose text holds their statuses; elsewhere a status is a parameter
 * and must be seen.
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
