import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { type Database, DatabaseUnavailable } from "./database.ts"
import { openSqlite } from "./sqlite.ts"

/**
 * Opens the database of a `DATABASE_URL`: `sqlite:<path>`, whose folder is created if missing, or `postgres://…`, which
 * is not contacted yet. Throws `DatabaseUnavailable`.
 */
export function openDatabase(url: string): Database {
  const path = pathIn(url)
  if (path === undefined) return loadPostgres().openPostgres(url)
  makeFolder(dirname(path))
  return openSqlite(path)
}

/** Returns the file, or the host and name of the database, for operators: without user and password. */
export function placeOfDatabase(url: string): string {
  const path = pathIn(url)
  if (path !== undefined) return path
  const { host, pathname } = new URL(url.replace("@/", "@localhost/"))
  return `${host}${pathname}`
}

function pathIn(url: string): string | undefined {
  return /^sqlite:(.+)$/.exec(url)?.[1]
}

/** Loads the driver, only if Postgres is used. */
function loadPostgres() {
  return require("./postgres.ts") as typeof import("./postgres.ts")
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw new DatabaseUnavailable(
      `cannot create the folder ${folder} of the database: ${(error as Error).message}`,
    )
  }
}
