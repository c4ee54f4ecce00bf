import pg from "pg"
import {
  assertNoOpenScope,
  committedQueriesOver,
  type Database,
  DatabaseUnavailable,
  driverError,
  inScope,
  queriesOver,
  type RunStatement,
} from "./database.ts"

/** Postgres 15 or later; database transactions are serializable and repeated when Postgres asks for it. */
export function openPostgres(url: string): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: 5_000,
    options: "-c timezone=UTC -c default_transaction_isolation=serializable",
  })
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on("error", () => {})

  return {
    engine: "postgres",
    read: committedQueriesOver(async (sql, params) => await reachable(() => rowsOf(pool)(sql, params))),
    async transaction(work) {
      assertNoOpenScope()
      for (let attempt = 1; ; attempt++) {
        const client = await reachable(() => pool.connect())
        let broken: Error | undefined
        try {
          await reachable(() => client.query("begin"))
          const { value, callbacks } = await inScope(() => work(queriesOver(rowsOf(client))))
          await client.query("commit")
          for (const callback of callbacks) callback()
          return value
        } catch (error) {
          const cause = driverError(error)
          await client.query("rollback").catch((failure: Error) => {
            broken = failure
          })
          if (!mustRepeat(cause) || attempt === maxAttempts) throw unavailable(cause)
        } finally {
          client.release(broken)
        }
        await Bun.sleep(Math.random() * 2 ** attempt)
      }
    },
    async close() {
      await pool.end()
    },
  }
}

const maxAttempts = 12

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

/** 40001 serialization failure, 40P01 deadlock (PostgreSQL manual, appendix A). */
function mustRepeat(error: unknown): boolean {
  return ["40001", "40P01"].includes(codeOf(error))
}

async function reachable<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw unavailable(error)
  }
}

/** Connection faults (class 08), shutdown and start-up (57P0x), full disk and too many clients (class 53). */
function unavailable(error: unknown): unknown {
  const code = codeOf(error)
  const lost =
    /^(08|57P0|53)/.test(code) ||
    /^E[A-Z]+$/.test(code) ||
    mustRepeat(error) ||
    (error instanceof Error && /terminated|timeout exceeded|Connection ended/i.test(error.message))
  return lost ? new DatabaseUnavailable(`Postgres cannot answer now (${code || "connection lost"})`) : error
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : ""
}
