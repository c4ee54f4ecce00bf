import { readdirSync, readFileSync } from "node:fs"
import { sql } from "drizzle-orm"
import { codeOf, type Database, DatabaseUnavailable, driverError, type Queries } from "./database.ts"

/**
 * Runs the pending migrations and returns their names. Safe when several processes start at once. Waits for tables in
 * use without blocking their users. Logs to `log` unless the database was empty.
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

/** Throws `DatabaseUnavailable` if the encoding lacks letters: names may contain any. */
async function requireAllLetters({ engine, read }: Database): Promise<void> {
  if (engine === "sqlite") return
  const [[encoding = ""] = []] = (await read.ask({ text: "show server_encoding" }, [])) as string[][]
  if (["UTF8", "SQL_ASCII"].includes(encoding)) return
  throw new DatabaseUnavailable(
    `the database has the encoding ${encoding}, which lacks most characters: create it with encoding 'UTF8' template template0`,
  )
}

type Log = Record<"info" | "warn", (fields: { migration: string }, message: string) => void>

const silent: Log = { info() {}, warn() {} }

/** Returns false if another process ran it. */
async function runMigration(db: Database, name: string, at: Date, log: Log): Promise<boolean> {
  const fields = { migration: name }
  log.info(fields, "a migration is next; if another process is running it, this process waits")
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
  // A long serializable transaction would exhaust the memory in which Postgres tracks conflicts with requests.
  const isNew = await db.transaction(work, "read committed alone")
  log.info(fields, isNew ? "the migration is done" : "another process has run the migration")
  return isNew
}

const inUse =
  "a table that the migration changes is in use, for example by a backup or a long report: the migration is tried again until the table is free"

/**
 * Runs a migration with a short lock timeout: every other user of a table queues behind a statement that waits for it.
 * So it waits briefly, lets the others pass and tries again. It keeps its claim, so that other processes wait for it.
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
    // Sleeps in Postgres, which would end a session that is idle inside a database transaction.
    await tx.ask({ text: `select pg_sleep(${pause})`, patience_milliseconds }, [])
  }
}

const lockMilliseconds = 3_000
const longestPauseSeconds = 30
const lockNotAvailable = "55P03"

/** Blocks while another process that has claimed the migration is running it. */
const claim =
  "insert into schema_migrations (name, applied_at) values ($1, $2) on conflict do nothing returning name"

/** Building an index on many rows takes hours. */
const patience_milliseconds = 24 * 60 * 60_000

const migrationsFolder = new URL("../../migrations/", import.meta.url)

export function migrationNames(): string[] {
  return readdirSync(migrationsFolder)
    .filter((name) => name.endsWith(".sql"))
    .sort()
}

/** Postgres may reject one of two simultaneous `create table if not exists`; by then the table exists. */
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

/** Runs one statement at a time. Splitting is safe because no statement of a migration contains a semicolon. */
async function runStatements(tx: Queries, text: string): Promise<void> {
  const statements = text
    .replaceAll(/^--.*$/gm, "")
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "")
  for (const text of statements) await tx.ask({ text, patience_milliseconds }, [])
}
