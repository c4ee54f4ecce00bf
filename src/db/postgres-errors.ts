import { codeOf, DatabaseUnavailable, Outrun } from "./database.ts"

/**
 * Returns whether the database transaction must run again (codes: PostgreSQL manual, appendix A):
 * - 40001 serialization failure and 40P01 deadlock.
 * - 23505 unique violation, which Postgres may raise instead of 40001 when another transaction inserted the row between
 *   a read and a write (manual, 13.2.3). The next read finds that row.
 * - 23503 foreign key violation, likewise for a row that came to reference one being deleted.
 * - 25P03 idle-in-transaction timeout: Postgres ended the session, and so rolled back, while this process hung.
 */
export function mustRepeat(error: unknown): boolean {
  if (error instanceof Outrun) return true
  return ["40001", "40P01", endedSession, ...violations].includes(codeOf(error))
}

const endedSession = "25P03"
const violations = ["23503", "23505"]

/** Returns whether Postgres itself raised the error, which aborts the whole database transaction. */
export function isOfPostgres(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error))
}

export function attemptsFor(error: unknown): number {
  return violations.includes(codeOf(error)) ? 3 : 30
}

/** 57014 query_canceled. */
const cancelled = "57014"

/** Errors of a single statement that leave the connection usable. */
const ofOneStatement = [cancelled, "42501", "3F000"]

/** Returns whether the connection must be closed: it cannot even roll back, or is not fit for its purpose. */
export function isLost(error: unknown): boolean {
  if (ofOneStatement.includes(codeOf(error))) return false
  return unavailable(error) instanceof DatabaseUnavailable && !mustRepeat(error)
}

/**
 * Returns a `DatabaseUnavailable` for what operators must fix rather than callers; any other error unchanged.
 * - Connection faults (class 08), conflicts that persist (40), full disk and too many clients (53), shutdown and
 *   start-up (57P0x), and cancelled statements.
 * - Unknown user, password or database (28, 3D), missing rights (42501, or 3F000 without usage of any schema), anything
 *   a pooler rejects (08P01), and a server that takes no writes (25006, or 0A000 on a standby).
 * - A prepared statement that is lost (26000) or belongs to another session (42P05), as behind a pooler in transaction
 *   mode.
 */
export function unavailable(error: unknown): unknown {
  if (error instanceof DatabaseUnavailable) return error
  const code = codeOf(error)
  if (["26000", "42P05"].includes(code)) return forgetful(`prepared statements (${code})`)
  const refusal = refusalOf(error)
  if (refusal) return refusal
  const lost =
    /^(08|40|53|57P0)/.test(code) ||
    [cancelled, endedSession].includes(code) ||
    /^E[A-Z]+$/.test(code) ||
    (error instanceof Error &&
      /terminated|timeout exceeded|read timeout|Connection ended|not queryable/i.test(error.message))
  if (!lost) return error
  const why = /^(53|57P)/.test(code) ? `: ${(error as Error).message}` : ""
  return new DatabaseUnavailable(`Postgres cannot answer now (${code || "connection lost"})${why}`)
}

export function refusalOf(error: unknown): DatabaseUnavailable | null {
  const code = codeOf(error)
  const refusal = refusals.find(([codes]) => codes.test(code))?.[1]
  if (!refusal) return null
  return new DatabaseUnavailable(`Postgres ${refusal} (${code}): ${(error as Error).message}`)
}

const refusals: [codes: RegExp, what: string][] = [
  [/^(28|3D|08P01)/, "refuses the connection"],
  [/^(42501|3F000)$/, "does not permit this user to do this"],
  // Another server, or a new connection, may still accept it.
  [/^(25006|0A000)$/, "cannot do this on this server"],
]

export function forgetful(what: string): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `Postgres loses the ${what} of its session: DATABASE_URL must connect to it directly, or through a pooler in session mode`,
  )
}
