import { AsyncLocalStorage } from "node:async_hooks"
import { drizzle, type PgRemoteDatabase } from "drizzle-orm/pg-proxy"

/** Builds queries with drizzle. */
export type Builder = PgRemoteDatabase

/** A database to query: inside a database transaction (`tx`), or outside one for committed rows. */
export type Queries = Builder & { readonly ask: RunStatement }

/**
 * A statement's text. With a `name`, the database keeps it prepared. Slow statements, such as migrations, say how long
 * a remote database may take to respond.
 */
export type Statement = {
  readonly text: string
  readonly name?: string
  readonly patience_milliseconds?: number
}

/** Runs one statement, synchronously where the engine can, and returns rows as arrays of column values. */
export type RunStatement = (statement: Statement, params: unknown[]) => unknown[][] | Promise<unknown[][]>

export type Database = {
  readonly engine: "sqlite" | "postgres"
  /** Reads committed rows. Throws inside a database transaction, where only its `tx` may be used. */
  readonly read: Queries
  /**
   * Runs `work` in one database transaction and resolves once it is durable. `work` may run more than once, so it must
   * do nothing but query `tx`: no network, no files. Throws whatever `work` throws, after a rollback, and
   * `DatabaseUnavailable` when the database cannot be used.
   */
  transaction<T>(work: Work<T>, isolation?: Isolation): Promise<T>
  close(): Promise<void>
}

export type Work<T> = (tx: Queries) => Promise<T>

/**
 * `serializable` (the default): as if transactions ran one after another. `read committed`: for work whose single
 * statements decide, such as a compare-and-set or an insert guarded by a constraint. It may see what others commit
 * meanwhile, and Postgres commits several such works as a group. `read committed alone`: the same, but in a database
 * transaction of its own, for work that locks a row others wait for, including works of its own group.
 */
export type Isolation = "serializable" | "read committed" | "read committed alone"

/** The database is unavailable for now; the same request may succeed later. */
export class DatabaseUnavailable extends Error {
  override name = "DatabaseUnavailable"
}

/** Returns the message for a person who starts a process or runs a command. */
export function withPlace({ message }: DatabaseUnavailable): string {
  return `${message}; check DATABASE_URL or, if that is not set, DATA_DIR`
}

/** Another transaction changed a row between this one's read and its write, so this one must run again. */
export class Outrun extends Error {
  override name = "Outrun"
}

/**
 * Runs `callback` once the open database transaction is durable, and never after a rollback. The callback is a hint and
 * may be lost.
 */
export function afterCommit(callback: () => void): void {
  const scope = openScope.getStore()
  if (!scope?.open) throw new Error("afterCommit is called outside a database transaction")
  scope.callbacks.push(callback)
}

export function queriesOver(run: RunStatement): Queries {
  const builder = drizzle(async (text, params) => ({ rows: await run({ text }, params) }))
  return Object.assign(builder, { ask: run })
}

/** Returns queries that throw while a database transaction is open in this call chain. */
export function committedQueriesOver(run: RunStatement): Queries {
  return queriesOver((statement, params) => {
    if (openScope.getStore()?.open) throw new Error("inside a database transaction only its tx may be used")
    return run(statement, params)
  })
}

/**
 * Returns queries for a `tx` that throw once its database transaction has ended: a statement that was not awaited must
 * not run in the next one.
 */
export function transactionQueriesOver(run: RunStatement): Queries {
  return queriesOver((statement, params) => {
    const scope = openScope.getStore()
    if (!scope?.open) throw new Error("tx is used after its database transaction ended")
    scope.wrote ||= !isRead(statement.text)
    return run(statement, params)
  })
}

/** The state of one work in its database transaction. */
type Scope = { open: boolean; wrote: boolean; callbacks: (() => void)[] }
const openScope = new AsyncLocalStorage<Scope>()

function isRead(text: string): boolean {
  return text.startsWith("select ")
}

/** The outcome of a work before the commit, with the callbacks to run after it. */
export type Ended<T> =
  | { value: T; callbacks: (() => void)[] }
  /** `wrote`: there is something to undo. */
  | { error: unknown; wrote: boolean }

/** Runs `work` on `tx` in a scope of its own. Never throws: errors are part of the result. */
export async function runInScope<T>(work: Work<T>, tx: Queries): Promise<Ended<T>> {
  const scope: Scope = { open: true, wrote: false, callbacks: [] }
  try {
    // Drizzle queries are lazy; the inner await starts them inside the scope.
    const value = await openScope.run(scope, async () => await work(tx))
    return { value, callbacks: scope.callbacks }
  } catch (error) {
    return { error: driverError(error), wrote: scope.wrote }
  } finally {
    scope.open = false
  }
}

/** Runs callbacks. Since they are hints, errors are ignored. */
export function runCallbacks(callbacks: (() => void)[]): void {
  for (const callback of callbacks) {
    try {
      callback()
    } catch {}
  }
}

/** A work that waits to be committed, and the promise functions of its caller. */
export type WaitingWork = {
  run: Work<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

/** Resolves or rejects a work's promise after the commit; `refusalOf` translates the error. */
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

/** Throws if a database transaction is open in this call chain. */
export function assertNoOpenScope(): void {
  if (openScope.getStore()?.open)
    throw new Error("a database transaction cannot be opened inside another one")
}

/** Returns the driver's own error: drizzle's wrapper quotes parameters, which may be secret. */
export function driverError(error: unknown): unknown {
  return error instanceof Error && error.name !== "DatabaseUnavailable" && "query" in error && error.cause
    ? error.cause
    : error
}

/** Returns a driver error's code, or an empty string. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : ""
}
