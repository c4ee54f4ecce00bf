import { readdirSync, readFileSync } from "node:fs"
import { sql } from "drizzle-orm"
import { codeOf, type Database, DatabaseUnavailable, driverError, type Queries } from "./database.ts"

/**
 * Migrates the database to the newest version. Safe when several processes start at once. Waits for a table in use
 * without holding up its users. Tells `log`, unless the database was empty. Returns what it ran.
 */
export async function migrate(db: Database, at: Date, log: Log = silent): Promise<string[]> {
  await createLedger(db)
  const known = await db.read.select({ name: sql<string>`name` }).from(sql`schema_migrations`)
  if (known.length === 0) await requireAllLetters(db)
  const ran: string[] = []
  for (const name of migrationNames()) {
    if (known.some((each) => each.name === name)) continue
    const isNew = await runMigration(db, name, at, known.length === 0 ? silent : log)
    if (isNew) ran.push(name)
  }
  return ran
}

/** Names may have any letter, and one that the encoding lacks would be refused once it comes. */
async function requireAllLetters({ engine, read }: Database): Promise<void> {
  if (engine === "sqlite") return
  const [[encoding = ""] = []] = (await read.ask({ text: "show server_encoding" }, [])) as string[][]
  if (["UTF8", "SQL_ASCII"].includes(encoding)) return
  throw new DatabaseUnavailable(
    `the database has the encoding ${encoding}, which lacks most letters: create it with encoding 'UTF8' template template0`,
  )
}

/** Whoever watches the process that migrates. */
type Log = Record<"info" | "warn", (fields: { migration: string }, message: string) => void>

const silent: Log = { info() {}, warn() {} }

/** Returns false where another process ran it. */
async function runMigration(db: Database, name: string, at: Date, log: Log): Promise<boolean> {
  const fields = { migration: name }
  log.info(fields, "a migration is next; where another process runs it, that one is waited for")
  let hasWaited = false
  const tellOfWait = () => {
    if (!hasWaited) log.warn(fields, inUse)
    hasWaited = true
  }
  const text = readFileSync(new URL(name, migrationsFolder), "utf8")
  const work = async (tx: Queries) => {
    const claimed = await tx.ask({ text: claim, patience_milliseconds }, [name, at.toISOString()])
    if (claimed.length === 0) return false
    if (db.engine === "sqlite") await runStatements(tx, text)
    else await runWhenFree(tx, text, tellOfWait)
    return true
  }
  // A long serializable transaction would use up the memory by which Postgres keeps those of requests apart.
  const isNew = await db.transaction(work, "read committed alone")
  log.info(fields, isNew ? "the migration is done" : "another process has run the migration")
  return isNew
}

const inUse =
  "a table that the migration changes is in use, as by a back-up or a long report: it is tried again until the table is free"

/**
 * Runs a migration with short waits for locks: behind a statement that waits for a table, everybody else who wants the
 * table waits, too. So it waits for a moment, lets them pass and tries again. It keeps its claim, so other processes
 * wait for it.
 */
async function runWhenFree(tx: Queries, text: string, tellOfWait: () => void): Promise<void> {
  await tx.ask({ text: `set local lock_timeout = ${lockMilliseconds}` }, [])
  for (let pause = 1; ; pause = Math.min(2 * pause, longestPauseSeconds)) {
    await tx.ask({ text: "savepoint before_migration" }, [])
    try {
      return await runStatements(tx, text)
    } catch (error) {
      if (codeOf(error) !== lockNotAvailable) throw error
    }
    await tx.ask({ text: "rollback to savepoint before_migration" }, [])
    tellOfWait()
    // Postgres itself sleeps: it would end a session that is silent inside a database transaction.
    await tx.ask({ text: `select pg_sleep(${pause})`, patience_milliseconds }, [])
  }
}

const lockMilliseconds = 3_000
const longestPauseSeconds = 30
const lockNotAvailable = "55P03"

/** Waits for another process that has claimed it and is not done. */
const claim =
  "insert into schema_migrations (name, applied_at) values ($1, $2) on conflict do nothing returning name"

/** An index on many rows takes hours. */
const patience_milliseconds = 24 * 60 * 60_000

const migrationsFolder = new URL("../../migrations/", import.meta.url)

export function migrationNames(): string[] {
  return readdirSync(migrationsFolder)
    .filter((name) => name.endsWith(".sql"))
    .sort()
}

/** Postgres may refuse one of two simultaneous `create table if not exists`; then the table is there. */
async function createLedger(db: Database): Promise<void> {
  const create = () =>
    db.transaction((tx) =>
      tx.execute(
        sql.raw(
          "create table if not exists schema_migrations (name text primary key, applied_at timestamptz(3) not null)",
        ),
      ),
    )
  await create().catch(async (error) => {
    if (db.engine === "sqlite") throw driverError(error)
    await create()
  })
}

/** One statement at a time: no statement of a migration contains a semicolon of its own. */
async function runStatements(tx: Queries, text: string): Promise<void> {
  const statements = text
    .replaceAll(/^--.*$/gm, "")
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "")
  for (const text of statements) await tx.ask({ text, patience_milliseconds }, [])
}
