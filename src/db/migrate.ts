import { readdirSync, readFileSync } from "node:fs"
import { sql } from "drizzle-orm"
import { type Database, driverError, type Queries } from "./database.ts"

/** Brings the database to the newest migration; safe when several processes start at once. Answers what it ran. */
export async function migrate(db: Database, at: Date): Promise<string[]> {
  await createLedger(db)
  const known = await db.read.select({ name: sql<string>`name` }).from(sql`schema_migrations`)
  const ran: string[] = []
  for (const name of migrationNames()) {
    if (known.some((each) => each.name === name)) continue
    const isNew = await db.transaction(async (tx) => {
      const claimed = await tx.ask({ text: claim, patience_milliseconds }, [name, at.toISOString()])
      if (claimed.length === 0) return false
      await runStatements(tx, readFileSync(new URL(name, migrationsFolder), "utf8"))
      return true
    })
    if (isNew) ran.push(name)
  }
  return ran
}

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

/** Postgres may refuse one of two simultaneous `create table if not exists`; the loser finds the winner's table. */
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
