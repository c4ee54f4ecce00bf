import { AsyncLocalStorage } from "node:async_hooks"
import { drizzle, type PgRemoteDatabase } from "drizzle-orm/pg-proxy"

/** Writes queries with drizzle. */
export type Builder = PgRemoteDatabase

/** Everything that can be asked of the database, inside a database transaction (`tx`) or for committed reads. */
export type Queries = Builder & { readonly ask: RunStatement }

/**
 * A statement's text. A `name` lets the database keep it prepared. A statement that takes long, as in migrations, says
 * how long a remote database may be silent over it.
 */
export type Statement = {
  readonly text: string
  readonly name?: string
  readonly patience_milliseconds?: number
}

/** Runs one statement, at once where the engine can: rows as arrays of column values. */
export type RunStatement = (statement: Statement, params: unknown[]) => unknown[][] | Promise<unknown[][]>

export type Database = {
  readonly engine: "sqlite" | "postgres"
  /** Committed rows. Throws inside a database transaction: only its `tx` may be used there. */
  readonly read: Queries
  /**
   * Runs `work` in one database transaction and answers after it is durable.
   * `work` may run more than once, so it does nothing but ask `tx`; no network, no files.
   * Throws what `work` throws, after rolling back; `DatabaseUnavailable` when the database cannot answer.
   */
  transaction<T>(work: Work<T>, isolation?: Isolation): Promise<T>
  close(): Promise<void>
}

export type Work<T> = (tx: Queries) => Promise<T>

/**
 * `serializable`, the default: as if works ran one after the other. `read committed`: for works in which single
 * statements decide, a compare-and-set or an insert that a constraint refuses. They may see what others commit
 * meanwhile, and Postgres commits them in groups. `read committed alone`: the same in a database transaction of its
 * own, for a work that locks a row others wait for, its own group included.
 */
export type Isolation = "serializable" | "read committed" | "read committed alone"

/** The database cannot answer now; the same request may succeed later. */
export class DatabaseUnavailable extends Error {
  override name = "DatabaseUnavailable"
}

/** The message for whoever starts a process or runs a command. */
export function withPlace({ message }: DatabaseUnavailable): string {
  return `${message}; DATABASE_URL says where it is, or DATA_DIR where that is unset`
}

/** A row was changed by somebody else between a read and a write: the database transaction runs again. */
export class Outrun extends Error {
  override name = "Outrun"
}

/** Runs `callback`, a hint that may be lost, once the open database transaction is durable; never after a rollback. */
export function afterCommit(callback: () => void): void {
  const scope = openScope.getStore()
  if (!scope?.open) throw new Error("afterCommit is called outside a database transaction")
  scope.callbacks.push(callback)
}

export function queriesOver(run: RunStatement): Queries {
  const builder = drizzle(async (text, params) => ({ rows: await run({ text }, params) }))
  return Object.assign(builder, { ask: run })
}

/** The same, refusing to run while a database transaction is open in this call chain. */
export function committedQueriesOver(run: RunStatement): Queries {
  return queriesOver((statement, params) => {
    if (openScope.getStore()?.open) throw new Error("inside a database transaction only its tx may be used")
    return run(statement, params)
  })
}

/** The same for a `tx`: a statement that nobody awaited must not run in the next database transaction. */
export function transactionQueriesOver(run: RunStatement): Queries {
  return queriesOver((statement, params) => {
    const scope = openScope.getStore()
    if (!scope?.open) throw new Error("tx is used after its database transaction ended")
    scope.wrote ||= !isRead(statement.text)
    return run(statement, params)
  })
}

/** What one work has done in its database transaction. */
type Scope = { open: boolean; wrote: boolean; callbacks: (() => void)[] }
const openScope = new AsyncLocalStorage<Scope>()

function isRead(text: string): boolean {
  return text.startsWith("select ")
}

/** How a work ended before its commit, and what follows the commit. */
export type Ended<T> =
  | { value: T; callbacks: (() => void)[] }
  /** `wrote` when there is something to undo. */
  | { error: unknown; wrote: boolean }

/** Runs `work` on `tx` with a scope of its own. */
export async function runInScope<T>(work: Work<T>, tx: Queries): Promise<Ended<T>> {
  const scope: Scope = { open: true, wrote: false, callbacks: [] }
  try {
    // The inner await starts drizzle's lazy queries inside the scope.
    const value = await openScope.run(scope, async () => await work(tx))
    return { value, callbacks: scope.callbacks }
  } catch (error) {
    return { error: driverError(error), wrote: scope.wrote }
  } finally {
    scope.open = false
  }
}

/** Runs callbacks, which are hints: one that throws stops neither the others nor the answer. */
export function runCallbacks(callbacks: (() => void)[]): void {
  for (const callback of callbacks) {
    try {
      callback()
    } catch {}
  }
}

/** A work that waits for its commit, and its caller. */
export type WaitingWork = {
  run: Work<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

/** Answers a work's caller after the commit; `refusalOf` translates an error. */
export function settleWork(
  work: WaitingWork,
  ended: Ended<unknown>,
  refusalOf: (error: unknown) => unknown,
): void {
  if ("error" in ended) {
    work.reject(refusalOf(ended.error))
    return
  }
  runCallbacks(ended.callbacks)
  work.resolve(ended.value)
}

/** Refuses a database transaction inside another one. */
export function assertNoOpenScope(): void {
  if (openScope.getStore()?.open)
    throw new Error("a database transaction cannot be opened inside another one")
}

/** The driver's own error; drizzle's wrapper quotes parameters, which may be secret. */
export function driverError(error: unknown): unknown {
  return error instanceof Error && error.name !== "DatabaseUnavailable" && "query" in error && error.cause
    ? error.cause
    : error
}

/** The code of a driver's error; empty where it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : ""
}
