import pg from "pg"
import {
  assertNoOpenScope,
  codeOf,
  committedQueriesOver,
  type Database,
  DatabaseUnavailable,
  driverError,
  type Ended,
  type Isolation,
  type Queries,
  type RunStatement,
  runCallbacks,
  runInScope,
  settleWork,
  transactionQueriesOver,
  type WaitingWork,
  type Work,
} from "./database.ts"
import {
  attemptsFor,
  forgetful,
  isLost,
  isOfPostgres,
  mustRepeat,
  refusalOf,
  unavailable,
} from "./postgres-errors.ts"
import { createTurnstile, type Turnstile } from "./turnstile.ts"

/**
 * Opens Postgres 15 or later. Serializable database transactions are repeated when Postgres asks for it; concurrent
 * read committed ones share a commit. A connection that takes too long to respond is closed: its server may be gone.
 */
export function openPostgres(url: string, patience_milliseconds = usualPatienceMilliseconds): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: connectPatienceMilliseconds,
    query_timeout: patience_milliseconds,
    // For statements that may take longer than the query timeout.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    maxLifetimeSeconds: 600,
    onConnect: (client) => beginSession(client, patience_milliseconds),
    // Sends a statement without waiting for the result of the one before it.
    pipeline: true,
  } as pg.PoolConfig)
  pool.on("error", ignoreBrokenConnection)
  const oneAtATime = createTurnstile()
  const runTogether = createGroupCommit(pool, (work) =>
    runUntilCommitted(pool, oneAtATime, work, "read committed"),
  )
  const underWay = new Set<Promise<unknown>>()
  let closing: Promise<void> | undefined

  async function whileOpen<T>(ask: () => Promise<T>): Promise<T> {
    if (closing) throw new DatabaseUnavailable("the database is closed")
    const answer = ask()
    underWay.add(answer)
    try {
      return await answer
    } finally {
      underWay.delete(answer)
    }
  }

  return {
    engine: "postgres",
    read: committedQueriesOver((statement, params) =>
      whileOpen(() =>
        reachable(() => onConnection(pool, async (client) => await rowsOf(client)(statement, params))),
      ),
    ),
    async transaction(work, isolation = "serializable") {
      assertNoOpenScope()
      return await whileOpen(() =>
        isolation === "read committed"
          ? runTogether(work)
          : runUntilCommitted(pool, oneAtATime, work, isolation),
      )
    },
    async close() {
      closing ??= Promise.allSettled(underWay).then(() => pool.end())
      await closing
    },
  }
}

const connectPatienceMilliseconds = 5_000

/** Longer than any statement of a request or worker takes; slower statements set their own. */
const usualPatienceMilliseconds = 30_000

/** The longest that a process hanging inside a work can keep rows locked. */
const silenceMilliseconds = 10_000

/**
 * Prepares a new session with statements, since poolers reject start-up options. Rejects a standby, whose data lags.
 */
async function beginSession(client: pg.ClientBase, patience_milliseconds: number): Promise<void> {
  const ask = (text: string) => {
    const question = { text, query_timeout: connectPatienceMilliseconds }
    return client.query(question)
  }
  const [{ rows }] = await Promise.all([
    ask("select pg_is_in_recovery() as is_standby"),
    ask("set timezone = 'UTC'"),
    ask("set datestyle = 'ISO'"),
    // Under serializable, a single read may be rejected, and reads are not repeated.
    ask("set default_transaction_isolation = 'read committed'"),
    // Defaults of the role or database would cut short deliberately long waits, such as a migration's.
    ask("set statement_timeout = 0"),
    ask("set lock_timeout = 0"),
    // Exists since Postgres 17.
    ask("select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'"),
    ask(`set idle_in_transaction_session_timeout = ${silenceMilliseconds}`),
    // An abandoned statement must not keep waiting for row locks.
    ask(`set client_connection_check_interval = ${Math.ceil(patience_milliseconds / 3)}`).catch(
      unlessUnknownHere,
    ),
  ])
  if (rows[0].is_standby) throw new DatabaseUnavailable("Postgres is a standby and accepts no writes")
}

/** Rethrows all but 22023 invalid_parameter_value: a server on Windows cannot detect that a client has gone. */
function unlessUnknownHere(error: unknown): void {
  if (codeOf(error) !== "22023") throw error
}

/**
 * Runs a work until it is committed. After two failed attempts, works run one at a time, so that those competing for
 * the same row do not keep aborting each other.
 */
async function runUntilCommitted<T>(
  pool: pg.Pool,
  oneAtATime: Turnstile,
  work: Work<T>,
  isolation: Isolation,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      const once = () => runOnce(pool, work, isolation)
      return await (attempt <= 2 ? once() : oneAtATime(once))
    } catch (error) {
      if (!mustRepeat(error) || attempt === attemptsFor(error)) throw unavailable(error)
    }
    await Bun.sleep(Math.random() * Math.min(2 ** attempt, 50))
  }
}

/** Throws the driver's error. Then nothing was committed, unless the connection was lost during the commit. */
async function runOnce<T>(pool: pg.Pool, work: Work<T>, isolation: Isolation): Promise<T> {
  return await onConnection(pool, async (client, tx) => {
    const begun = sendAhead(client, `begin isolation level ${isolation.replace(" alone", "")}`)
    const ended = await runInScope(work, tx)
    await begun
    if ("error" in ended) throw ended.error
    await commit(client)
    runCallbacks(ended.callbacks)
    return ended.value
  })
}

/**
 * Runs up to 64 read committed works in one database transaction, interleaved, so that one round trip carries a
 * statement of each. If one throws after a write, or Postgres rejects a statement, the group is rolled back and each
 * work runs by itself. One group at a time: two could deadlock on each other's rows.
 */
function createGroupCommit(pool: pg.Pool, runAlone: <T>(work: Work<T>) => Promise<T>) {
  let waiting: WaitingWork[] = []
  let isUnderWay = false

  async function takeTurns(): Promise<void> {
    isUnderWay = true
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const group = waiting.slice(0, groupSize)
      waiting = waiting.slice(groupSize)
      const ends = await commitTogether(pool, group)
      // Each work settles its own caller, so the next group need not wait.
      group.forEach((work, index) => {
        const ended = ends?.[index]
        if (ended) settleWork(work, ended, unavailable)
        else runAlone(work.run).then(work.resolve, work.reject)
      })
    }
    isUnderWay = false
  }

  return <T>(work: Work<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      waiting.push({ run: work, resolve: resolve as WaitingWork["resolve"], reject })
      if (!isUnderWay) void takeTurns()
    })
}

const groupSize = 64
/** A group locks rows of many works, so it should be the one to give way in a deadlock with another process. */
const groupPatienceMilliseconds = 200

/** Returns the outcomes of the works once committed; null if all were rolled back and each must run by itself. */
async function commitTogether(pool: pg.Pool, group: WaitingWork[]): Promise<Ended<unknown>[] | null> {
  try {
    return await onConnection(pool, async (client, tx) => {
      const begun = sendAhead(client, "begin isolation level read committed")
      const limited = sendAhead(client, `set local lock_timeout = ${groupPatienceMilliseconds}`)
      const ends = await Promise.all(group.map((work) => runInScope(work.run, tx)))
      await Promise.all([begun, limited])
      for (const ended of ends)
        if ("error" in ended && (ended.wrote || mustRepeat(ended.error) || isOfPostgres(ended.error)))
          throw ended.error
      await commit(client)
      return ends
    })
  } catch (error) {
    // A commit may have succeeded although its connection was lost, so nothing is repeated.
    if (isLost(error)) return group.map(() => ({ error, wrote: false }))
    return null
  }
}

/** Runs `work` on a connection of its own and rolls back if it throws. Closes a broken connection. */
async function onConnection<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, tx: Queries) => Promise<T>,
): Promise<T> {
  const client = await connect(pool)
  refusals.delete(client)
  // Postgres may end a session between two statements. The next one then fails without a code.
  const remember = (error: Error) => rememberRefusal(client, error)
  client.on("error", remember)
  let broken: Error | undefined
  try {
    return await work(client, transactionOn(client))
  } catch (error) {
    const cause = causeOf(client, driverError(error))
    if (isLost(cause)) broken = cause as Error
    else
      await client.query("rollback").catch((failure: Error) => {
        broken = failure
      })
    throw cause
  } finally {
    client.off("error", remember)
    client.release(broken)
  }
}

/**
 * Throws `DatabaseUnavailable` whatever prevents a connection, including DNS and certificates: no request is at fault.
 */
async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    if (error instanceof DatabaseUnavailable) throw error
    const { message } = error as Error
    // The driver's message when no password was given.
    const why = /password must be/.test(message) ? "it requires a password" : message || codeOf(error)
    throw refusalOf(error) ?? new DatabaseUnavailable(`Postgres cannot be reached: ${why}`)
  }
}

/**
 * Sends a statement without waiting for it, so that others can follow at once. The promise reports the result later.
 */
function sendAhead(client: pg.PoolClient, text: string): Promise<unknown> {
  const answer = client.query(text)
  answer.catch(() => {})
  return answer
}

/** Throws if Postgres answered with a rollback, as it does when a statement failed and the work hid its error. */
async function commit(client: pg.PoolClient): Promise<void> {
  const ended = await client.query("commit")
  if (ended.command !== "COMMIT") throw new Error("a statement failed, but its error was not passed on")
}

/** Returns a connection's `tx`, which all its database transactions share. */
function transactionOn(client: pg.PoolClient): Queries {
  const known = transactions.get(client)
  if (known) return known
  const tx = transactionQueriesOver(rowsOf(client))
  transactions.set(client, tx)
  return tx
}

const transactions = new WeakMap<pg.PoolClient, Queries>()

/** Ignores an error that would end the process without a listener: the pool reconnects. */
function ignoreBrokenConnection(): void {}

function rowsOf(client: pg.PoolClient): RunStatement {
  return async ({ text, name, patience_milliseconds }, params) => {
    const shape = { rowMode: "array", types: plainTypes, query_timeout: patience_milliseconds } as const
    try {
      const result = await client.query({ text, name, values: params, ...shape })
      return result.rows as unknown[][]
    } catch (error) {
      rememberRefusal(client, error)
      throw error
    }
  }
}

/** 25P02 in_failed_sql_transaction: an earlier statement failed, and its error is the one that matters. */
const transactionAborted = "25P02"

/** 26000 invalid_sql_statement_name: no statement of that name is prepared. */
const unprepared = "26000"

/** The last error of a connection's present work that did not merely follow from another. */
const refusals = new WeakMap<pg.PoolClient, unknown>()

function rememberRefusal(client: pg.PoolClient, error: unknown): void {
  if (!isAftermath(client, error)) refusals.set(client, error)
}

/**
 * Returns whether an error only follows from the one before it. When preparing a statement fails, the driver may
 * already have sent others of the same name, as if it were prepared. What must be repeated was rolled back, so nothing
 * is in doubt if the connection is lost after it.
 */
function isAftermath(client: pg.PoolClient, error: unknown): boolean {
  const code = codeOf(error)
  if (code === transactionAborted) return true
  if (code === unprepared) return refusals.has(client)
  return isLost(error) && mustRepeat(refusals.get(client))
}

function causeOf(client: pg.PoolClient, error: unknown): unknown {
  return isAftermath(client, error) ? (refusals.get(client) ?? error) : error
}

const timestamptz = 1184
const jsonTypes = [114, 3802]

const plainTypes = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (oid === timestamptz) return instantOf
    if (jsonTypes.includes(oid)) return (value: string) => value
    return pg.types.getTypeParser(oid, format as "text")
  },
} as pg.CustomTypesConfig

function instantOf(value: string): string {
  if (value.endsWith("+00")) return `${value.slice(0, -3).replace(" ", "T")}Z`
  throw forgetful("time zone")
}

async function reachable<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw unavailable(error)
  }
}
