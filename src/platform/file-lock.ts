import { Database } from "bun:sqlite"
import { accessSync, constants, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/**
 * Locks a file for this process; the operating system unlocks it when the process ends. Returns how to unlock it, or
 * null if another process held it all that time. Throws where the file cannot be written.
 */
export function takeFile(path: string, patienceMilliseconds: number): (() => void) | null {
  mkdirSync(dirname(path), { recursive: true })
  // SQLite is the file lock at hand.
  const file = new Database(path)
  try {
    // A read-only file opens, too, but would lock nobody out.
    accessSync(path, constants.W_OK)
    file.run(`PRAGMA busy_timeout = ${patienceMilliseconds}`)
    file.run("BEGIN EXCLUSIVE")
    return () => file.close()
  } catch (error) {
    file.close()
    if ((error as { code?: string }).code === "SQLITE_BUSY") return null
    throw error
  }
}
