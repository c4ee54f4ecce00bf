import { Database } from "bun:sqlite"
import { accessSync, constants, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/**
 * Takes a file that one process at a time may have; the operating system takes it back with the process, however that
 * ends. Answers how to let go of it, or null where another process has had it for so long. Throws where the file cannot
 * be written.
 */
export function takeFile(path: string, patienceMilliseconds: number): (() => void) | null {
  mkdirSync(dirname(path), { recursive: true })
  // SQLite is the file lock at hand.
  const file = new Database(path)
  try {
    // One that can only be read is opened all the same, and then locks nobody out.
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
