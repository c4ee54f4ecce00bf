import pg from "pg"
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

/** Postgres 15 or later; database transactions are serializable and repeated when Postgres asks for it. */
export function openPostgres(url: string): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: 5_000,
    options: "-c timezone=UTC",
  })
  pool.on("error", ignoreBrokenConnection)
  const oneAtATime = createTurnstile()
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
    read: committedQueriesOver((sql, params) => whileOpen(() => reachable(() => rowsOf(pool)(sql, params)))),
    async transaction(work) {
      assertNoOpenScope()
      return await whileOpen(() => runUntilCommitted(pool, oneAtATime, work))
    },
    async close() {
      closing ??= Promise.allSettled(underWay).then(() => pool.end())
      await closing
    },
  }
}

type Turnstile = <T>(work: () => Promise<T>) => Promise<T>

/** Work that lost twice goes on one at a time, so that those who want the same row do not defeat each other for ever. */
async function runUntilCommitted<T>(
  pool: pg.Pool,
  oneAtATime: Turnstile,
  work: (tx: Queries) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await (attempt <= 2 ? runOnce(pool, work) : oneAtATime(() => runOnce(pool, work)))
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

/** Throws the driver's error; then nothing was committed, unless the connection was lost while committing. */
async function runOnce<T>(pool: pg.Pool, work: (tx: Queries) => Promise<T>): Promise<T> {
  const client = await reachable(() => pool.connect())
  client.on("error", ignoreBrokenConnection)
  let broken: Error | undefined
  try {
    await client.query("begin isolation level serializable")
    const { value, callbacks } = await inScope(() => work(transactionQueriesOver(rowsOf(client))))
    const ended = await client.query("commit")
    // Postgres answers a commit after a failed statement, whose error `work` kept to itself, by rolling back.
    if (ended.command !== "COMMIT") throw new Error("a statement failed and its error was not passed on")
    runCallbacks(callbacks)
    return value
  } catch (error) {
    await client.query("rollback").catch((failure: Error) => {
      broken = failure
    })
    throw driverError(error)
  } finally {
    client.off("error", ignoreBrokenConnection)
    client.release(broken)
  }
}

/** The next statement says so and the pool replaces it; but without a listener it would end the process. */
function ignoreBrokenConnection(): void {}

function rowsOf(client: pg.Pool | pg.PoolClient): RunStatement {
  return async (sql, params) => {
    const result = await client.query({ text: sql, values: params, rowMode: "array", types: plainTypes })
    return result.rows as unknown[][]
  }
}

const timestamptz = 1184
const jsonTypes = [114, 3802]

const plainTypes = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (oid === timestamptz) return (value: string) => `${value.replace(" ", "T").replace(/\+00$/, "")}Z`
    if (jsonTypes.includes(oid)) return (value: string) => value
    return pg.types.getTypeParser(oid, format as "text")
  },
} as pg.CustomTypesConfig

/**
 * 40001 serialization failure, 40P01 deadlock (PostgreSQL manual, appendix A). 23505 unique violation: where a row of
 * somebody else came between a look and a write, Postgres may say so instead of 40001 (manual, 13.2.3); the next
 * look finds that row.
 */
function mustRepeat(error: unknown): boolean {
  return ["40001", "40P01", uniqueViolation].includes(codeOf(error))
}

const uniqueViolation = "23505"

function attemptsFor(error: unknown): number {
  return codeOf(error) === uniqueViolation ? 3 : 30
}

async function reachable<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw unavailable(error)
  }
}

/**
 * Connection faults (class 08), conflicts without end (40), full disk and too many clients (53), shutdown and start-up
 * (57P0x).
 */
function unavailable(error: unknown): unknown {
  const code = codeOf(error)
  const lost =
    /^(08|40|53|57P0)/.test(code) ||
    /^E[A-Z]+$/.test(code) ||
    (error instanceof Error &&
      /terminated|timeout exceeded|Connection ended|not queryable/i.test(error.message))
  return lost ? new DatabaseUnavailable(`Postgres cannot answer now (${code || "connection lost"})`) : error
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : ""
}
