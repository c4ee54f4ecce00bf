import { existsSync } from "node:fs"
import { copySqlite } from "./db/copy-sqlite.ts"
import { withDevEnvironment } from "./dev/environment.ts"
import { loadConfig, processEnvironment } from "./platform/config.ts"
import { ConfigError } from "./platform/config-error.ts"
import { complain, keepFilesPrivate, say } from "./platform/run.ts"
import { StartError } from "./platform/start-error.ts"
import { makeWhole } from "./platform/whole-file.ts"

/**
 * Copies a SQLite database as it is now into a new file, while a service may go on writing. To restore, put the file
 * in the database's place while no service runs, then run `operator restored`.
 */
function backUp(databaseUrl: string, file: string): void {
  const path = /^sqlite:(.+)$/.exec(databaseUrl)?.[1]
  if (!path)
    throw new StartError("DATABASE_URL is that of a Postgres: back it up with pg_dump --format custom")
  if (!existsSync(path)) throw new StartError(`there is no database at ${path}; is DATA_DIR right?`)
  if (existsSync(file)) throw new StartError(`${file} already exists; name a new file`)
  try {
    makeWhole(file, (draft) => copySqlite(path, draft))
  } catch (error) {
    throw new StartError(
      `the copy failed (${(error as Error).message}), and ${file} was not written; is the disk full?`,
    )
  }
}

keepFilesPrivate()
try {
  const [file] = process.argv.slice(2)
  if (!file) throw new StartError("usage: bun src/back-up.ts FILE")
  backUp(loadConfig(withDevEnvironment(processEnvironment)).database_url, file)
  say(
    `The database was copied to ${file}. Keep SERVICE_SECRET too, but apart from it: without it chip keys cannot be decrypted. After restoring the copy, run: operator restored`,
  )
} catch (error) {
  if (!(error instanceof StartError || error instanceof ConfigError)) throw error
  complain(error.message)
  process.exit(1)
}
