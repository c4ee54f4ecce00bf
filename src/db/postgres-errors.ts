import { codeOf, DatabaseUnavailable, Outrun } from "./database.ts"

/**
 * 40001 serialization failure, 40P01 deadlock (PostgreSQL manual, appendix A). 23505 unique violation: where a row of
 * somebody else came between a look and a write, Postgres may say so instead of 40001 (manual, 13.2.3); the next
 * look finds that row. 23503 foreign key violation: the same of a row that came to refer to one that is to go.
 * 25P03: it had ended the session, and undone all of it, while this process stood still.
 */
export function mustRepeat(error: unknown): boolean {
  if (error instanceof Outrun) return true
  return ["40001", "40P01", endedSession, ...violations].includes(codeOf(error))
}

const endedSession = "25P03"
const violations = ["23503", "23505"]

/** Whether the database refused a statement, which ends the whole database transaction. */
export function isOfPostgres(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error))
}

export function attemptsFor(error: unknown): number {
  return violations.includes(codeOf(error)) ? 3 : 30
}

/** 57014: somebody cancelled a statement. */
const cancelled = "57014"

/** What refuses one statement, on a connection that is as good as before for others. */
const ofOneStatement = [cancelled, "42501", "3F000"]

/** Whether nothing more comes of a connection with such an error: not even a rollback, or not what it is there for. */
export function isLost(error: unknown): boolean {
  if (ofOneStatement.includes(codeOf(error))) return false
  return unavailable(error) instanceof DatabaseUnavailable && !mustRepeat(error)
}

/**
 * Connection faults (class 08), conflicts without end (40), full disk and too many clients (53), shutdown and start-up
 * (57P0x), and a statement that somebody cancelled. A name, password or database that it does not know (28, 3D), rights
 * that the user lacks (42501, and 3F000 where it may use no schema), whatever a pooler refuses (08P01), and a server that
 * takes no writes (25006, and 0A000 where it is a standby), are for its operators to mend, not for callers. So is a
 * prepared statement that is lost (26000) or of somebody else (42P05), as behind a pooler in transaction mode.
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
  [/^(28|3D|08P01)/, "lets nobody in"],
  [/^(42501|3F000)$/, "does not let its user do that"],
  // What another server, or a new connection, may yet do.
  [/^(25006|0A000)$/, "cannot do that here"],
]

export function forgetful(what: string): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `Postgres forgets the ${what} of its session: DATABASE_URL must lead to it directly, or through a pooler in session mode`,
  )
}
