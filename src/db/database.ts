import { AsyncLocalStorage } from "node:async_hooks"
import { drizzle, type PgRemoteDatabase } from "drizzle-orm/pg-proxy"

/** Everything that can be asked of the database, inside a database transaction (`tx`) or for committed reads. */
export type Queries = PgRemoteDatabase

export type Database = {
  readonly engine: "sqlite" | "postgres"
  /** Committed rows. Throws inside a database transaction: only its `tx` may be used there. */
  readonly read: Queries
  /**
   * Runs `work` in one database transaction and answers after it is durable.
   * `work` may run more than once, so it does nothing but ask `tx`; no network, no files.
   * Throws what `work` throws, after rolling back; `DatabaseUnavailable` when the database cannot answer.
   */
  transaction<T>(work: (tx: Queries) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The database cannot answer now; the same request may succeed later. */
export class DatabaseUnavailable extends Error {
  override name = "DatabaseUnavailable"
}

/** Runs `callback`, a hint that may be lost, once the database transaction now open is durable; never after a rollback. */
export function afterCommit(callback: () => void): void {
  const scope = openScope.getStore()
  if (!scope?.open) throw new Error("afterCommit is called outside a database transaction")
  scope.callbacks.push(callback)
}

/** What an engine answers to one statement: rows as arrays of column values. */
export type RunStatement = (sql: string, params: unknown[]) => Promise<unknown[][]>

export function queriesOver(run: RunStatement): Queries {
  return drizzle(async (sql, params) => ({ rows: await run(sql, params) }))
}

/** The same, refusing to run while a database transaction is open in this call chain. */
export function committedQueriesOver(run: RunStatement): Queries {
  return queriesOver((sql, params) => {
    if (openScope.getStore()?.open) throw new Error("inside a database transaction only its tx may be used")
    return run(sql, params)
  })
}

/** The same for a `tx`: a statement that nobody awaited must not run in the next database transaction. */
export function transactionQueriesOver(run: RunStatement): Queries {
  return queriesOver((sql, params) => {
    if (!openScope.getStore()?.open) throw new Error("tx is used after its database transaction ended")
    return run(sql, params)
  })
}

type Scope = { open: boolean; callbacks: (() => void)[] }
const openScope = new AsyncLocalStorage<Scope>()

/** Runs `work` with a scope of its own and answers with its result and what is to follow the commit. */
export async function inScope<T>(work: () => Promise<T>): Promise<{ value: T; callbacks: (() => void)[] }> {
  const scope: Scope = { open: true, callbacks: [] }
  try {
    // The inner await starts drizzle's lazy queries inside the scope too.
    const value = await openScope.run(scope, async () => await work())
    return { value, callbacks: scope.callbacks }
  } finally {
    scope.open = false
  }
}

/** Callbacks are hints that may be lost: one that throws stops neither the others nor the answer. */
export function runCallbacks(callbacks: (() => void)[]): void {
  for (const callback of callbacks) {
    try {
      callback()
    } catch {}
  }
}

/** Refuses a database transaction inside another one. */
export function assertNoOpenScope(): void {
  if (openScope.getStore()?.open)
    throw new Error("a database transaction cannot be opened inside another one")
}

/** The driver's own error: drizzle's wrapper quotes the parameters, which may be secret. */
export function driverError(error: unknown): unknown {
  return error instanceof Error && error.name !== "DatabaseUnavailable" && "query" in error && error.cause
    ? error.cause
    : error
}
