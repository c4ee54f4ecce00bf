import { Database } from "bun:sqlite"
import { accessSync, constants, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/**
 * Locks a file for this process. The operating system releases it when the process ends. Returns a function that
 * unlocks it, or null if another process still held it after the time. Throws if the file cannot be written.
 */
export function takeFile(path: string, patienceMilliseconds: number): (() => void) | null {
  mkdirSync(dirname(path), { recursive: true })
  // An exclusive SQLite transaction serves as a portable file lock.
  const file = new Database(path)
  try {
    // SQLite also opens a read-only file, but the lock would exclude nobody.
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
