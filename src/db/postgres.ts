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

/**
 * Postgres 15 or later. Serializable database transactions are repeated when Postgres asks for it; read committed ones
 * that arrive while others are under way share one commit. A connection that answers a statement too late is given up:
 * its server may be gone.
 */
export function openPostgres(url: string, patience_milliseconds = usualPatienceMilliseconds): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: connectPatienceMilliseconds,
    query_timeout: patience_milliseconds,
    // For statements that may take longer.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    maxLifetimeSeconds: 600,
    onConnect: (client) => beginSession(client, patience_milliseconds),
    // A statement is sent without waiting for the answer to the one before it.
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

/** Longer than any statement of a request or a worker; a slower statement says so itself. */
const usualPatienceMilliseconds = 30_000

/** A process that hangs inside a work keeps rows from the others no longer than this. */
const silenceMilliseconds = 10_000

/** Settings are statements, as poolers refuse start-up options. A standby is refused: it lags behind. */
async function beginSession(client: pg.ClientBase, patience_milliseconds: number): Promise<void> {
  const ask = (text: string) => {
    const question = { text, query_timeout: connectPatienceMilliseconds }
    return client.query(question)
  }
  const [{ rows }] = await Promise.all([
    ask("select pg_is_in_recovery() as is_standby"),
    ask("set timezone = 'UTC'"),
    ask("set datestyle = 'ISO'"),
    // With serializable, a single read may be refused, and is asked once.
    ask("set default_transaction_isolation = 'read committed'"),
    // Those of a role or database would cut short what waits for long on purpose, as a migration does.
    ask("set statement_timeout = 0"),
    ask("set lock_timeout = 0"),
    // Postgres 17 brought it.
    ask("select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'"),
    ask(`set idle_in_transaction_session_timeout = ${silenceMilliseconds}`),
    // A statement that was given up must not go on waiting for rows.
    ask(`set client_connection_check_interval = ${Math.ceil(patience_milliseconds / 3)}`).catch(
      unlessUnknownHere,
    ),
  ])
  if (rows[0].is_standby) throw new DatabaseUnavailable("Postgres is a standby here and takes no writes")
}

/** 22023, invalid parameter value: a server on Windows cannot see that a client has gone. */
function unlessUnknownHere(error: unknown): void {
  if (codeOf(error) !== "22023") throw error
}

type Turnstile = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Runs a work until it is committed. After two losses works run one at a time, so that those that want the same row do
 * not defeat each other for ever.
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

function createTurnstile(): Turnstile {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}

/** Throws the driver's error; nothing was committed then, unless the connection was lost during the commit. */
async function runOnce<T>(pool: pg.Pool, work: Work<T>, isolation: Isolation): Promise<T> {
  return await onConnection(pool, async (client, tx) => {
    const begun = sendAhead(client, `begin isolation level ${isolation.replace(" alone", "")}`)
    const ended = await runInScope(work, tx)
    await begun
    if ("error" in ended) throw causeOf(client, ended.error)
    await commit(client)
    runCallbacks(ended.callbacks)
    return ended.value
  })
}

/**
 * Runs up to 64 read committed works in one database transaction, interleaved, so that one round trip carries a
 * statement of each. If one throws after it wrote, or Postgres refuses a statement, the group is undone and each runs
 * by itself. One group at a time: two could wait for each other's rows.
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
      // Each has its own caller; the next group need not wait for them.
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
/** A group holds rows of many works, so it is the one to give way in a deadlock with another process. */
const groupPatienceMilliseconds = 200

/** How the works ended, committed; null when all were undone and each must run by itself. */
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
    // If the connection was lost during the commit, it may stand: then nothing is done again.
    if (isLost(error)) return group.map(() => ({ error, wrote: false }))
    return null
  }
}

/** Runs `work` on its own connection, and rolls back when it throws. A broken connection is closed. */
async function onConnection<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, tx: Queries) => Promise<T>,
): Promise<T> {
  const client = await connect(pool)
  client.on("error", ignoreBrokenConnection)
  let broken: Error | undefined
  try {
    return await work(client, transactionOn(client))
  } catch (error) {
    const cause = driverError(error)
    if (isLost(cause)) broken = cause as Error
    else
      await client.query("rollback").catch((failure: Error) => {
        broken = failure
      })
    throw cause
  } finally {
    client.off("error", ignoreBrokenConnection)
    client.release(broken)
  }
}

/** Whatever keeps a connection from coming about, be it the resolver of names or a certificate, is no fault of a request. */
async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    if (error instanceof DatabaseUnavailable) throw error
    const { message } = error as Error
    // The driver says so of a password that nobody gave.
    const why = /password must be/.test(message) ? "it asks for a password" : message || codeOf(error)
    throw refusalOf(error) ?? new DatabaseUnavailable(`Postgres cannot be reached: ${why}`)
  }
}

/** Sends a statement that others follow at once; whoever awaits it later learns how it went. */
function sendAhead(client: pg.PoolClient, text: string): Promise<unknown> {
  const answer = client.query(text)
  answer.catch(() => {})
  return answer
}

/** Postgres answers a commit with a rollback if a statement failed and the work hid its error. */
async function commit(client: pg.PoolClient): Promise<void> {
  const ended = await client.query("commit")
  if (ended.command !== "COMMIT") throw new Error("a statement failed and its error was not passed on")
}

/** The one `tx` of a connection, for all its database transactions. */
function transactionOn(client: pg.PoolClient): Queries {
  const known = transactions.get(client)
  if (known) return known
  const tx = transactionQueriesOver(rowsOf(client))
  transactions.set(client, tx)
  return tx
}

const transactions = new WeakMap<pg.PoolClient, Queries>()

/**
 * The next statement fails and the pool replaces the connection; without a listener the error would end the process.
 */
function ignoreBrokenConnection(): void {}

function rowsOf(client: pg.PoolClient): RunStatement {
  return async ({ text, name, patience_milliseconds }, params) => {
    const shape = { rowMode: "array", types: plainTypes, query_timeout: patience_milliseconds } as const
    try {
      const result = await client.query({ text, name, values: params, ...shape })
      return result.rows as unknown[][]
    } catch (error) {
      if (codeOf(error) !== transactionAborted) refusals.set(client, error)
      throw error
    }
  }
}

/** 25P02: an earlier statement of the database transaction had failed, and that error counts. */
const transactionAborted = "25P02"

/** The last failed statement's error, by connection. */
const refusals = new WeakMap<object, unknown>()

function causeOf(client: pg.PoolClient, error: unknown): unknown {
  return codeOf(driverError(error)) === transactionAborted ? (refusals.get(client) ?? error) : error
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
